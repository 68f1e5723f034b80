"""A JSON list read element by element gives what the standard library gives, or a refusal."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_calibration.sources.files import UnreadableFileError
from judge_calibration.sources.json_array import elements_of, starts_a_list

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


class TestElements:
    @given(st.lists(values, max_size=6), st.integers(1, 9), st.sampled_from([None, 1]))
    @settings(max_examples=100, deadline=None)
    def test_every_chunk_size_gives_the_same_elements(self, document, chunk, indent):
        text = json.dumps(document, indent=indent)
        read = list(elements_of(io.StringIO(f" {text}\n"), chunk))
        assert [row for row, _ in read] == list(range(1, len(document) + 1))
        assert [value for _, value in read] == document

    @given(st.text(alphabet='[]{},:"1a \\', max_size=14), st.integers(1, 5))
    @settings(max_examples=200, deadline=None)
    def test_it_accepts_what_json_accepts_and_nothing_else(self, text, chunk):
        try:
            wanted = json.loads("[" + text)
        except json.JSONDecodeError:
            with pytest.raises(UnreadableFileError):
                list(elements_of(io.StringIO("[" + text), chunk))
        else:
            assert [value for _, value in elements_of(io.StringIO("[" + text), chunk)] == wanted

    @pytest.mark.parametrize(
        ("text", "row"), [('[{"a": 1}, {"a": }]', 2), ("[1, 2", 2), ("[1] 2", 1), ("[1 2]", 1)]
    )
    def test_the_element_is_named(self, text, row):
        with pytest.raises(UnreadableFileError) as caught:
            list(elements_of(io.StringIO(text)))
        assert caught.value.row == row


@pytest.mark.parametrize(
    ("text", "answer"), [("  [1]", True), ('{"a": [1]}', False), ("", False), (" " * 99 + "[", True)]
)
def test_a_list_is_recognised(text, answer):
    handle = io.StringIO(text)
    assert starts_a_list(handle) is answer
    assert handle.tell() == 0
