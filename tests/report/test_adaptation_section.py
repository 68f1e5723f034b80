"""The section on adaptation: real and SIMULATED apart, reasons and commands where nothing was adapted."""

import json

import pandas as pd
import pytest

from judge_calibration.report import adaptation_figures as figures
from judge_calibration.report.adaptation_section import adaptation_section
from judge_calibration.report.blocks import FigureBlock, Missing, Prose, TableBlock


def table_of(**changes):
    row = {
        "method": "rubric",
        "judge_id": "j",
        "protocol": "direct",
        "source": "s",
        "budget": "full",
        "n_train": 90,
        "fewer_than_budget": False,
        "simulated": False,
        "n_test": 30,
        "n_clusters": 30,
        "accuracy_base": 0.5,
        "accuracy": 0.6,
        "delta": 10.0,
        "delta_low": -5.0,
        "delta_high": 25.0,
        "detectable": 25.6,
        "no_verdict_base": 0.0,
        "no_verdict": 0.1,
        "undefined": None,
    }
    return pd.DataFrame([row | changes])


def advice_of(**changes):
    row = {
        "judge_id": "j",
        "protocol": "direct",
        "source": "s",
        "n_labels": 90,
        "advice": "no method earned",
        "method": "rubric",
        "budget": "full",
        "expected_gain": 10.0,
        "low": -5.0,
        "high": 25.0,
        "earned_low": -9.0,
        "n_candidates": 3,
        "n_resamples": 10,
        "sd_over_resamples": 4.0,
        "reason": None,
        "simulated": False,
    }
    return pd.DataFrame([row | changes])


def change_of(statistic, before, after, slice_by="all", name="all", **changes):
    row = {
        "method": "rubric",
        "judge_id": "j",
        "protocol": "direct",
        "source": "s",
        "budget": "full",
        "slice_by": slice_by,
        "slice": name,
        "statistic": statistic,
        "before": before,
        "after": after,
        "change": after - before,
        "low": -0.1,
        "high": 0.3,
        "n_pairs": 30,
        "n_clusters": 30,
        "reason": "",
    }
    return row | changes


def texts(block):
    return " ".join(" ".join(row) for row in block.rows)


def test_nothing_adapted_says_what_brings_it():
    (block,) = adaptation_section({}).blocks
    assert isinstance(block, Missing)
    assert block.command.startswith("kedro run")


def test_the_advice_comes_first_and_no_method_is_an_answer():
    section = adaptation_section({"adaptation_table": table_of(), "adaptation_advice": advice_of()})
    first = section.blocks[0]
    assert isinstance(first, TableBlock)
    assert "no method earned its place" in texts(first)
    assert "+10.0\n(-5.0 to +25.0)" in texts(first)


def test_a_method_that_earned_its_place_is_named_with_its_labels():
    advice = advice_of(advice="use", budget="64", low=2.0, earned_low=1.0)
    section = adaptation_section({"adaptation_table": table_of(), "adaptation_advice": advice})
    assert "use rubric with 64 labels" in texts(section.blocks[0])
    assert "10\n(spread 4.0 points)" in texts(section.blocks[0])
    once = advice_of(n_resamples=1, sd_over_resamples=float("nan"))
    section = adaptation_section({"adaptation_table": table_of(), "adaptation_advice": once})
    assert "spread" not in texts(section.blocks[0])


def test_real_and_simulated_numbers_never_share_a_block():
    both = pd.concat([table_of(), table_of(simulated=True, judge_id="SIMULATED-judge-1", delta=33.0)])
    section = adaptation_section({"adaptation_table": both})
    drawn = [block for block in section.blocks if isinstance(block, FigureBlock)]
    assert [block.simulated for block in drawn] == [False, True]
    assert "SIMULATED" not in texts(drawn[0].table)
    assert drawn[1].table.simulated
    assert not {drawn[0].id, drawn[0].table.id} & {drawn[1].id, drawn[1].table.id}


def test_undefined_gains_show_their_reason_and_are_not_drawn():
    rows = table_of(
        delta=float("nan"), delta_low=float("nan"), accuracy=float("nan"), undefined="one_class_only"
    )
    (block,) = adaptation_section({"adaptation_table": rows}).blocks
    assert isinstance(block, TableBlock)
    assert "undefined: one class only" in texts(block)


def test_a_budget_above_the_labels_says_how_many_there_were():
    rows = table_of(budget="64", n_train=40, fewer_than_budget=True)
    block = adaptation_section({"adaptation_table": rows}).blocks[0]
    assert "only 40 used" in texts(block.table)


def test_methods_stand_side_by_side_with_what_else_they_change():
    rows = pd.concat(
        [
            table_of(method=method, budget=budget, accuracy=after)
            for method, budget, after in (
                ("sft", "full", 0.7),
                ("rubric", "32", 0.5),
                ("reweighting", "full", 0.6),
                ("sft", "32", 0.55),
            )
        ]
    )
    changes = pd.DataFrame(
        [
            change_of("phi", 0.6, 0.1, method="sft"),
            change_of("C", 1.0, 1.0, method="sft"),
            change_of("T_direct", 0.2, 0.5, method="sft"),
            change_of("phi", 0.6, 0.6, "manipulation", "length", method="rubric", budget="32"),
        ]
    )
    section = adaptation_section({"adaptation_table": rows, "adaptation_changes": changes})
    block = next(block for block in section.blocks if isinstance(block, FigureBlock)).table
    shown = block.shown[["Method", "Labels", "Accuracy", "T", "C", "phi"]].to_numpy().tolist()
    # At equal labels one after the other; a slice's phi is not the whole's.
    assert shown == [
        ["rubric", "32\n(90)", "50.0 % to 50.0 %", "–", "–", "–"],
        ["sft", "32\n(90)", "50.0 % to 55.0 %", "–", "–", "–"],
        ["reweighting", "all\n(90)", "50.0 % to 60.0 %", "–", "–", "–"],
        [
            "sft",
            "all\n(90)",
            "50.0 % to 70.0 %",
            "20.0 % to 50.0 %",
            "100.0 % to 100.0 %",
            "60.0 % to 10.0 %",
        ],
    ]


def test_training_says_what_was_left_out_and_planted_rules_stand_apart():
    log = pd.DataFrame(
        {
            "judge_id": ["j+sft-s"] * 2 + ["j+sft-rule"],
            "source": ["s", "s", "SIMULATED-rule"],
            "epoch": [1, 2, 1],
            "loss": [0.9, 0.1, 0.7],
            "train_accuracy": [0.5, 1.0, 0.5],
            "pairs": [26, 26, 40],
            "pairs_over_cap": [6, 6, 0],
            "token_cap": [1200, 1200, 4092],
            "longest_prompt": [2766, 2766, 400],
            "adapter_sha256": ["ab" * 32] * 3,
        }
    )
    both = pd.concat([table_of(), table_of(simulated=True, source="SIMULATED-rule")])
    section = adaptation_section({"adaptation_table": both, "sft_training_log": log})
    shown = {block.id: texts(block) for block in section.blocks if isinstance(block, TableBlock)}
    assert "6 (cap 1,200 tokens)" in shown["training-table"]
    assert "0.900 to 0.100" in shown["training-table"]
    assert "50 % to 100 %" in shown["training-table"]
    assert "rule" not in shown["training-table"]
    assert "j+sft-rule" in shown["simulated-training-table"]
    # A log of before has no seconds, and nothing was held out elsewhere.
    assert "held out elsewhere" not in shown["training-table"]
    more = log.assign(seconds=[70.0, 50.0, 9.4], pairs_held_out_elsewhere=[3, 3, 0])
    section = adaptation_section({"adaptation_table": both, "sft_training_log": more})
    tables = {block.id: block for block in section.blocks if isinstance(block, TableBlock)}
    (row,) = tables["training-table"].shown.to_dict("records")
    assert (row["Time"], row["Left out, held out elsewhere"]) == ("2.0 min", "3")
    assert "9 s" in texts(tables["simulated-training-table"])


def test_one_pass_has_one_loss_and_a_null_result_says_what_would_have_been_found():
    log = pd.DataFrame(
        [
            {
                "judge_id": "j+sft",
                "source": "s",
                "epoch": 1,
                "pairs": 26,
                "pairs_over_cap": 6,
                "token_cap": 1200,
                "longest_prompt": 1899,
                "loss": 1.074,
                "train_accuracy": 0.54,
                "adapter_sha256": "ab" * 32,
            }
        ]
    )
    section = adaptation_section({"adaptation_table": table_of(), "sft_training_log": log})
    tables = {block.id: block for block in section.blocks if isinstance(block, TableBlock)}
    (row,) = tables["training-table"].rows
    assert "1.074" in row
    assert "54 %" in row
    (gains,) = [block for block in section.blocks if isinstance(block, FigureBlock)]
    assert "from 26 points" in texts(gains.table)


def test_one_budget_still_shows_the_unadapted_judge():
    row = {"method": "sft", "source": "s", "budget": "32", "accuracy": 0.5, "accuracy_base": 0.4}
    one = pd.DataFrame([row | {"sd_over_resamples": None, "n_fits": 1}])
    base = figures.efficiency(one).data[-1]
    assert (base.mode, list(base.y)) == ("markers", [40.0])
    two = pd.concat([one, one.assign(budget="64")])
    assert figures.efficiency(two).data[-1].mode == "lines"


def test_costs_are_tokens_money_and_seconds_and_say_what_is_not_known():
    row = {"judge_id": "j", "protocol": "direct", "source": "s", "work_pairs": 1_000, "accuracy": 0.6}
    units = ("tokens", "money", "seconds")
    row |= {f"{what}_{unit}": 2.5 for what in ("adapt", "pair", "total") for unit in units}
    row |= {f"best_at_its_{unit}": True for unit in units}
    trained = {"method": "sft", "budget": "32", "total_tokens": 9_000.0, "total_seconds": 5_400.0}
    trained |= {"adapt_seconds": float("nan"), "total_money": float("nan"), "best_at_its_money": pd.NA}
    costs = pd.DataFrame(
        [
            row | {"method": "base", "budget": "none", "reason": None},
            row | trained | {"reason": "training_price_unknown"},
        ]
    )
    section = adaptation_section({"adaptation_table": table_of(), "adaptation_costs": costs})
    (block,) = [one for one in section.blocks if getattr(one, "id", "") == "adaptation-cost-table"]
    base, sft = block.shown.to_dict("records")
    assert (base["A pair"], base["Money in all"]) == ("2 tokens\n2.5 s", "2.5")
    assert sft["In all"] == "9,000 tokens\n5,400 s"
    assert sft["To adapt"].endswith("seconds not known")
    assert sft["Money in all"] == "not known: what training costs is not declared"
    assert sft["Best at its cost"] == "tokens: yes, money: not known, seconds: yes"
    assert "shared between them" in block.note


def test_a_point_above_the_labels_that_there_are_says_how_many_were_used():
    row = {"method": "rubric", "source": "s", "accuracy": 0.5, "accuracy_base": 0.4, "n_fits": 2}
    row |= {"n_undefined": 0, "n_resamples": 2, "sd_over_resamples": float("nan"), "simulated": False}
    curves = pd.DataFrame(
        [
            row | {"budget": budget, "n_train": n}
            for budget, n in (("32", 32.0), ("5000", 47.0), ("full", 47.0))
        ]
    )
    section = adaptation_section({"adaptation_table": table_of(), "sample_efficiency": curves})
    (block,) = [one for one in section.blocks if getattr(one, "id", "") == "efficiency"]
    assert block.table.shown["Labels"].tolist() == ["32\n(32)", "5000\n(only 47 used)", "all\n(47)"]


def test_changes_and_controlled_changes_have_a_figure_each():
    changes = pd.DataFrame(
        [
            change_of("phi", 0.4, 0.1),
            change_of("C", float("nan"), float("nan"), reason="undefined_in_one_cell"),
            change_of("modified_wins", 0.2, 0.9, "manipulation", "length"),
            change_of("worse_wins", 0.2, 0.1, "manipulation", "injection"),
        ]
    )
    section = adaptation_section({"adaptation_table": table_of(), "adaptation_changes": changes})
    by_id = {block.id: block for block in section.blocks if isinstance(block, FigureBlock)}
    assert {"changes", "controlled"} <= set(by_id)
    assert "-30.0\n(-10.0 to +30.0)" in texts(by_id["changes"].table)
    assert "length: modified side wins" in texts(by_id["controlled"].table)
    drawn = json.loads(by_id["controlled"].figure)
    assert any("injection" in str(trace.get("y")) for trace in drawn["data"])


def test_notes_become_messages_and_commands():
    notes = pd.DataFrame(
        [
            {
                "method": "sft",
                "reason": "not_asked_for",
                "message": "no judge was fine-tuned",
                "command": "kedro run --env sft",
            },
            {"source": "tiny", "reason": "x", "message": "source tiny has 5 pairs", "command": None},
        ]
    ).reindex(columns=["method", "judge_id", "source", "budget", "reason", "message", "command"])
    section = adaptation_section({"adaptation_table": table_of(), "adaptation_notes": notes})
    missing = [block for block in section.blocks if isinstance(block, Missing)]
    prose = [block for block in section.blocks if isinstance(block, Prose)]
    assert missing[0].command == "kedro run --env sft"
    assert "tiny" in prose[0].paragraphs[0]


class TestFigures:
    def test_budgets_are_in_the_order_of_their_size(self):
        curves = pd.DataFrame(
            {
                "method": "reweighting",
                "source": "s",
                "budget": ["256", "32", "full", "64"],
                "accuracy": [0.6, 0.5, 0.7, 0.55],
                "accuracy_base": 0.5,
                "sd_over_resamples": [0.01, 0.02, float("nan"), 0.02],
                "n_fits": 3,
            }
        )
        trace = figures.efficiency(curves).data[0]
        assert list(trace.x) == ["32", "64", "256", "full"]
        assert list(trace.y) == [50.0, 55.0, 60.0, 70.0]

    def test_the_matrix_holds_what_the_table_holds(self):
        rows = pd.concat(
            [table_of(judge_id=j, source=s, delta=d) for j, s, d in (("x", "a", 1.0), ("y", "b", -2.0))]
        )
        grid = figures.matrix(rows).data[0].z
        assert [list(line) for line in grid] == [[1.0, None], [None, -2.0]]

    @pytest.mark.parametrize("low", [float("nan"), 5.0])
    def test_a_gain_without_an_interval_has_no_bar(self, low):
        rows = table_of(delta=10.0, delta_low=low, delta_high=20.0)
        bars = figures.gains(rows).data[0].error_x
        assert bars.arrayminus[0] == (0.0 if low != low else 5.0)
