"""A real OpenAI-compatible server that is not ours: llama.cpp's own, over HTTP on loopback."""

import json

import pandas as pd
import pytest
from planned_calls import Asked, OneJudge

from judge_calibration.judges.asking import ask_calls
from judge_calibration.judges.embedded.weights import prepare
from judge_calibration.judges.store import StoreReader
from judge_calibration.options.asking import AskingOptions, EmbeddedOptions, TransportOptions

MODEL = "embedded/smollm2-135m-instruct"
SCHEMA = {
    "type": "object",
    "properties": {"winner": {"enum": ["A", "B"]}},
    "required": ["winner"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def address():
    """Where llama.cpp's own server listens."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(prepare(MODEL, EmbeddedOptions()).path)
    params.n_ctx = 1024
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.warmup = False
    params.verbosity = -1
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


def asked(address, road, **more):
    options = TransportOptions(transport=road, api_base=address, concurrency=2, **more)
    return Asked((OneJudge("judge", options),), AskingOptions())


def test_both_roads_give_the_same_answers(address, make_plan, tmp_path):
    none = {"kind": "none", "schema": None, "grammar": None}
    parts = [
        make_plan(["Answer A or B.", "Name a colour."], constraint=none),
        make_plan(["Answer A or B."], constraint={"kind": "json_schema", "schema": SCHEMA, "grammar": None}),
        make_plan(["Answer with one letter."], constraint=none, top_logprobs=3, max_tokens=1),
    ]
    calls = pd.concat(parts, ignore_index=True)
    found = {}
    for road in ("litellm", "openai_http"):
        answers, attempts = ask_calls(calls, asked(address, road), tmp_path / road)
        assert answers["failure"].isna().all(), attempts["message"].tolist()
        found[road] = answers.drop(columns=["cached_tokens", "logprobs"])
        by_id = answers.set_index("call_id")
        # A server's JSON mode asks for well-formed text; the cap of eight tokens may cut it.
        assert by_id.loc[parts[1]["call_id"][0], "text"].lstrip().startswith("{")
        assert len(json.loads(by_id.loc[parts[2]["call_id"][0], "logprobs"])[0]["top"]) == 3
        assert answers["prompt_tokens"].gt(0).all()
    assert found["litellm"].equals(found["openai_http"])


def test_a_grammar_is_taken(address, make_plan, tmp_path):
    grammar = {"kind": "grammar", "schema": None, "grammar": 'root ::= ("A" | "B")'}
    calls = make_plan(["Which one?"], constraint=grammar, model="openai/smollm2")
    for road in ("litellm", "openai_http"):
        answers, _ = ask_calls(
            calls, asked(address, road, key_variable="K"), tmp_path / road, keys={"K": "x"}
        )
        assert answers["text"][0] in ("A", "B")


def test_a_prompt_that_is_too_long_is_a_context_overflow(address, make_plan, tmp_path):
    for road in ("litellm", "openai_http"):
        answers, _ = ask_calls(make_plan(["word " * 2000]), asked(address, road), tmp_path / road)
        assert answers["failure"].tolist() == ["context_overflow"]
    assert StoreReader(tmp_path / "litellm").sealed_hashes() == {}
