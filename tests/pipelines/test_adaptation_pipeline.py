"""The pipeline `adaptation` with scripted judges and made-up reads, and what must not leak into training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from kedro.io import DataCatalog, MemoryDataset
from kedro.runner import SequentialRunner

from judge_calibration import schemas
from judge_calibration.adapt.adaptation_checks import check_adaptation
from judge_calibration.adapt.before_after import JOINT
from judge_calibration.adapt.sft.examples import choose_pairs, render
from judge_calibration.adapt.sft.run import LOG_COLUMNS, TrainedJudges
from judge_calibration.adapt.sft.training import TrainingError
from judge_calibration.adapt.split import assign_split
from judge_calibration.errors import OptionsError
from judge_calibration.judges.asking import ATTEMPT_COLUMNS
from judge_calibration.options.adaptation import AdaptationOptions
from judge_calibration.options.annotation import AnnotationOptions
from judge_calibration.options.attributes import AttributesOptions
from judge_calibration.options.data_prep import DataPrepOptions
from judge_calibration.options.judging import JudgingOptions
from judge_calibration.options.reporting import ReportingOptions
from judge_calibration.options.sft import TrainingRun
from judge_calibration.pipeline_registry import register_pipelines
from judge_calibration.pipelines.adaptation.evaluation_nodes import _curves, add_up_adaptation
from judge_calibration.pipelines.adaptation.nodes import draw_held_out, draw_training_subsets
from judge_calibration.pipelines.adaptation.pipeline import create_pipeline
from judge_calibration.pipelines.adaptation.rubric_nodes import adapted_judges, plan_rubrics, write_rubrics
from judge_calibration.pipelines.annotation import pipeline as annotation
from judge_calibration.pipelines.data_prep import pipeline as data_prep
from judge_calibration.pipelines.data_prep.nodes import draw_judged_pairs

ATTRIBUTES = ("depth", "conciseness", "formality")
# Everything that training makes; of these no byte may depend on a held-out or human-study label.
TRAINED = ("training_subsets", "rubric_calls", "rubrics", "rubric_texts", "rubric_judges", "sft_judges")


def make_pairs(n=120, sources=("s",)):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "pair_id": [f"p{i}" for i in range(n)],
            "base_id": [f"b{i // 2}" for i in range(n)],
            "source": [sources[i % len(sources)] for i in range(n)],
            "stakes": "ordinary",
            "question": [f"Question {i}?" for i in range(n)],
            "response_a": [f"Answer one of {i}, at some length." for i in range(n)],
            "response_b": [f"Answer two of {i}." for i in range(n)],
            "reference_label": rng.choice(["A", "B"], n),
            "reference_kind": "human",
            "sentinel": False,
            "content_hash": "h",
        }
    )
    frame.loc[::10, "reference_label"] = "TIE"
    frame["split"] = assign_split(frame)
    return schemas.conform(frame, schemas.PAIRS)


def make_reads(pairs, judges=("scripted-fair",)):
    """Reads in which depth follows the reference of training pairs, and the rest follows nothing."""
    rng = np.random.default_rng(6)
    rows = []
    for judge in judges:
        for pair_id, reference in zip(pairs["pair_id"], pairs["reference_label"], strict=True):
            for attribute in ATTRIBUTES:
                truth = (
                    reference if attribute == "depth" and reference in ("A", "B") else rng.choice(["A", "B"])
                )
                for order in ("AB", "BA"):
                    rows.append((pair_id, judge, attribute, order, truth, "valid", "reader"))
    columns = ["pair_id", "judge_id", "attribute", "order", "direction", "outcome", "instrument_id"]
    return schemas.conform(pd.DataFrame(rows, columns=columns), schemas.READS)


def judging_options():
    judge = {
        "judge_id": "scripted-fair",
        "model": "scripted/noise=0.2,taste=shared",
        "protocols": ["direct"],
        "repetitions": 2,
        "temperatures": [1.0],
        "transport": {"transport": "scripted", "price": {"input_per_million": 1, "output_per_million": 1}},
    }
    return JudgingOptions.model_validate({"judges": [judge]})


def adaptation_options(**changes):
    rubrics = {"judges": ["scripted-fair"], "budgets": [16, "full"], "repetitions": 2, "attributes": 2}
    panel = {"n_judges": 2, "n_items": 120, "n_attributes": 4, "n_sources": 1}
    values = {"budgets": [8, 16], "resamples": 2, "bootstrap": 300, "rubrics": rubrics, "panel": panel}
    return AdaptationOptions.model_validate(values | changes)


@pytest.fixture
def run(tmp_path: Path, project_path: Path):
    inventory = yaml.safe_load((project_path / "data/01_raw/attributes/inventory.yml").read_text("utf-8"))
    attributes = {"judging": {"judges": [judging_options().judges[0].model_dump()]}}

    def start(pairs, reads=None, options=None, judging=None, before=None, **more):
        """Run the adaptation, of given pairs or after the pipeline `before` that makes them of `more`."""
        judging = judging or judging_options()
        inputs = {
            "pairs": pairs,
            "judged_pairs": pairs,
            "reads": make_reads(pairs) if reads is None else reads,
            "verdicts": schemas.empty(schemas.VERDICT_ROWS),
            "attribute_inventory": inventory,
            "attribute_calls": schemas.empty(schemas.CALLS),
            "attribute_answers": schemas.empty(schemas.ANSWERS),
            "attribute_attempts": pd.DataFrame(columns=list(ATTEMPT_COLUMNS)),
            "call_store": tmp_path / "calls",
            "judge_keys": {},
            "params:adaptation": options or adaptation_options(),
            "params:judging": judging,
            "params:attributes": AttributesOptions.model_validate(attributes),
            "params:reporting": ReportingOptions.model_validate({"intervals": {"resamples": 300}}),
        }
        pipeline = create_pipeline()
        if before is not None:
            pipeline += before
        inputs = {
            name: value for name, value in (inputs | more).items() if name not in pipeline.all_outputs()
        }
        catalog = DataCatalog({name: MemoryDataset(value) for name, value in inputs.items()})
        kept = {}

        class Kept(MemoryDataset):
            def _release(self):
                """Keep what nobody needs any more."""

        for name in pipeline.all_outputs():
            kept[name] = catalog[name] = Kept()
        SequentialRunner().run(pipeline, catalog)
        return {name: dataset.load() for name, dataset in kept.items()}

    return start


def test_base_rubric_and_reweighting_meet_on_the_same_held_out_pairs(run):
    pairs = make_pairs()
    out = run(pairs)
    verdicts = out["adapted_verdicts"]
    decisive = out["held_out_pairs"]["reference_label"].isin(("A", "B"))
    wanted = set(out["held_out_pairs"].loc[decisive, "pair_id"])
    for _, part in verdicts.groupby("judge_id"):
        assert wanted <= set(part["pair_id"])
    assert set(verdicts["method"]) == {"base", "rubric", "reweighting"}
    advice = out["adaptation_advice"].set_index(["method", "budget"])
    assert set(advice.loc[("reweighting", "8"), "n_resamples"]) == {2}
    table = out["adaptation_table"]
    real = table[~table["simulated"]]
    assert set(zip(real["method"], real["budget"], strict=True)) == {
        ("rubric", "16"),
        ("rubric", "full"),
        ("reweighting", "8"),
        ("reweighting", "16"),
        ("reweighting", "full"),
    }
    # Depth follows the reference everywhere, so reweighting finds it; the scripted judge follows nothing.
    full = real[(real["method"] == "reweighting") & (real["budget"] == "full")].iloc[0]
    assert full["accuracy"] == 1.0
    assert full["delta_low"] > 0
    assert full["n_train"] == len(out["training_subsets"].query("resample == 0"))
    assert out["adaptation_advice"].query("not simulated").iloc[-1]["method"] == "reweighting"
    assert (real["accuracy_base"].nunique()) == 1
    changed = out["adaptation_changes"]
    assert {"T_direct", "C", "phi", "A", "longer_chosen"} <= set(changed["statistic"])
    costs = out["adaptation_costs"].set_index("method")
    assert set(costs.index) == {"base", "rubric", "reweighting"}
    # Both orders, once: the second repetition is for C and T.
    assert costs.loc[["base", "rubric"], "pair_calls"].eq(2.0).all()
    assert costs.loc[["base", "rubric"], "total_seconds"].gt(0).all()


def test_the_rubric_is_in_the_prompt_and_is_another_instrument(run):
    out = run(make_pairs())
    text = next(one["text"] for one in out["rubrics"] if one["budget"] == "full")
    assert "1. More depth is better." in text
    assert (
        f"{next(one['name'] for one in out['rubrics'] if one['budget'] == 'full')}.md" in out["rubric_texts"]
    )
    base = out["asked_verdicts"].query("method == 'base'")["instrument_id"].unique()
    adapted = out["asked_verdicts"].query("method == 'rubric'")["instrument_id"].unique()
    assert len(base) == 1
    assert not set(base) & set(adapted)
    calls = out["adapted_calls"]
    shown = calls[calls["judge_id"] == "scripted-fair+rubric-s-full"]["request"]
    assert shown.str.contains("More depth is better").all()
    # It stands in the system prompt, with the instructions, and not among the data.
    assert out["rubric_diagnostics"]["same_direction"].eq(1.0).all()


def changed(before, after):
    """Return the names of the trained artifacts that are not the same."""
    return [
        name
        for name in TRAINED
        if not (
            before[name].equals(after[name])
            if isinstance(before[name], pd.DataFrame)
            else before[name] == after[name]
        )
    ]


def test_held_out_labels_reach_no_trained_artifact(run):
    pairs = make_pairs()
    reads = make_reads(pairs)
    poisoned = pairs.copy()
    test = poisoned["split"] == "test"
    poisoned.loc[test, "reference_label"] = poisoned.loc[test, "reference_label"].map({"A": "B", "B": "A"})
    clean, dirty = run(pairs, reads), run(poisoned, reads)
    assert changed(clean, dirty) == []
    columns = ["judge_id", "source", "budget", "attribute", "coefficient", "low", "high"]
    pd.testing.assert_frame_equal(
        clean["reweighting_coefficients"][columns], dirty["reweighting_coefficients"][columns]
    )
    # The poison is real: what is measured on the held-out pairs does change.
    assert not clean["adaptation_table"]["accuracy"].equals(dirty["adaptation_table"]["accuracy"])


def test_poisoned_training_labels_do_change_what_is_trained(run):
    pairs = make_pairs()
    reads = make_reads(pairs)
    other = pairs.copy()
    train = other["split"] == "train"
    other.loc[train, "reference_label"] = other.loc[train, "reference_label"].map(
        {"A": "B", "B": "A", "TIE": "TIE"}
    )
    assert run(pairs, reads)["rubrics"] != run(other, reads)["rubrics"]


def test_labels_by_people_change_nothing_that_is_trained(run, tmp_path, monkeypatch):
    """From the files on: pairs and people's labels are read by one node, and both go on from there."""
    pairs = make_pairs()
    reads = make_reads(pairs)
    columns = ["pair_id", "base_id", "source", "question", "response_a", "response_b", "reference_label"]
    before = data_prep.create_pipeline() + annotation.create_pipeline().to_outputs(
        "labels", "adjudicated_labels", "labelling_frame"
    )
    turned = {"A": "B", "B": "A", "TIE": "TIE"}
    seen = []

    def prompts(pairs, splits, training_subsets, training_environment, options):
        run_of_all = TrainingRun(source=None, budget="full")
        chosen = choose_pairs(pairs, training_subsets, run_of_all)
        seen.append(render(chosen, judging_options().judges[0], "salt"))
        return TrainedJudges([], pd.DataFrame(columns=list(LOG_COLUMNS)).astype(LOG_COLUMNS), {})

    monkeypatch.setattr("judge_calibration.pipelines.adaptation.pipeline.train_judges", prompts)

    def started(references, said):
        files = {"pairs.csv": pairs.assign(reference_label=references)[columns]}
        people = pd.concat([pairs.assign(annotator_id=name, label=said) for name in ("ann", "bob", "cy")])
        files["labels.csv"] = people[["pair_id", "annotator_id", "label"]]
        for name, frame in files.items():
            frame.to_csv(tmp_path / name, index=False)
        prepared = {
            "use_bank": False,
            "pair_files": [
                {"path": str(tmp_path / "pairs.csv"), "layout": "pairs", "set": {"reference_kind": "human"}}
            ],
            "label_files": [{"path": str(tmp_path / "labels.csv"), "layout": "labels"}],
            "judged": {"size": None},
        }
        annotators = [{"code": f"annotator_{number}"} for number in range(3)]
        more = {
            "pair_bank": {},
            "annotation_secret": "",
            "params:data_prep": DataPrepOptions.model_validate(prepared),
            "params:annotation": AnnotationOptions.model_validate(
                {"annotators": annotators, "draw": {"mode": "pairs", "pairs": 10, "seed": 1}}
            ),
        }
        return run(pairs, reads, before=before, **more)

    own = pairs["reference_label"]
    clean = started(own, own)
    assert len(clean["labels"]) == 3 * len(pairs)
    poisoned = started(own, own.map(turned))
    assert not clean["labels"]["label"].equals(poisoned["labels"]["label"])  # the poison came in
    assert changed(clean, poisoned) == []
    assert seen[0] == seen[1]
    pd.testing.assert_frame_equal(clean["reweighting_coefficients"], poisoned["reweighting_coefficients"])
    # A file's own references of training pairs are what is learned from: they do change it.
    train = (clean["pairs"]["split"] == "train").to_numpy()
    other = started(own.where(~train, own.map(turned)), own)
    assert {"rubrics", "rubric_texts"} <= set(changed(clean, other))
    assert seen[2] != seen[0]


def test_no_label_of_people_reaches_a_node_that_trains():
    whole = register_pipelines()["__default__"]
    people = {
        *("labels", "imported_labels", "adjudicated_labels", "human_study", "labelling_frame"),
        *("label_progress", "adjudication_queue", "unblinding_key"),
    }
    made = {
        "training_subsets",
        "rubrics",
        "rubric_judges",
        "sft_judges",
        "sft_adapters",
        "reweighting_coefficients",
    }
    upstream = whole.to_outputs(*made).all_inputs()
    assert not people & upstream


def test_adding_and_reordering_pairs_moves_no_old_pair(run):
    pairs = make_pairs(80)
    more = make_pairs(120).iloc[::-1].reset_index(drop=True)
    options = adaptation_options(rubrics=None)
    old = run(pairs, make_reads(pairs), options)["splits"].set_index("pair_id")["split"]
    new = run(more, make_reads(more), options)["splits"].set_index("pair_id")["split"]
    assert (new.reindex(old.index) == old).all()
    sides = run(more, make_reads(more), options)["splits"].groupby("base_id")["split"].nunique()
    assert sides.max() == 1


def test_every_adapted_judge_and_its_base_are_asked_about_controlled_pairs(run):
    pairs = make_pairs(sources=("s", "bank"))
    bank = pairs["source"] == "bank"
    pairs.loc[bank, "manipulation"] = "injection"
    pairs.loc[bank, "modified"] = "B"
    held_out = {"sources": ["s"]}
    plain = run(pairs, options=adaptation_options(held_out=held_out))
    out = run(pairs, options=adaptation_options(held_out=held_out, controlled={"size": 12}))
    controlled = out["controlled_pairs"]
    assert len(controlled) == 12
    assert set(controlled["source"]) == {"bank"}
    assert set(pairs.set_index("pair_id").loc[controlled["pair_id"], "split"]) == {"test"}
    asked = out["asked_verdicts"]
    learned = asked[(asked["method"] == "rubric") & (asked["source"] == "s")]
    assert set(controlled["pair_id"]) <= set(learned["pair_id"])
    changes = out["adaptation_changes"]
    own = changes[(changes["source"] == "s") & (changes["slice"] == "injection")]
    assert "worse_wins" in set(own["statistic"])
    # No gain and no cost of a pair knows of them.
    on_s = plain["adaptation_table"]["source"] == "s"
    pd.testing.assert_frame_equal(
        out["adaptation_table"][on_s], plain["adaptation_table"][on_s], check_like=True
    )
    on_s = plain["adaptation_costs"]["source"] == "s"
    pd.testing.assert_frame_equal(out["adaptation_costs"][on_s], plain["adaptation_costs"][on_s])


def test_a_pair_costs_what_pairs_of_its_own_source_take(run):
    pairs = make_pairs(sources=("s", "long"))
    pairs.loc[pairs["source"] == "long", "response_a"] += " and so on" * 400
    out = run(pairs)
    costs = out["adaptation_costs"]
    base = costs[costs["method"] == "base"].set_index("source")["pair_tokens"]
    assert base["long"] > 3 * base["s"]


class TestCosts:
    """`add_up_adaptation` on a few calls written out: two sources, 12 training and 2 held-out pairs each."""

    free = {"input_per_million": 0.0, "output_per_million": 0.0}
    dear = {"input_per_million": 1.0, "output_per_million": 1.0}

    def entry(self, method, judge_id, source="all", budget=None, resample=None, price=None):
        spec = {"judge_id": judge_id, "model": "m", "protocols": ["direct"]}
        spec["transport"] = {"price": self.free if price is None else price}
        names = {"method": method, "budget": budget, "resample": resample, "source": source}
        return names | {"base": "b", "judge": spec}

    def rubric(self, source="s", budget="full", resample=0, writer="person"):
        names = {"judge_id": "b", "source": source, "budget": budget, "resample": resample}
        return names | {"writer": writer, "name": f"b+rubric-{source}-{budget}-{resample}"}

    def add_up(
        self, gained, sft=(), rubric=(), rubrics=(), tokens=None, repetitions=1, log=None, read=(), **options
    ):
        """Add up what was asked: a call of each judge has the tokens named for it, and takes 2 seconds."""
        pairs = pd.DataFrame(
            [(f"{s}{i}", s, "train" if i < 12 else "test", i) for s in "st" for i in range(14)],
            columns=["pair_id", "source", "split", "rank"],
        )
        held_out = pairs[pairs["split"] == "test"]
        judges = {one["judge"]["judge_id"]: one["source"] for one in (*sft, *rubric)}
        asked = [
            (judge, pair, order, repetition)
            for judge, source in judges.items()
            for pair, own in zip(held_out["pair_id"], held_out["source"], strict=True)
            if source in ("all", own)
            for order in ("AB", "BA")
            for repetition in range(repetitions)
        ]
        reads = [("b", pair, order, 0) for pair in read for order in ("AB", "BA")]

        def tables(rows):
            calls = pd.DataFrame(rows, columns=["judge_id", "pair_id", "order", "repetition"])
            ids = ["-".join(map(str, row)) for row in rows]
            used = [float((tokens or {}).get(row[0], 100)) for row in rows]
            answers = pd.DataFrame({"call_id": ids, "prompt_tokens": used})
            answers = answers.assign(completion_tokens=0.0, cached_tokens=0.0, failure=None)
            # One after the other.
            start = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(2 * np.arange(len(rows)), unit="s")
            end = start + pd.Timedelta(seconds=2)
            times = {"started_at": start.map(str), "finished_at": end.map(str)}
            return (
                calls.assign(call_id=ids),
                answers,
                pd.DataFrame({"call_id": ids}).assign(**times, failure=None),
            )

        columns = ["method", "source", "budget"]
        table = pd.DataFrame(gained, columns=columns).assign(judge_id="b", protocol="direct", simulated=False)
        empty_log = {name: pd.Series(dtype="object") for name in ("judge_id", "prompt_tokens")}
        costs = add_up_adaptation(
            table.assign(accuracy=0.6, accuracy_base=0.5, delta=10.0),
            pairs,
            held_out,
            *tables(asked),
            *tables([]),
            *tables(reads),
            pairs[pairs["split"] == "train"].assign(resample=0),
            list(sft),
            pd.DataFrame(empty_log if log is None else log),
            list(rubric),
            list(rubrics),
            AdaptationOptions.model_validate({"work_pairs": 10} | options),
            judging_options(),
            AttributesOptions.model_validate(
                {"judging": {"judges": [self.entry("base", "b", price=self.dear)["judge"]]}}
            ),
        )
        return costs.set_index(["method", "source", "budget"]).sort_index()

    def test_a_rubric_may_have_a_budget_that_no_other_method_has(self):
        base, adapted = self.entry("base", "b"), self.entry("rubric", "r", "s", "6", 0)
        row = self.add_up(
            [("rubric", "s", "6")],
            rubric=[base, adapted],
            rubrics=[self.rubric(budget="6", writer="weights")],
            read=[f"s{i}" for i in range(12)],
            budgets=[4, 8],
        ).loc[("rubric", "s", "6")]
        # Six labelled pairs, whose one attribute was read in both orders.
        assert (row["labels"], row["adapt_calls"], row["adapt_tokens"], row["adapt_seconds"]) == (
            6,
            12,
            1200,
            24,
        )

    def test_another_ranking_of_the_training_pairs_costs_nothing_here(self):
        adapted = [self.entry("rubric", f"r{n}", "s", "full", n) for n in (0, 1)]
        costs = self.add_up(
            [("rubric", "s", "full")],
            rubric=[self.entry("base", "b"), *adapted],
            rubrics=[self.rubric(resample=0), self.rubric(resample=1)],
            tokens={"r0": 100, "r1": 900},
        )
        assert costs.loc[("rubric", "s", "full"), "pair_tokens"] == 200

    def test_repetitions_are_not_what_a_pair_costs(self):
        costs = self.add_up(
            [("rubric", "s", "full")],
            rubric=[self.entry("base", "b"), self.entry("rubric", "r", "s", "full", 0)],
            rubrics=[self.rubric()],
            repetitions=3,
        )
        for place in (("base", "s", "none"), ("rubric", "s", "full")):
            assert costs.loc[place, ["pair_calls", "pair_tokens", "pair_seconds"]].tolist() == [2, 200, 4]
            assert costs.loc[place, "total_seconds"] == 40

    def test_a_judge_of_all_sources_and_a_judge_of_one_have_costs_of_their_own(self):
        log = {"judge_id": ["own", "both", "both"], "prompt_tokens": [1_000, 7_000, 7_000]}
        costs = self.add_up(
            [("sft", "s", "8"), ("sft, joint", "s", "8"), ("sft, joint", "t", "8")],
            sft=[
                self.entry("base", "b"),
                self.entry("sft", "own", "s", 8, 0),
                self.entry("sft", "both", "all", 8, 0),
            ],
            tokens={"own": 10, "both": 30},
            log=log,
        )
        columns = ["labels", "adapt_tokens", "pair_tokens"]
        assert costs.loc[("sft", "s", "8"), columns].tolist() == [8, 1_000, 20]
        # It learned from eight of each source, and all of that is taken at each.
        for source in "st":
            assert costs.loc[("sft, joint", source, "8"), columns].tolist() == [16, 14_000, 60]
        assert costs["reason"].isna().all()

    @pytest.mark.parametrize(
        ("price", "money", "reason"), [(free, 0.0, None), (dear, None, "training_price_unknown")]
    )
    def test_training_costs_no_money_where_the_judge_costs_none(self, price, money, reason):
        log = {"judge_id": ["x"] * 2, "prompt_tokens": [500] * 2, "seconds": [30.0, 31.5]}
        spec = {"price": price}
        arguments = {
            "gained": [("sft", "s", "full")],
            "sft": [self.entry("base", "b", **spec), self.entry("sft", "x", "s", "full", 0, **spec)],
        }
        row = self.add_up(log=log, **arguments).loc[("sft", "s", "full")]
        assert (row["adapt_tokens"], row["adapt_seconds"], row["total_seconds"]) == (1_000, 61.5, 101.5)
        if money is None:
            assert np.isnan(row["adapt_money"])
            assert np.isnan(row["total_money"])
        else:
            assert (row["adapt_money"], row["total_money"]) == (money, money)
        assert (None if pd.isna(row["reason"]) else row["reason"]) == reason
        # An epoch whose time was not kept makes the whole unknown, and not shorter.
        for seconds in ({"seconds": [30.0, None]}, {}):
            kept = {name: value for name, value in log.items() if name != "seconds"} | seconds
            row = self.add_up(log=kept, **arguments).loc[("sft", "s", "full")]
            assert np.isnan(row["adapt_seconds"])
            assert pd.isna(row["best_at_its_seconds"])


def test_a_budget_above_what_there_is_says_so_and_has_no_spread(run):
    curve = run(make_pairs(80), options=adaptation_options(rubrics=None, budgets=[8, 5_000]))[
        "sample_efficiency"
    ]
    own = curve[~curve["simulated"] & (curve["source"] == "s")].set_index("budget")
    full = own.loc["full", "n_train"]
    assert 8 < full < 80
    assert own["n_train"].to_dict() == {"8": 8, "5000": full, "full": full}
    assert own.loc["5000", "n_resamples"] == 2
    assert own["sd_over_resamples"].isna().to_dict() == {"8": False, "5000": True, "full": True}


@pytest.mark.parametrize(("budget", "n", "whole"), [("8", 14, False), ("12", 18, True), ("full", 18, True)])
def test_the_curve_of_a_judge_of_all_sources_counts_the_pairs_of_all(budget, n, whole):
    row = {"judge_id": "b", "budget": budget, "resample": 0, "simulated": False}
    hits = pd.DataFrame([row | {"method": "sft, joint", "source": s} for s in "st"])
    fits = pd.DataFrame([row | {"source": "s", "accuracy_base": 0.5, "accuracy": 0.6, "n_train": 8}])
    sizes = pd.DataFrame({"source": ["s", "t", "SIMULATED-x"], "train_pairs": [12, 6, 500]})
    subsets = pd.DataFrame({"source": ["s", "t"]})
    log = pd.DataFrame({"source": ["all"], "budget": ["8"], "resample": [1], "pairs": [11]})
    curves = _curves(hits.assign(right=0.6, base_right=0.5), fits, sizes, subsets, log)
    own = curves[curves["method"] == "sft, joint"]
    assert own["n_train"].tolist() == [n, n]
    assert own["all_pairs"].tolist() == [whole, whole]
    # What the training log says counts: pairs over the cap of tokens were left out.
    same = log.assign(resample=0, budget=budget)
    curves = _curves(hits.assign(right=0.6, base_right=0.5), fits, sizes, subsets, same)
    assert curves.loc[curves["method"] == "sft, joint", "n_train"].tolist() == [11, 11]


def test_without_reads_everything_says_why(run):
    pairs = make_pairs()
    out = run(pairs, schemas.empty(schemas.READS))
    assert all(one["undefined"] == "no_reads" for one in out["rubrics"])
    assert set(out["adapted_verdicts"]["method"]) == {"base"}
    assert out["adaptation_table"]["simulated"].all()
    notes = out["adaptation_notes"].set_index("method")
    assert "no_reads" in notes.loc["reweighting", "reason"]
    assert "SIMULATED" in notes.loc["reweighting", "message"]  # the page shows a simulated panel's results
    assert notes.loc["reweighting", "command"].startswith("kedro run")
    assert list(out["rubric_texts"]) == ["README.md"]


def test_nothing_asked_for_asks_nothing(run):
    out = run(make_pairs(), options=adaptation_options(rubrics=None))
    assert out["adapted_calls"].empty
    assert out["rubrics"] == []
    reasons = out["adaptation_notes"]
    assert set(reasons.loc[reasons["reason"] == "not_asked_for", "method"]) == {"rubric", "sft"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("one class", "one_class_only"),
        ("no stable direction", "no_stable_direction"),
        ("few pairs", "fewer_than_the_smallest_budget"),
        ("no held-out pair", "no_test_pair"),
    ],
)
def test_bad_input_has_a_clear_message_and_what_was_finished_stays(run, change, reason):
    pairs = make_pairs()
    reads = make_reads(pairs)
    if change == "one class":
        pairs["reference_label"] = "A"
    elif change == "no stable direction":
        reads["direction"] = reads["order"].map({"AB": "A", "BA": "B"})
    elif change == "few pairs":
        train = pairs.index[pairs["split"] == "train"]
        pairs.loc[train[6:], "reference_label"] = "TIE"
    else:
        pairs.loc[pairs["split"] == "test", "reference_label"] = None
    out = run(pairs, reads, adaptation_options(rubrics=None))
    notes = out["adaptation_notes"]
    found = notes[notes["reason"] == reason]
    assert len(found)
    assert found["message"].str.len().min() > 20
    # The simulated panel's tables are there all the same.
    assert out["adaptation_table"]["simulated"].any()


def test_an_edited_rubric_takes_the_place_of_the_written_one(run, tmp_path):
    file = tmp_path / "mine.md"
    file.write_text("Less formality is better.\n", encoding="utf-8")
    rubrics = {"judges": ["scripted-fair"], "budgets": ["full"]}
    edited = [{"judge_id": "scripted-fair", "source": "s", "file": str(file)}]
    options = adaptation_options(rubrics=rubrics | {"edited": edited})
    out = run(make_pairs(), options=options)
    (one,) = out["rubrics"]
    assert (one["text"], one["writer"]) == ("Less formality is better.", "person")
    assert out["adapted_calls"]["request"].str.contains("Less formality").any()


def test_a_model_writes_a_rubric_from_training_pairs_only(run):
    rubrics = {"judges": ["scripted-fair"], "budgets": ["full"], "writer": "own", "shown_pairs": 5}
    out = run(make_pairs(), options=adaptation_options(rubrics=rubrics))
    (one,) = out["rubrics"]
    assert one["undefined"] is None
    assert (one["writer"], one["shown"]) == ("scripted-fair", 5)
    request = out["rubric_calls"]["request"].iloc[0]
    pairs = make_pairs().set_index("pair_id")
    shown = [p for p in pairs.index if pairs.loc[p, "question"] in request]
    assert len(shown) == 5
    assert (pairs.loc[shown, "split"] == "train").all()
    row = pairs.loc[shown[0]]
    better = row["response_a"] if row["reference_label"] == "A" else row["response_b"]
    assert request.index(better) < request.index(
        row["response_b"] if better == row["response_a"] else row["response_a"]
    )


def test_a_rubric_that_is_too_long_is_refused_and_not_cut(run):
    rubrics = {"judges": ["scripted-fair"], "budgets": ["full"], "most_words": 10}
    out = run(make_pairs(), options=adaptation_options(rubrics=rubrics))
    assert out["rubrics"][0]["undefined"] == "too_long"
    assert set(out["asked_verdicts"]["method"]) == {"base"}


def test_unknown_judges_writers_and_files_are_named_together(run):
    rubrics = {"judges": ["nobody"], "writer": "no-one"}
    edited = [{"judge_id": "nobody", "source": "s", "file": "no/such/file.md"}]
    with pytest.raises(OptionsError) as error:
        run(make_pairs(), options=adaptation_options(rubrics=rubrics | {"edited": edited}))
    for word in ("nobody", "no-one", "no/such/file.md"):
        assert word in str(error.value)


def test_parameters_are_checked_before_any_judge_is_asked():
    whole = register_pipelines()["__default__"]
    order = [node.name for node in whole.nodes]
    asking = [name for name in order if name.startswith("ask_")]
    assert order.index("check_adaptation") < min(map(order.index, asking))
    # What the pairs have to say for themselves is known before the first answer as well.
    assert order.index("draw_controlled") < min(map(order.index, asking))


def test_names_that_no_pair_has_stop_the_run(run):
    with pytest.raises(OptionsError, match="did you mean 'source-one'"):
        run(
            make_pairs(sources=("source-one",)),
            options=adaptation_options(held_out={"sources": ["source-onne"]}),
        )


def test_a_source_with_odd_characters_has_rubrics_of_its_own(run):
    out = run(make_pairs(sources=("a b", "a_b")))
    names = [one["name"] for one in out["rubrics"]]
    assert len(set(names)) == 4
    assert "scripted-fair+rubric-a_b-full" in names  # an ordinary name stays what it is
    assert len(out["rubric_texts"]) == 5
    table = out["adaptation_table"].query("method == 'rubric' and not simulated")
    assert set(table["source"]) == {"a b", "a_b"}


def test_a_model_is_shown_other_pairs_at_a_larger_budget_and_the_table_says_how_many(run):
    rubrics = {"judges": ["scripted-fair"], "budgets": [8, 16, "full"], "writer": "own", "shown_pairs": 8}
    out = run(make_pairs(), options=adaptation_options(rubrics=rubrics))
    assert out["rubric_calls"]["call_id"].nunique() == 3
    pairs = make_pairs().set_index("pair_id")
    request = out["rubric_calls"].set_index("pair_id")["request"]["scripted-fair+rubric-s-16"]
    ranked = out["training_subsets"].query("resample == 0").set_index("pair_id")["rank"]
    shown = sorted(rank for pair, rank in ranked.items() if f"{pairs.loc[pair, 'question']}" in request)
    # 8 of 16, from the first to the last.
    assert shown == [0, 2, 4, 6, 9, 11, 13, 15]
    table = out["adaptation_table"].query("method == 'rubric' and not simulated").set_index("budget")
    assert list(table.loc[["8", "16", "full"], "n_train"]) == [8, 8, 8]
    assert list(table.loc[["8", "16", "full"], "fewer_than_budget"]) == [False, True, False]
    assert set(out["rubric_diagnostics"]["shown"]) == {8}


@pytest.mark.parametrize("writer", ["weights", "own"])
def test_no_pairs_make_no_rubric(writer, project_path):
    inventory = yaml.safe_load((project_path / "data/01_raw/attributes/inventory.yml").read_text("utf-8"))
    pairs = make_pairs()
    rubrics = {"judges": ["scripted-fair"], "budgets": [16], "resamples": 2, "writer": writer}
    options = adaptation_options(rubrics=rubrics)
    # One ranking where two were wanted: a table that was changed since.
    subsets = draw_training_subsets(pairs, pairs, options).query("resample == 0")
    bases = check_adaptation(options, judging_options())
    calls = plan_rubrics(pairs, subsets, bases, options, judging_options())
    assert len(calls) == (1 if writer == "own" else 0)
    answers = schemas.empty(schemas.ANSWERS)
    rubrics, _, judges, _ = write_rubrics(
        calls, answers, pairs, subsets, make_reads(pairs), inventory, bases, options, judging_options()
    )
    empty = next(one for one in rubrics if one["resample"] == 1)
    assert (empty["undefined"], empty["text"]) == ("no_training_pair", "")
    assert not any(one["resample"] == 1 for one in judges)


def test_controlled_pairs_that_are_not_there_are_noted_and_logged(run, caplog):
    out = run(make_pairs(), options=adaptation_options(controlled={"manipulations": ["length"]}))
    (message,) = out["adaptation_notes"].query("reason == 'controlled_empty'")["message"]
    assert "a change of length" in message
    assert "data_prep.use_bank: true" in message
    assert any("a change of length" in told for told in caplog.messages)


def test_fine_tuned_judges_find_their_base_in_their_own_list():
    spec = {"judge_id": "b", "model": "m", "protocols": ["direct"]}
    base = {"method": "base", "budget": None, "resample": None, "source": "all", "judge": spec}
    trained = base | {
        "method": "sft",
        "budget": 32,
        "resample": 0,
        "source": "s",
        "judge": spec | {"judge_id": "t"},
    }
    found = adapted_judges([base, trained], [])
    assert [(one["base"], one["budget"]) for one in found] == [("b", None), ("b", "32")]
    with pytest.raises(OptionsError, match="no base"):
        adapted_judges([trained], [base])


def test_a_joint_judge_stands_beside_those_of_one_source(run, monkeypatch):
    pairs = make_pairs(240, sources=("s", "t"))
    spec = judging_options().judges[0].model_dump(mode="json")
    base = {"method": "base", "budget": None, "resample": None, "source": "all", "judge": spec}
    learned = [("s", 16, 16), ("all", 16, 30), ("all", "full", 140)]
    judges, log = [base], []
    for source, budget, n in learned:
        name = f"scripted-fair+sft-{source}-{budget}"
        judge = spec | {"judge_id": name, "model": "scripted/noise=0.0,taste=shared"}
        run_of = {"method": "sft", "budget": budget, "resample": 0, "source": source, "judge": judge}
        judges.append(run_of | {"base": "scripted-fair"})
        row = dict.fromkeys(LOG_COLUMNS, 1) | {"judge_id": name, "source": source, "budget": str(budget)}
        log.append(row | {"resample": 0, "pairs": n})
    made = TrainedJudges(judges, pd.DataFrame(log).astype(LOG_COLUMNS), {})
    monkeypatch.setattr(
        "judge_calibration.pipelines.adaptation.pipeline.train_judges",
        lambda pairs, splits, training_subsets, training_environment, options: made,
    )
    out = run(pairs, options=adaptation_options(rubrics=None))
    table = out["adaptation_table"].query("not simulated").set_index(["method", "source", "budget"])
    assert set(table.loc[JOINT].index) == {("s", "16"), ("t", "16"), ("s", "full"), ("t", "full")}
    # What was really learned from, of all sources; 16 of each of the two were wanted.
    assert table.loc[JOINT]["n_train"].to_dict() == {
        ("s", "16"): 30,
        ("t", "16"): 30,
        ("s", "full"): 140,
        ("t", "full"): 140,
    }
    fewer = table["fewer_than_budget"]
    assert fewer[JOINT, "s", "16"]
    assert not fewer[JOINT, "s", "full"]
    assert not fewer["sft", "s", "16"]
    macro = out["adaptation_macro"].query("not simulated").set_index(["method", "budget"])
    assert macro.loc[(JOINT, "16"), ["n_cells", "n_sources"]].tolist() == [2, 2]
    compared = out["method_comparison"].query("source == 's' and budget == '16' and not simulated")
    assert ("sft", JOINT) in set(zip(compared["method_1"], compared["method_2"], strict=True))
    curve = out["sample_efficiency"].query("method == @JOINT")
    assert set(curve["source"]) == {"all", "s", "t"}
    # It is a candidate beside reweighting, and on s beside that source's own.
    advice = out["adaptation_advice"].query("not simulated").set_index(["source", "n_labels"])
    assert advice.loc[[("s", 16), ("t", 16)], "n_candidates"].tolist() == [3, 2]


def test_the_simulated_panel_gains_and_is_marked(run):
    panel = {
        "n_items": 2_400,
        "n_attributes": 10,
        "strength": 2.0,
        "resolution_low": 0.9,
        "resolution_high": 0.95,
        "accuracy_low": 0.95,
    }
    out = run(make_pairs(), options=adaptation_options(rubrics=None, panel=panel, budgets=[32]))
    table = out["adaptation_table"].query("simulated")
    assert table["judge_id"].str.startswith("SIMULATED").all()
    full = table[table["budget"] == "full"]
    assert len(full) == 6
    assert (full["accuracy"] > 0.7).all()
    assert (full["delta_low"] <= full["delta"]).all()
    curve = out["sample_efficiency"].query("simulated and source == 'all'")
    assert curve["budget"].tolist() == ["32", "full"]
    # Some 900 labels a source and 10 attributes: the ranking is found, and little is left to be gained.
    recovery = out["reweighting_recovery"]
    assert len(recovery) == 6
    assert (recovery["spearman"] >= 0.9).all()
    assert recovery["below_planted"].abs().mean() < 4


def test_nothing_is_advised_where_the_references_are_a_coin(run):
    panel = {"n_items": 900, "n_attributes": 6, "coin_sources": 1, "resolution_low": 0.7, "n_sources": 2}
    out = run(make_pairs(), options=adaptation_options(rubrics=None, panel=panel, budgets=[32]))
    recovery = out["reweighting_recovery"].set_index("planted")
    assert recovery.loc["coin", "accuracy_planted"].eq(0.5).all()
    # Some 110 held-out pairs: a standard error of five points.
    assert recovery.loc["coin", "accuracy"].sub(0.5).abs().max() < 0.2
    advice = out["adaptation_advice"].query("simulated and source == 'SIMULATED-source-2'")
    assert advice["advice"].eq("no method earned").all()


def test_a_simulated_source_is_marked_whoever_judged_it(run):
    pairs = make_pairs()
    pairs["source"] = "SIMULATED-source-of-a-file"
    pairs["split"] = assign_split(pairs)
    out = run(pairs)
    assert out["adaptation_table"]["simulated"].all()
    assert out["adaptation_changes"]["simulated"].all()
    assert out["reweighting_fits"]["simulated"].all()
    # Each judge has one row a method and budget all the same: the panel's rows and these are not mixed up.
    keys = ["method", "judge_id", "source", "budget"]
    assert not out["adaptation_table"].duplicated(keys).any()


@pytest.mark.parametrize("environment", ["adapt", "adapt-llmbar"])
def test_the_judge_that_is_fine_tuned_is_the_one_that_gets_rubrics(environment, project_path):
    """Two different bases of one name would be refused after an hour of training."""
    folder = project_path / "conf" / environment
    said = {
        name: yaml.safe_load((folder / name / "parameters.yml").read_text("utf-8"))[name]
        for name in ("adaptation", "judging")
    }
    options = AdaptationOptions.model_validate(said["adaptation"])
    judging = JudgingOptions.model_validate(said["judging"])
    assert options.sft is not None
    assert options.rubrics is not None
    given = check_adaptation(options, judging)
    assert options.sft.judge.model_dump(mode="json") == given[0]
    assert not options.sft.needed


def test_without_torch_the_other_methods_run_and_the_note_says_what_brings_it(run, monkeypatch):
    found = {"torch": None, "transformers": "5.24.0"}
    monkeypatch.setattr("judge_calibration.adapt.sft.run.package_versions", lambda: found)
    judge = {
        "judge_id": "small",
        "model": "embedded/smollm2-135m-instruct",
        "protocols": [{"name": "direct", "constraints": ["grammar"]}],
    }
    sft = {"judge": judge, "runs": [{"source": "s", "budget": 8}], "needed": False}
    out = run(make_pairs(), options=adaptation_options(sft=sft))
    notes = out["adaptation_notes"].set_index("method")
    assert notes.loc["sft", "reason"] == "not_installed"
    assert notes.loc["sft", "command"] == "make env-sft"
    assert set(out["adaptation_table"].query("not simulated")["method"]) == {"rubric", "reweighting"}
    with pytest.raises(TrainingError, match="make env-sft"):
        run(make_pairs(), options=adaptation_options(sft=sft | {"needed": True}))


def test_held_out_pairs_can_be_of_some_controlled_changes_only():
    pairs = make_pairs()
    kinds = np.array(["correctness", "length", None], dtype=object)
    pairs["manipulation"] = kinds[np.arange(len(pairs)) % 3]
    options = adaptation_options(held_out={"manipulations": ["correctness"]})
    pairs = schemas.conform(pairs, schemas.PAIRS)
    found = draw_held_out(pairs, pairs, options)
    assert set(found["manipulation"].fillna("none")) == {"correctness", "none"}
    # Judged pairs are chosen by the same rule.
    judged = draw_judged_pairs(
        pairs, DataPrepOptions.model_validate({"judged": {"size": None, "manipulations": ["length"]}})
    )
    assert set(judged["manipulation"].fillna("none")) == {"length", "none"}
    assert (found["split"] == "test").all()


def test_a_failure_is_told_once_with_all_that_it_is_about(run, caplog):
    pairs = make_pairs()
    pairs["reference_label"] = "A"
    run(pairs, options=adaptation_options(rubrics=None))
    told = [message for message in caplog.messages if "same reference" in message]
    assert told == [
        "Adaptation, reweighting; s; scripted-fair; 8 and 16 and full labels: "
        "all labelled training pairs that were read have the same reference."
    ]
