"""The script that measures how far a judge prefers a label."""

import importlib.util
import json

import pandas as pd
import pytest

from judge_calibration import schemas
from judge_calibration.judges.planning import plan_calls
from judge_calibration.options.judging import JudgingOptions
from judge_calibration.sources.draw import draw_pairs


@pytest.fixture(scope="module")
def script(project_path):
    spec = importlib.util.spec_from_file_location("label_bias", project_path / "scripts" / "label_bias.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pairs_of(n):
    ids = [f"p{i}" for i in range(n)]
    return pd.DataFrame(
        {
            "pair_id": ids,
            "base_id": ids,
            "manipulation": ["length", "style"] * (n // 2),
            "domain": "d",
            "difficulty": "easy",
            "question": [f"Question {i}" for i in range(n)],
            "response_a": "one",
            "response_b": "another",
        }
    )


def options_of(*protocols):
    judge = {"judge_id": "j", "model": "x/model-0613", "protocols": list(protocols)}
    return JudgingOptions.model_validate({"judges": [judge]})


def test_pairs_are_apart_from_the_judged_ones_and_the_next_of_their_draw(script):
    pairs = pairs_of(20)
    apart = set(script.pairs_apart(pairs, 6, 4, "s")["pair_id"])
    judged = set(draw_pairs(pairs, 6, "s")["pair_id"])
    assert len(apart) == 4
    assert not apart & judged
    assert apart | judged == set(draw_pairs(pairs, 10, "s")["pair_id"])


def test_the_preference_is_the_mean_over_pairs_of_both_orders(script):
    """By pair B - A is .2 (.1 and .3 by order), .4 and .6: mean .4, half-width 4.303 x .2 / sqrt 3."""
    options = options_of("likelihood")
    calls = plan_calls(pairs_of(4), options)
    rows = []
    for call in calls.itertuples():
        number = int(call.pair_id[1:])
        gap = 0.2 * (number + 1) + (-0.1 if call.order == "AB" else 0.1)
        top = [{"token": "B", "logprob": -1.0}, {"token": "A", "logprob": -1.0 - gap}]
        listed = top[: 1 if number == 3 else 2]  # the last pair's reads never list A
        logprobs = json.dumps([{**top[0], "top": listed}])
        rows.append(
            {"call_id": call.call_id, "request": call.request, "text": "B", "finish_reason": "stop"}
            | {"failure": None, "logprobs": logprobs}
        )
    answers = schemas.conform(pd.DataFrame(rows), schemas.ANSWERS)
    found = script.preference_by_pair(calls, answers, options, probes=False)["j"]
    assert found.mean == pytest.approx(0.4)
    assert found.high - found.mean == pytest.approx(4.3027 * 0.2 / 3**0.5, abs=1e-4)
    assert (found.pairs, found.reads) == (3, 6)


def test_judges_with_a_declared_bias_are_left_out(script):
    plain, declared = {"name": "likelihood"}, {"name": "likelihood", "label_bias": {"A": 0.1, "B": -0.1}}
    assert script.without_bias(options_of(declared), "likelihood") is None
    assert script.without_bias(options_of("direct"), "likelihood") is None
    kept = script.without_bias(options_of(plain, "direct"), "likelihood")
    assert [use.name for use in kept.judges[0].protocols] == ["likelihood"]
