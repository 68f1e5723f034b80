"""Prompts of one's own: one YAML file, at most one class; and the files that the guide shows."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest
import yaml

from judge_calibration.errors import OptionsError
from judge_calibration.judges.instrument import describe_instruments
from judge_calibration.judges.parsing.alphabet import Meaning
from judge_calibration.judges.parsing.replies import Reply
from judge_calibration.judges.planning import plan_calls
from judge_calibration.judges.protocols.own import load_own_prompt
from judge_calibration.options.judging import JudgingOptions

USER = "{question}\n{answer_a}\n{answer_b}\n{output}\n"


def write(folder, text=None, **keys):
    path = folder / "mine.yml"
    content = {"name": "mine", "user": USER, **keys}
    path.write_text(yaml.safe_dump(content) if text is None else text, encoding="utf-8")
    return path


def read(protocol, text, finish="stop"):
    return protocol.steps[0].form.read(Reply(text, finish))


class TestFormats:
    def test_plain_with_labels_of_ones_own(self, tmp_path):
        protocol = load_own_prompt(write(tmp_path, labels={"first": "1", "second": "2", "tie": "equal"}))
        assert read(protocol, "Answer: 2").values == {"winner": Meaning.SECOND}
        assert read(protocol, "EQUAL").values == {"winner": Meaning.TIE}
        assert read(protocol, "A").outcome == "malformed"

    @pytest.mark.parametrize(
        ("form", "reply"),
        [("json", '{"rationale": "x", "choice": "B"}'), ("xml", "<judgment><choice>B</choice></judgment>")],
    )
    def test_structured_with_a_key_of_ones_own(self, tmp_path, form, reply):
        protocol = load_own_prompt(write(tmp_path, format=form, key="choice", rationale="before"))
        parsed = read(protocol, reply)
        assert protocol.judge({"verdict": parsed}).winner is Meaning.SECOND
        assert read(protocol, reply.replace("choice", "winner")).outcome == "malformed"

    def test_a_reader_of_ones_own(self, tmp_path):
        source = "class Last:\n    def read(self, text):\n        return text.split()[-1]\n"
        (tmp_path / "last.py").write_text(source)
        protocol = load_own_prompt(write(tmp_path, reader="last.py:Last"))
        assert read(protocol, "<think>A</think> I say B").values == {"winner": Meaning.SECOND}
        assert read(protocol, "I say C").outcome == "malformed"
        assert read(protocol, "I say B", "length").outcome == "truncated"
        assert read(protocol, "<think>B").outcome == "truncated"

    def test_a_reader_that_fails_is_a_malformed_reply(self, tmp_path):
        (tmp_path / "bad.py").write_text("class Bad:\n    def read(self, text):\n        return {}[text]\n")
        assert read(load_own_prompt(write(tmp_path, reader="bad.py:Bad")), "A").outcome == "malformed"


class TestBadFiles:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("", "NoneType"),
            ("- a list", "list"),
            ("a: [", "not YAML"),
            ("name: mine\nuser: no places\n", "{answer_a}"),
            (f"name: mine\nuser: {json.dumps(USER)}\nformat: toml\n", "format"),
            (f"name: mine\nuser: {json.dumps(USER)}\ncolour: blue\n", "colour"),
            (
                f"name: mine\nuser: {json.dumps(USER)}\nlabels: {{first: x, second: X}}\n",
                "labels that differ",
            ),
            (f"name: mine\nuser: {json.dumps(USER)}\nreader: absent.py:Reader\n", "absent.py"),
        ],
    )
    def test_each_is_named(self, tmp_path, text, found):
        with pytest.raises(OptionsError, match=re.escape(found)) as raised:
            load_own_prompt(write(tmp_path, text))
        assert "mine.yml" in str(raised.value)
        assert "own-prompt.md" in str(raised.value)

    def test_an_absent_file_is_named(self, tmp_path):
        with pytest.raises(OptionsError, match=r"absent\.yml"):
            load_own_prompt(tmp_path / "absent.yml")

    def test_a_name_that_is_taken_is_refused(self, tmp_path):
        path = write(tmp_path, name="direct")
        judge = {"judge_id": "j", "model": "x/y", "protocols": ["direct"]}
        options = JudgingOptions.model_validate({"judges": [judge], "prompt_files": [str(path)]})
        with pytest.raises(OptionsError, match="not taken"):
            describe_instruments(options)


def test_braces_in_template_and_candidates_are_safe(tmp_path):
    path = write(tmp_path, user='Like {"winner": {}} or {x}.\n' + USER)
    judge = {"judge_id": "j", "model": "x/y", "protocols": ["mine"], "orders": ["AB"]}
    options = JudgingOptions.model_validate({"judges": [judge], "prompt_files": [str(path)]})
    pair = {"pair_id": "p", "question": "{answer_b}", "response_a": "{0} {question}", "response_b": "%s {"}
    request = json.loads(plan_calls(pd.DataFrame([pair]), options)["request"][0])
    (message,) = request["messages"]
    assert message["content"].startswith('Like {"winner": {}} or {x}.\n')
    for text in ("{answer_b}", "{0} {question}", "%s {"):
        assert f"]\n{text}\n[END" in message["content"]


def test_a_change_of_the_file_is_another_instrument(tmp_path):
    judge = {"judge_id": "j", "model": "x/y", "protocols": ["mine"]}
    ids = set()
    for user in (USER, USER + "Please.\n"):
        options = {"judges": [judge], "prompt_files": [str(write(tmp_path, user=user))]}
        ids |= set(describe_instruments(JudgingOptions.model_validate(options)))
    assert len(ids) == 2


def test_the_guides_files_work(project_path, tmp_path):
    """Every prompt file and reader in docs/own-prompt.md, and its parameters."""
    text = (project_path / "docs" / "own-prompt.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(yaml|python)\n(.*?)```", text, re.DOTALL)
    prompts = [body for kind, body in blocks if kind == "yaml" and body.startswith("name:")]
    assert len(prompts) == 2
    for body in prompts:
        assert load_own_prompt(write(tmp_path, body)).name == "support"
    (reader,) = [body for kind, body in blocks if kind == "python"]
    (tmp_path / "support_reader.py").write_text(reader)
    (line,) = [body for kind, body in blocks if kind == "yaml" and body.startswith("reader:")]
    protocol = load_own_prompt(write(tmp_path, prompts[1] + line))
    assert read(protocol, "because\nequal").values == {"winner": Meaning.TIE}
    (parameters,) = [body for kind, body in blocks if "judging:" in body]
    options = yaml.safe_load(parameters)["judging"]
    options["prompt_files"] = [str(write(tmp_path, prompts[1]))]
    options["judges"][0]["model"] = "x/y"
    assert len(describe_instruments(JudgingOptions.model_validate(options))) == 2
