"""A JSON list read element by element gives what the standard library gives, or a refusal."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_calibration.errors import SourceError
from judge_calibration.sources import SourceFile, read_pairs
from judge_calibration.sources.files import UnreadableFileError
from judge_calibration.sources.json_text import DECODER, elements_of

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
            wanted = DECODER.decode("[" + text)
        except ValueError:
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


class TestStrictness:
    @pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '[{"b": {"a": 1, "a": 1}}]'])
    def test_a_key_twice_is_refused_wherever_it_stands(self, text):
        with pytest.raises(ValueError, match="'a' twice"):
            DECODER.decode(text)

    def test_in_a_list_the_element_is_named(self):
        with pytest.raises(UnreadableFileError, match="twice") as caught:
            list(elements_of(io.StringIO('[{"a": 1}, {"a": 1, "a": 2}]')))
        assert caught.value.row == 2


@pytest.fixture
def rows_of(write):
    """Return the rows that a layout finds in a file, whatever form of JSON it is in."""

    def read(name, text, **over):
        layout = {"fields": {"question": "q", "response_a": "a", "response_b": "b"}, **over}
        pairs = read_pairs([SourceFile(path=write(name, text), layout="pairs", set=layout)]).pairs
        return pairs["question"].tolist()

    return read


ROW = '{"q": "%s", "a": "x", "b": "y"}'


class TestForms:
    """A list, objects in lines or a document inside: the content says which, whatever the file is called."""

    @pytest.mark.parametrize("name", ["p.json", "p.jsonl", "p.ndjson"])
    @pytest.mark.parametrize("pretty", [False, True])
    def test_a_list(self, rows_of, name, pretty):
        rows = [json.loads(ROW % k) for k in "12"]
        assert rows_of(name, "\ufeff" + json.dumps(rows, indent=2 if pretty else None)) == ["1", "2"]

    @pytest.mark.parametrize("name", ["p.json", "p.jsonl"])
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
    def test_lines(self, rows_of, name, end):
        assert rows_of(name, end.join(ROW % k for k in "123")) == ["1", "2", "3"]

    def test_a_first_line_longer_than_what_is_looked_at(self, rows_of):
        long = ROW % ("x" * 100_000)
        assert len(rows_of("p.json", f"{long}\n{ROW % 2}\n")) == 2

    @pytest.mark.parametrize("name", ["p.json", "p.jsonl"])
    def test_a_document_over_several_lines(self, rows_of, name):
        text = json.dumps({"data": {"rows": [json.loads(ROW % 1)]}}, indent=1)
        assert rows_of(name, text, records="data.rows") == ["1"]

    def test_one_object_called_json_may_be_a_document_and_says_so(self, rows_of):
        with pytest.raises(SourceError, match=r"records:.*"):
            rows_of("p.json", '{"data": [1]}')
