"""What is said before anything is asked: problems of the parameters together, and names that no pair has."""

import pandas as pd
import pytest

from judge_calibration.adapt.adaptation_checks import check_adaptation, check_names
from judge_calibration.errors import OptionsError
from judge_calibration.options.adaptation import AdaptationOptions
from judge_calibration.options.judging import JudgingOptions

SCRIPTED = {
    "judge_id": "fair",
    "model": "scripted/noise=0.2",
    "protocols": [{"name": "direct", "constraints": ["none", "grammar"]}, "reference_first"],
    "temperatures": [0.0, 1.0],
    "transport": {"transport": "scripted"},
}
EMBEDDED = {
    "judge_id": "small",
    "model": "embedded/smollm2-135m-instruct",
    "protocols": [{"name": "direct", "constraints": ["grammar"]}],
}
JUDGING = JudgingOptions.model_validate({"judges": [SCRIPTED, EMBEDDED]})


def options(rubrics=None, **rest):
    if rubrics is not None:
        rest["rubrics"] = {"judges": ["fair"]} | rubrics
    return AdaptationOptions.model_validate(rest)


def told(rubrics=None, **rest):
    with pytest.raises(OptionsError) as error:
        check_adaptation(options(rubrics, **rest), JUDGING)
    return str(error.value)


class TestParameters:
    def test_the_bases_have_the_one_cell_that_is_adapted(self):
        (base,) = check_adaptation(
            options({"temperature": 1.0, "constraint": "grammar", "repetitions": 3}), JUDGING
        )
        (use,) = base["protocols"]
        assert (use["name"], use["constraints"], use["temperatures"]) == ("direct", ["grammar"], [1.0])
        assert use["repetitions"] == 3

    def test_no_rubrics_no_bases(self):
        assert check_adaptation(options(), JUDGING) == []

    def test_everything_is_named_together(self, tmp_path):
        edited = [{"judge_id": "fare", "source": "s", "file": str(tmp_path / "none.md"), "budget": 64}]
        found = told(
            {
                "judges": ["fair", "fiar"],
                "writer": "smal",
                "edited": edited,
                "resamples": 3,
                "temperature": 0.5,
            },
            resamples=2,
        )
        for part in (
            "adaptation.rubrics.judges: found fiar (did you mean 'fair'?)",
            "adaptation.rubrics.writer: found smal (did you mean 'small'?)",
            "none.md; wanted a text file that is there",
            "edited, judge_id: found fare",
            "edited, budget: found 64",
            "rubrics.resamples: found 3; wanted at most adaptation.resamples (2)",
            "judge fair: found protocol direct, temperature 0.5; wanted a cell that the judge has: "
            "direct with constraint none or grammar and temperature 0 or 1",
        ):
            assert part in found

    @pytest.mark.parametrize("cell", [{"constraint": "json_schema"}, {"protocol": "json_cot"}])
    def test_a_cell_that_the_judge_lacks(self, cell):
        assert "a cell that the judge has" in told(cell)

    def test_a_protocol_with_system_prompts_of_its_own(self):
        assert "protocol reference_first; wanted direct" in told({"protocol": "reference_first"})

    def test_a_training_run_of_a_ranking_that_is_not_drawn(self):
        sft = {"judge": EMBEDDED, "runs": [{"source": "s", "resample": 2}]}
        assert "adaptation.sft.runs, s, resample: found 2; wanted less than" in told(sft=sft, resamples=2)

    def test_a_judge_that_is_trained_in_another_form_than_it_is_judged_in(self):
        sft = {"judge": EMBEDDED | {"max_tokens": 7}, "runs": [{"source": "s"}]}
        found = told({"judges": ["small"], "repetitions": 2}, sft=sft)
        assert "they differ in protocols, max_tokens" in found
        wanted = "{name: direct, constraints: [grammar], temperatures: [0], repetitions: 2}"
        assert f"the same judge, with protocols: [{wanted}], or another judge_id" in found

    @pytest.mark.parametrize("budget", [-5, 0, 1])
    def test_a_budget_is_two_at_least(self, budget):
        edited = [{"judge_id": "fair", "source": "s", "file": "f", "budget": budget}]
        sft = {"judge": EMBEDDED, "runs": [{"source": "s", "budget": budget}]}
        for values in ({"rubrics": {"budgets": [budget]}}, {"rubrics": {"edited": edited}}, {"sft": sft}):
            with pytest.raises(ValueError, match="greater than or equal to 2"):
                options(**values)

    @pytest.mark.parametrize("twice", [{"judges": ["fair", "fair"]}, {"budgets": [8, 8]}])
    def test_a_rubric_is_asked_for_once(self, twice):
        with pytest.raises(ValueError, match="must name each once"):
            options(twice)


class TestNames:
    pairs = pd.DataFrame({"source": ["bank", "mine", "mine"], "manipulation": ["length", None, "tone"]})

    def test_every_name_that_no_pair_has_is_told_with_those_that_there_are(self):
        draw = {"sources": ["mime"], "manipulations": ["lenght"]}
        edited = [{"judge_id": "fair", "source": "banks", "file": "f"}]
        sft = {"judge": EMBEDDED, "runs": [{"source": "nowhere"}]}
        with pytest.raises(OptionsError) as error:
            check_names(self.pairs, options({"edited": edited}, held_out=draw, controlled=draw, sft=sft))
        found = str(error.value)
        for part in (
            "adaptation.held_out.sources: found mime (did you mean 'mine'?); wanted a source of the pairs: "
            "bank, mine",
            "adaptation.held_out.manipulations: found lenght (did you mean 'length'?); wanted a controlled "
            "change of the pairs: length, tone",
            "adaptation.controlled.sources: found mime",
            "adaptation.controlled.manipulations: found lenght",
            "adaptation.rubrics.edited, source: found banks (did you mean 'bank'?)",
            "adaptation.sft.runs, source: found nowhere",
        ):
            assert part in found

    def test_names_of_the_pairs_and_of_the_bank_pass(self):
        """A run without the bank may name its changes: nothing is drawn then, and a note says so."""
        draw = {"sources": ["mine"], "manipulations": ["tone", "injection"]}
        check_names(self.pairs, options(held_out=draw, controlled=draw))
        check_names(self.pairs.head(0), options())
