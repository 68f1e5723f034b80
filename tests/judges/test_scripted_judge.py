"""The judge made of rules: what is planted in it shows, and it follows every protocol."""

import pandas as pd
import pytest

from judge_calibration.judges.asking import ask_calls
from judge_calibration.judges.planning import plan_calls
from judge_calibration.judges.reading import read_answers
from judge_calibration.judges.store import StoreReader
from judge_calibration.judges.transports.scripted import ScriptError, character_of
from judge_calibration.options.judging import JudgingOptions

PAIRS = pd.DataFrame(
    [
        {"pair_id": f"p{n}", "question": f"Question {n}?", "response_a": f"Yes {n}.", "response_b": "No."}
        for n in range(60)
    ]
)


def judged(folder, model, protocols=("direct",), pairs=PAIRS, **judge):
    options = JudgingOptions.model_validate(
        {
            "judges": [
                {
                    "judge_id": "scripted",
                    "model": model,
                    "protocols": list(protocols),
                    **({"transport": {"transport": "scripted"}} | judge),
                }
            ]
        }
    )
    calls = plan_calls(pairs, options)
    answers, _ = ask_calls(calls, options, folder, "run")
    return read_answers(calls, answers, pairs, options)


def consistent(verdicts):
    """C: the share of (pair, order) with one verdict over all repetitions."""
    return (verdicts.groupby(["pair_id", "order"])["verdict"].nunique() == 1).mean()


def test_a_noisy_judge_has_c_below_one_above_temperature_0_and_one_at_0(tmp_path):
    verdicts = judged(
        tmp_path, "scripted/noise=0.2", temperatures=[0.0, 0.5, 1.0], repetitions=3, orders=["AB", "BA"]
    )
    c = verdicts.groupby("temperature")[["pair_id", "order", "verdict"]].apply(consistent)
    assert c[0.0] == 1.0
    # Three repetitions agree with probability (1-e)^3 + e^3: .73 at e = .1 and .52 at e = .2.
    # 120 units, not independent of nothing but their own draws: four standard errors are below .19.
    assert c[0.5] == pytest.approx(0.73, abs=0.19)
    assert c[1.0] == pytest.approx(0.52, abs=0.19)


def test_position_bias_shows_in_both_orders(tmp_path):
    verdicts = judged(tmp_path, "scripted/position=1.0")
    assert set(verdicts["shown_winner"]) == {"first"}
    fair = judged(tmp_path, "scripted/position=0.0")
    assert (fair.groupby("pair_id")["verdict"].nunique() == 1).all()


def test_malformed_replies_come_at_their_rate(tmp_path):
    verdicts = judged(tmp_path, "scripted/malformed=0.25", repetitions=5)
    # 600 replies: four standard errors are .07.
    assert (verdicts["outcome"] == "malformed").mean() == pytest.approx(0.25, abs=0.07)


def test_a_planted_skill_is_found(tmp_path):
    right = {pair: "AB"[n % 2] for n, pair in enumerate(PAIRS["pair_id"])}
    key = tmp_path / "key.csv"
    pd.DataFrame({"pair_id": right.keys(), "label": right.values()}).to_csv(key, index=False)
    transport = {"transport": "scripted", "answer_key": str(key)}
    for skill in (0.0, 0.8, 1.0):
        verdicts = judged(
            tmp_path / str(skill), f"scripted/skill={skill}", orders=["AB", "BA"], transport=transport
        )
        share = (verdicts["verdict"] == verdicts["pair_id"].map(right)).mean()
        # 60 pairs: three standard errors are .16; none and all are exact.
        assert share == pytest.approx(skill, abs=0.16 if skill == 0.8 else 0)


def test_a_skill_without_an_answer_key_is_refused(tmp_path):
    with pytest.raises(ScriptError, match=r"(?s)no answer key.*transport\.answer_key"):
        judged(tmp_path, "scripted/skill=0.8", pairs=PAIRS.head(1))
    transport = {"transport": "scripted", "answer_key": str(tmp_path / "nowhere.csv")}
    with pytest.raises(ScriptError, match=r"nowhere\.csv cannot be read"):
        judged(tmp_path, "scripted/skill=0.8", pairs=PAIRS.head(1), transport=transport)


def test_every_protocol_is_answered_in_its_form(tmp_path):
    protocols = ["direct", "json_verdict_first", "json_cot", "xml_verdict_first", "xml_cot"]
    protocols += ["holistic", "decomposed", "reference_first", "geval", "flask", "pointwise"]
    verdicts = judged(tmp_path, "scripted/steady", protocols, PAIRS.head(3))
    assert set(verdicts["outcome"]) == {"valid"}
    assert set(verdicts["protocol"]) == set(protocols)


def test_the_same_plan_gives_the_same_bytes_anywhere(tmp_path):
    for folder in ("a", "b"):
        judged(tmp_path / folder, "scripted/noise=0.3", temperatures=[1.0], repetitions=2)
    assert StoreReader(tmp_path / "a").sealed_hashes() == StoreReader(tmp_path / "b").sealed_hashes()


@pytest.mark.parametrize("model", ["scripted/noise=2", "scripted/bias=0.1", "scripted/noise=much"])
def test_a_name_that_cannot_be_read_is_refused(model):
    with pytest.raises(ScriptError, match="wanted position, noise, malformed or skill"):
        character_of(model)
