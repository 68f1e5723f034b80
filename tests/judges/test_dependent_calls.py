"""Calls that build upon the answer of another: asked after it, filled in, missing when it is."""

import json

import pandas as pd
import pytest
from fault_server import Behaviour, error, running

from judge_calibration.errors import OptionsError
from judge_calibration.judges.asking import ask_calls, planned_calls
from judge_calibration.judges.store import StoreReader


def chain(make_plan, names="abc"):
    """A call for each name, and one that builds upon it."""
    first = make_plan([f"checklist {name}" for name in names])
    parts = [first]
    for name, call_id in zip(names, first["call_id"], strict=True):
        parts.append(make_plan([f"compare {name} by [1]"], substitutions={"[1]": call_id}))
    # The later calls stand first, as a plan may have them.
    return pd.concat(parts[::-1], ignore_index=True).assign(
        pair_id=lambda frame: [f"pair-{n}" for n in range(len(frame))]
    )


def script(request, seen):
    content = request["messages"][0]["content"]
    if content == "checklist b":
        return error(500)
    return Behaviour(text=f"be brief, {content[-1]}" if content.startswith("checklist") else "A")


@pytest.mark.parametrize("shard_calls", [1, 2, 100])
def test_the_answer_is_filled_in_and_a_failure_makes_the_next_call_missing(
    shard_calls, asked, make_plan, tmp_path
):
    calls = chain(make_plan)
    with running(script) as server:
        options = asked(
            {"shard_calls": shard_calls},
            transport="openai_http",
            api_base=server.api_base,
            retries={"attempts": 1},
        )
        answers, attempts = ask_calls(calls, options, tmp_path)
        sent = {request["messages"][0]["content"] for request in server.requests}
        again, _ = ask_calls(calls, options, tmp_path)
        offline = asked({"offline": True}, **options.judges[0].transport.model_dump())
        repeated, _ = ask_calls(calls, offline, tmp_path)
    assert sent == {
        "checklist a",
        "checklist b",
        "checklist c",
        "compare a by be brief, a",
        "compare c by be brief, c",
    }
    shown = {
        json.loads(row.request)["messages"][0]["content"]: row.failure if pd.notna(row.failure) else row.text
        for row in answers.itertuples()
    }
    assert shown == {
        "checklist a": "be brief, a",
        "checklist b": "unavailable",
        "checklist c": "be brief, c",
        "compare a by be brief, a": "A",
        "compare b by [1]": "missing",
        "compare c by be brief, c": "A",
    }
    assert len(attempts) == 5
    assert again.equals(answers)
    assert repeated.equals(answers)


def test_a_later_run_builds_upon_an_answer_that_is_sealed(asked, make_plan, tmp_path):
    calls = chain(make_plan, "a")
    with running(script) as server:
        options = asked(transport="openai_http", api_base=server.api_base)
        ask_calls(calls[calls["request"].str.contains("checklist a")], options, tmp_path)
        assert StoreReader(tmp_path).sealed_hashes()
        answers, _ = ask_calls(calls, options, tmp_path)
        assert server.total == 2
    assert answers["failure"].isna().all()


def test_an_empty_answer_is_nothing_to_build_upon(asked, make_plan, tmp_path):
    def silent(request, seen):
        return Behaviour(text="" if request["messages"][0]["content"].startswith("checklist") else "A")

    with running(silent) as server:
        options = asked(transport="openai_http", api_base=server.api_base)
        answers, _ = ask_calls(chain(make_plan, "a"), options, tmp_path)
        assert server.total == 1
    assert sorted(answers["failure"].fillna("answered")) == ["answered", "missing"]


def test_building_upon_a_call_that_is_not_planned_is_refused(make_plan):
    with pytest.raises(OptionsError, match="calls that are not planned"):
        planned_calls(make_plan(["x [1]"], substitutions={"[1]": "f" * 64}))


def test_calls_that_share_an_id_are_asked_once(asked, make_plan, tmp_path):
    calls = pd.concat([make_plan(["x"]), make_plan(["x"]).assign(pair_id="another")], ignore_index=True)
    with running() as server:
        options = asked(transport="openai_http", api_base=server.api_base)
        answers, _ = ask_calls(calls, options, tmp_path)
        assert (server.total, len(answers)) == (1, 1)


def test_a_judge_that_is_not_declared_is_refused_before_anything_is_sent(asked, make_plan, tmp_path):
    with running() as server:
        options = asked(transport="openai_http", api_base=server.api_base)
        with pytest.raises(OptionsError, match="judge stranger"):
            ask_calls(make_plan(["x"], judge_id="stranger"), options, tmp_path)
        assert server.total == 0
