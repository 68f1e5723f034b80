import base64
import gzip
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from judge_calibration.metrics.authority import AUTHORITY_COLUMNS
from judge_calibration.metrics.set_shifts import set_shifts
from judge_calibration.metrics.win_rates import WIN_RATE_COLUMNS
from judge_calibration.options.reporting import RegionOptions
from judge_calibration.report import figures, sections
from judge_calibration.report.answers import answer_for
from judge_calibration.report.authority_section import authority_section
from judge_calibration.report.blocks import TableBlock, packed_csv
from judge_calibration.report.costs_section import outcomes_section
from judge_calibration.report.page import render_page
from judge_calibration.report.people_section import people_section
from judge_calibration.report.remedies_section import remedies_section
from judge_calibration.report.wording import share_with_interval

METRICS = [
    *("C", "C2", "phi", "order_excess", "A", "A_dec", "q", "A_max"),
    *("gap", "PR", "T_product", "T_direct", "T_pair", "first_share"),
]


def trust_row(**values):
    row = {
        "source": "pair_bank",
        "judge_id": "j",
        "protocol": "direct",
        "constraint": "none",
        "temperature": 0.0,
        "instrument_id": "i",
        "view": "strict",
        "reduction": "first_read",
        "slice_by": "all",
        "slice": "all",
        "n_pairs": 40,
        "n_clusters": 40,
        "repetitions": 3,
        "undefined": "{}",
    }
    for metric in METRICS:
        row |= {metric: np.nan, f"{metric}_low": np.nan, f"{metric}_high": np.nan}
    return row | values


class TestAnswers:
    def test_a_judge_that_always_says_a_is_called_that(self):
        row = trust_row(
            C=1.0, phi=1.0, A=0.5, T_direct=0.0, T_direct_low=0.0, T_direct_high=0.09, first_share=1.0
        )
        answer = answer_for(row, {"valid": 240}, RegionOptions())
        assert answer.headline.startswith(
            "always picks the first answer; 0 % of its verdicts are trustworthy"
        )
        assert "interval 0 to 9" in answer.headline
        assert answer.tone == "bad"

    @pytest.mark.parametrize(
        ("c", "phi", "words"),
        [
            (0.99, 0.02, "repeats its verdicts and keeps them"),
            (0.99, 0.60, "repeats its verdicts but changes them with the order"),
            (0.50, 0.02, "noisy between repetitions but fair"),
            (0.50, 0.60, "between repetitions and with the order"),
        ],
    )
    def test_regions_are_worded(self, c, phi, words):
        row = trust_row(C=c, phi=phi, A=0.5, T_direct=0.3, first_share=0.5)
        assert words in answer_for(row, {"valid": 10}, RegionOptions()).headline

    def test_without_references_nothing_is_said_about_right(self):
        answer = answer_for(trust_row(C=1.0, phi=0.0, first_share=0.5), {"valid": 5}, RegionOptions())
        assert "no reference labels" in answer.headline
        assert answer.tone == "unknown"

    def test_a_judge_without_any_verdict_gets_no_number(self):
        answer = answer_for(trust_row(), {"malformed": 7, "valid": 0}, RegionOptions())
        assert answer.headline == "gave no verdict at all: 7 replies malformed."

    def test_failures_above_five_percent_are_said(self):
        row = trust_row(C=1.0, phi=0.0, T_direct=0.9, first_share=0.5)
        assert "10.0 % of its 100 judgments" in " ".join(
            answer_for(row, {"valid": 90, "refusal": 10}, RegionOptions()).details
        )


class TestWording:
    def test_undefined_is_a_reason_not_a_zero(self):
        row = trust_row(undefined=json.dumps({"C": "one_repetition"}))
        assert share_with_interval(row, "C") == "undefined: only one repetition"

    def test_a_value_without_interval_says_why(self):
        row = trust_row(C=0.5, q=0.5, undefined=json.dumps({"q_interval": "fewer_than_10_clusters"}))
        assert share_with_interval(row, "C") == "50.0 %"
        assert share_with_interval(row, "q") == "50.0 % (no interval: fewer than 10 base tasks)"
        assert share_with_interval(row, "q", noted=("fewer_than_10_clusters",)) == "50.0 %"

    def test_codes_are_said_in_words_and_given_names_stay(self):
        frame = pd.DataFrame(
            {
                "source": ["pair_bank", "my_logs"],
                "comparison": ["judge_simulated_dawid_skene", "judge_reference"],
                "against": ["dawid_skene", "annotator:a_1"],
                "slice_by": ["domain", "source"],
                "slice": ["evidence_seeking", "my_logs"],
                "method": ["clopper_pearson", ""],
                "product": ["v_1", "v_2"],
            }
        )
        said = sections.readable(frame)
        assert said.values.tolist() == [
            [
                *("pair bank", "judge with simulated labels by Dawid-Skene", "labels by Dawid-Skene"),
                *("domain", "evidence seeking", "Clopper-Pearson", "v_1"),
            ],
            [
                *("my_logs", "judge with reference", "annotator: a_1"),
                *("source", "my_logs", "–", "v_2"),
            ],
        ]


class TestDownloads:
    @pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx"])
    def test_no_cell_is_a_formula(self, text):
        packed = packed_csv(pd.DataFrame({"a": [text], "n": [-1.5]}))
        content = gzip.decompress(base64.b64decode(packed)).decode()
        assert f"'{text}" in content
        assert ",-1.5" in content


class TestPage:
    def page(self):
        evil = "<script>alert(1)</script>"
        trust = pd.DataFrame(
            [
                trust_row(judge_id=evil, C=1.0, phi=0.5, A=0.5, A_max=0.75, T_direct=0.2, first_share=0.7),
                trust_row(judge_id=evil, slice_by="domain", slice=evil, C=1.0, phi=0.5, first_share=0.7),
            ]
        )
        cell = {name: trust[name][0] for name in sections.CELL}
        outcomes = pd.DataFrame([cell | {"kind": "outcome", "name": "valid", "count": 10, "share": 1.0}])
        regions = RegionOptions()
        parts = [
            sections.trust_section(trust, regions),
            sections.slices_section(trust),
            outcomes_section({"trust_table": trust, "outcome_table": outcomes}),
            sections.instrument_section({"id": {"system_prompt": f"</script>{evil}"}}),
            sections.limits_section(sections.LIMITS),
        ]
        return render_page("Title", "Summary", sections.answers(trust, outcomes, regions), parts)

    def test_planted_scripts_do_not_run(self):
        page = self.page()
        assert "<script>alert" not in page
        assert "</script>&lt;" not in page
        # one script of the page's own; the others are packed data that no browser runs
        assert len(re.findall(r"<script>", page)) == 1
        assert len(re.findall(r"<script", page)) == 1 + len(re.findall(r'<script type="text/plain"', page))

    def test_nothing_is_asked_of_a_network(self):
        page = re.sub(r'(?s)<script type="text/plain".*?</script>', "", self.page())
        assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", page)
        assert "default-src 'none'" in page

    def test_every_region_has_a_name_of_its_own(self):
        block = TableBlock("t1", "Numbers", "", pd.DataFrame({"a": ["1"]}), pd.DataFrame({"a": [1]}))
        twice = sections.Section("s", "Numbers", "", [block, replace(block, id="t2")])
        names = re.findall(r'role="region"[^>]*aria-label="([^"]+)"', render_page("T", "S", [], [twice]))
        assert names == ["Table: Numbers", "Table: Numbers (2)"]

    def test_equal_input_gives_equal_bytes_under_5_megabytes(self):
        page = self.page()
        assert page == self.page()
        assert len(page.encode()) < 5_000_000

    def test_a_section_without_data_names_the_command(self):
        empty = pd.DataFrame([trust_row()]).iloc[:0]
        block = sections.trust_section(empty, RegionOptions()).blocks[0]
        assert block.command == "kedro run --pipeline judging"


class TestIsoTrust:
    def test_marks_stand_at_c_and_a_minus_phi_q_of_decisive_pairs(self):
        trust = pd.DataFrame(
            [
                trust_row(C=0.2, PR=0.3, T_product=0.06),
                trust_row(slice_by="reference", slice="decisive", C=0.8, PR=0.5, T_product=0.4),
            ]
        )
        figure = figures.iso_trust(sections.decisive_rows(trust))
        mark = [trace for trace in figure.data if trace.mode == "markers"]
        assert [(trace.x[0], trace.y[0]) for trace in mark] == [(80.0, 50.0)]
        assert len([trace for trace in figure.data if trace.mode == "lines"]) == 9

    def test_on_a_curve_the_product_is_the_same(self):
        figure = figures.iso_trust(pd.DataFrame([trust_row(C=0.8, PR=0.5)]).iloc[:0])
        for trace, tenths in zip(figure.data, range(1, 10), strict=True):
            products = [x * y / 1000 for x, y in zip(trace.x, trace.y, strict=True) if y is not None]
            assert products == pytest.approx([tenths] * len(products), rel=1e-2)

    def test_the_section_shows_it_with_its_table(self):
        trust = pd.DataFrame([trust_row(C=0.8, PR=0.5, T_product=0.4)])
        blocks = {
            getattr(block, "id", ""): block for block in sections.trust_section(trust, RegionOptions()).blocks
        }
        assert blocks["iso-trust"].table.shown.iloc[0, 2] == "80.0 %"

    def test_without_repetitions_there_is_no_such_figure(self):
        trust = pd.DataFrame([trust_row(PR=0.5)])
        assert "iso-trust" not in {
            getattr(b, "id", "") for b in sections.trust_section(trust, RegionOptions()).blocks
        }


def test_the_page_shows_the_shift_between_the_sets_and_the_refused_win_rates():
    verdicts = pd.DataFrame({"pair_id": ["p1"]})
    pairs = pd.DataFrame({"pair_id": ["p1", "p2"], "domain": ["law", "art"], "question": ["a", "b"]})
    authority = pd.DataFrame([dict.fromkeys(AUTHORITY_COLUMNS, "x")])
    authority = authority.assign(earned=False, reason="no_pairs", rule="ours", temperature=0.0)
    tables = {
        "authority": authority,
        "calibration_shift": set_shifts(verdicts, pairs),
        "trust_table": pd.DataFrame([trust_row()]),
    }
    section = authority_section(tables)
    assert "shift-table" in {block.id for block in section.blocks if block.kind == "table"}
    refused = pd.DataFrame([dict.fromkeys(WIN_RATE_COLUMNS)]).assign(reason="no_settled_labels")
    section = people_section({"prediction_powered": refused, "trust_table": pd.DataFrame([trust_row()])})
    missing = [block.what for block in section.blocks if block.kind == "missing"]
    assert any("no settled labels" in what for what in missing)


def test_result_tables_are_in_words_with_their_intervals():
    frame = pd.DataFrame(
        {
            "slice_by": ["all"] * 2,
            "comparison": ["annotator_dawid_skene"] * 2,
            "value": [0.5, 0.75],
            "low": [0.25, None],
            "high": [0.625, None],
            "n_clusters": [12, 4],
        }
    )
    shown = sections.readable(frame)
    assert list(shown.columns) == ["Comparison", "Value", "Base tasks"]
    assert shown["Value"].tolist() == ["0.5\n(0.25 to 0.625)", "0.75"]
    assert shown["Comparison"].iloc[0] == "annotator with labels by Dawid-Skene"


def test_a_named_slice_stays_in_a_result_table():
    frame = pd.DataFrame({"slice_by": ["all"], "slice": ["math"], "criterion": ["order_consistency"]})
    shown = sections.readable(frame)
    assert shown.to_dict("list") == {"Slice": ["math"], "Criterion": ["order consistency"]}


def test_the_first_56_marks_of_a_figure_differ():
    marks = {
        (figures.PALETTE[n % len(figures.PALETTE)], figures.SYMBOLS[n % len(figures.SYMBOLS)])
        for n in range(56)
    }
    assert len(marks) == 56


def test_a_difference_has_a_term_a_line():
    assert figures.wrapped("a, t = 0 less b, t = 1") == "a, t = 0<br>less b, t = 1"


@pytest.mark.parametrize(("kind", "told"), [("simulated", True), ("human", False)])
def test_the_map_says_that_simulated_labels_do_not_count(kind, told):
    cell = {name: trust_row()[name] for name in sections.CELL if name != "source"}
    rule = {"rule": "r", "rule_status": "declared", "critical": False, "slice": "math"}
    row = dict.fromkeys(AUTHORITY_COLUMNS) | cell | rule
    frame = pd.DataFrame(
        [
            row | {"criterion": "agreement", "reason": "no_human_labels", "earned": False},
            row | {"criterion": "all", "reason": "agreement: no_human_labels", "earned": False},
        ]
    )
    labels = pd.DataFrame({"pair_id": ["p"], "label": ["A"], "kind": [kind]})
    tables = {"authority": frame, "labels": labels, "trust_table": pd.DataFrame([trust_row()])}
    (shown,) = (block for block in authority_section(tables).blocks if block.kind == "map")
    text = shown.lines[0][1][1].text
    assert text.startswith("not measured: no human labels")
    assert ("simulated ones do not count" in text) == told


def test_remedies_say_why_both_orders_may_lie_below_none():
    cell = {name: trust_row()[name] for name in sections.CELL}
    row = cell | {"statistic": "trustworthy", "votes": 1, "n_pairs": 40, "low": np.nan, "high": np.nan}
    row |= {"verified": np.nan, "verified_pairs": 0, "verified_reason": "predicted_only"}
    frame = pd.DataFrame(
        [
            row | {"remedy": "none", "calls_per_verdict": 1, "predicted": 0.4},
            row | {"remedy": "both_orders", "calls_per_verdict": 2, "predicted": 0.3},
        ]
    )
    block = remedies_section({"remedies": frame, "trust_table": pd.DataFrame([trust_row()])}).blocks[0]
    assert "four reads, where none takes three" in block.note
    names = [trace["name"] for trace in json.loads(block.figure)["data"]]
    assert names == ["none (1x calls)", "both orders (2x calls)"]
