"""The pipeline `judging`, run from a bare catalog with the scripted judge of the environment `test`."""

import pandas as pd
import pytest
import yaml
from kedro.io import DataCatalog, MemoryDataset
from kedro.runner import SequentialRunner

from judge_calibration import schemas
from judge_calibration.judges.store import StoreReader
from judge_calibration.options.judging import JudgingOptions
from judge_calibration.options.reporting import ReportingOptions
from judge_calibration.pipelines.judging.pipeline import create_pipeline

OUTPUTS = {"calls", "instruments", "call_plan", "answers", "attempts", "judged_verdicts", "verdicts"}
OUTPUTS |= {"repetition_looks"}


class Kept(MemoryDataset):
    """What a run made, still there after it."""

    def _release(self):
        pass


def pairs(count=6):
    rows = [
        {
            "pair_id": f"p{n}",
            "base_id": f"b{n}",
            "source": "made up",
            "stakes": "ordinary",
            "question": f"Question {n}?",
            "response_a": f"Yes {n}.",
            "response_b": "No.",
            "sentinel": False,
            "content_hash": str(n),
        }
        for n in range(count)
    ]
    return schemas.conform(pd.DataFrame(rows, columns=list(rows[0]) if rows else None), schemas.PAIRS)


@pytest.fixture
def options(project_path):
    text = (project_path / "conf" / "test" / "judging" / "parameters.yml").read_text()
    return JudgingOptions.model_validate(yaml.safe_load(text)["judging"])


def run(store, options, judged=None, logged=None):
    catalog = DataCatalog(
        {
            "judged_pairs": MemoryDataset(pairs() if judged is None else judged),
            "logged_verdicts": MemoryDataset(
                schemas.empty(schemas.VERDICT_ROWS) if logged is None else logged
            ),
            "call_store": MemoryDataset(store),
            "judge_keys": MemoryDataset({}),
            "params:judging": MemoryDataset(options),
            "params:reporting": MemoryDataset(ReportingOptions()),
            **{name: Kept() for name in OUTPUTS},
        }
    )
    SequentialRunner().run(create_pipeline(), catalog)
    return {name: catalog.load(name) for name in OUTPUTS}


class TestJudging:
    def test_every_pair_order_temperature_and_repetition_has_its_verdict(self, tmp_path, options):
        made = run(tmp_path, options)
        # 6 pairs x 2 orders x 2 temperatures x 3 repetitions; two protocols of one judge, one of another.
        assert len(made["verdicts"]) == 6 * 2 * 2 * 3 * 3
        assert len(made["calls"]) == len(made["answers"]) == 6 * 2 * 2 * 3 * 3
        assert set(made["verdicts"]["outcome"]) <= {"valid", "malformed"}
        schemas.check(made["verdicts"], schemas.VERDICT_ROWS)
        schemas.check(made["answers"], schemas.ANSWERS)
        assert set(made["calls"]["instrument_id"]) == set(made["instruments"])

    def test_the_plan_adds_up_calls_tokens_and_price(self, tmp_path, options):
        plan = run(tmp_path, options)["call_plan"].set_index(["judge_id", "protocol"])
        assert plan["calls"].sum() == 6 * 2 * 2 * 3 * 3
        assert (plan["judgments"] == plan["calls"]).all()
        row = plan.loc[("scripted-fair", "direct")]
        # 72 calls of at most 16 tokens; a million cost 1 in and 4 out.
        assert row["completion_tokens_most"] == 72 * 16
        assert row["price_estimated"] == pytest.approx((row["prompt_tokens_estimated"] + 4 * 72 * 16) / 1e6)
        assert row["price_most"] > row["price_estimated"]

    def test_two_runs_on_one_store_give_the_same_tables_and_ask_once(self, tmp_path, options):
        first, second = run(tmp_path, options), run(tmp_path, options)
        for name in OUTPUTS - {"instruments"}:
            assert first[name].equals(second[name]), name
        assert first["instruments"] == second["instruments"]

    def test_two_stores_give_the_same_tables_but_attempts(self, tmp_path, options):
        first, second = run(tmp_path / "a", options), run(tmp_path / "b", options)
        for name in OUTPUTS - {"instruments", "attempts"}:
            assert first[name].equals(second[name]), name
        assert not first["attempts"].equals(second["attempts"])

    def test_a_store_named_in_the_parameters_is_used(self, tmp_path, options):
        asking = options.asking.model_copy(update={"store": str(tmp_path / "named")})
        run(tmp_path / "default", options.model_copy(update={"asking": asking}))
        assert StoreReader(tmp_path / "named").sealed_hashes()
        assert not (tmp_path / "default").exists()

    def test_offline_asks_nothing_and_says_what_is_missing(self, tmp_path, options):
        asking = options.asking.model_copy(update={"offline": True})
        made = run(tmp_path / "store", options.model_copy(update={"asking": asking}))
        assert set(made["answers"]["failure"]) == {"missing"}
        assert set(made["verdicts"]["outcome"]) == {"missing"}
        assert not (tmp_path / "store").exists()

    def test_verdicts_from_logs_stand_beside_those_that_were_asked_for(self, tmp_path, options):
        logged = run(tmp_path, options)["judged_verdicts"].assign(judge_id="from a log")
        made = run(tmp_path, options, logged=logged)
        assert set(made["verdicts"]["judge_id"]) == {"scripted-fair", "scripted-first", "from a log"}

    def test_without_a_pair_nothing_is_asked_and_no_model_is_looked_for(self, tmp_path, options):
        logged = run(tmp_path, options)["judged_verdicts"]
        broken = options.judges[0].model_copy(update={"model": "embedded/not-there"})
        made = run(tmp_path / "none", options.model_copy(update={"judges": (broken,)}), pairs(0), logged)
        assert made["verdicts"].equals(logged)
        assert made["instruments"] == {}
        assert made["call_plan"].empty
