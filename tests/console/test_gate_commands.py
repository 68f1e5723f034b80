"""`kedro gate` and `kedro sentinel`: every outcome, every reason to pause, and what is refused."""

import json

import pandas as pd
import pytest
from command_tables import make_labels, make_pairs, make_verdicts

from judge_calibration.metrics.decision_rule import read_rule, rule_hash

RULE = {
    "name": "release rule 7",
    "claim": "improvement",
    "slice_by": ["domain"],
    "critical_slices": ["math"],
    "floors": {"agreement": 0.7, "order_consistency": 0.7},
    "exempt": {},
    "min_tasks": 20,
    "min_human_tasks": 10,
    "min_valid_share": 0.9,
    "sentinel": {"max_changed": 0.1, "accuracy_margin": 0.1, "min_tasks": 20},
}
HASH = rule_hash(read_rule(RULE))
NEW, OLD, EVEN = ["B"] * 30 + ["A"] * 10, ["A"] * 30 + ["B"] * 10, ["A", "B"] * 20
CALIBRATED, AGAIN, PRODUCT = (f"2026-11-{day}T10.00.00.000Z" for day in ("01", "10", "20"))


def times(run_id: str) -> tuple[str, str]:
    """The dates of a run's first and last call."""
    day = run_id[:10]
    return f"{day}T10:00:01.000000+00:00", f"{day}T10:05:00.000000+00:00"


@pytest.fixture
def gated(tool_project):
    """A project with a declared rule, a calibrated judge and a stable sentinel; products still to come."""
    tool_project.write("conf/base/reporting/parameters.yml", json.dumps({"reporting": {"rule": RULE}}))
    known = make_pairs(60, "c", sentinel=True, reference_label="A", reference_kind="human")
    verdicts = make_verdicts(known, ["A"] * 60)
    tables = {"pairs": known, "verdicts": verdicts, "judged_verdicts": verdicts}
    tool_project.add_run(CALIBRATED, tables, rule=HASH, calls=times(CALIBRATED))
    tool_project.add_run(AGAIN, tables, "sentinel", rule=HASH, calls=times(AGAIN))
    return tool_project


def add_products(project, judge=NEW, people=NEW, rule=HASH, judged=True, **columns):
    """Add the run with both products' answers."""
    pairs = make_pairs(40, candidate_a="old", candidate_b="new", **columns)
    verdicts = make_verdicts(pairs, list(judge))
    asked = verdicts if judged else verdicts.iloc[:0]
    tables = {
        "pairs": pairs,
        "verdicts": verdicts,
        "judged_verdicts": asked,
        "labels": make_labels(pairs, list(people)),
    }
    project.add_run(PRODUCT, tables, "release", rule, times(PRODUCT) if judged else (None, None))
    (project.root / "conf" / "release").mkdir(exist_ok=True)


def decide(project, *arguments):
    result = project.kedro("gate", "--env", "release", "--json", *arguments)
    return result, json.loads(result.stdout) if result.stdout else None


class TestOutcomes:
    @pytest.mark.parametrize(
        ("judge", "people", "outcome", "code"),
        [
            (NEW, NEW, "pass", 0),
            (OLD, OLD, "fail", 1),
            (EVEN, NEW, "inconclusive", 3),
            (NEW, OLD, "conflict", 3),
            (NEW, [], "inconclusive", 3),
        ],
    )
    def test_exit_code_and_document(self, gated, judge, people, outcome, code):
        add_products(gated, judge, people)
        result, document = decide(gated)
        assert result.exit_code == code, result.output
        assert (document["outcome"], document["exit_code"]) == (outcome, code)
        assert document["rule"] == {
            "name": "release rule 7",
            "sha256": HASH,
            "status": "the rule was declared before judging",
        }
        assert document["runs"] == {"product": PRODUCT, "calibration": CALIBRATED, "sentinel": AGAIN}
        assert document["sentinel"]["status"] == "stable"
        assert document["authority"] == {"math": "earned"}

    def test_a_page_json_and_table_are_kept_with_checksums(self, gated):
        add_products(gated, NEW, OLD)
        result = gated.kedro("gate", "--env", "release")
        assert result.exit_code == 3
        assert "judge_for_humans_against: math" in result.output
        assert "40 pairs wait in the audit queue" in result.output
        kept = {path.name for path in gated.files_below("08_reporting")}
        assert {"gate_decision.json", "gate_decision.html", "gate_decision.parquet"} <= kept
        assert {"gate_decision.csv", "gate_decision.html.sha256"} <= kept
        assert gated.kedro("audit").exit_code == 0
        page = next(p for p in gated.files_below("08_reporting") if p.name == "gate_decision.html")
        text = page.read_text("utf-8")
        assert "May the new product ship?" in text
        assert "contradict each other" in text

    def test_a_planted_script_in_a_product_name_does_not_run(self, gated):
        add_products(gated)
        evil = "<script>alert(1)</script>"
        pairs = make_pairs(40, candidate_a="old", candidate_b=evil)
        verdicts = make_verdicts(pairs, NEW)
        run = "2026-11-21T10.00.00.000Z"
        tables = {"pairs": pairs, "verdicts": verdicts, "labels": make_labels(pairs, NEW)}
        gated.add_run(run, tables, "release", HASH, times(run))
        result, _ = decide(gated, "--new", evil)
        assert result.exit_code == 3, result.output
        for path in gated.files_below("08_reporting"):
            if path.name == "gate_decision.html":
                assert evil not in path.read_text("utf-8")


class TestAuditQueue:
    """What a person should look at first, as a table, a page and blinded packets."""

    # Ten pairs on which the orders contradict each other, five abstentions, five failures.
    SAID = ["B"] * 20 + ["ABSTAIN"] * 5 + [None] * 5

    @pytest.fixture
    def decided(self, gated):
        pairs = make_pairs(40, candidate_a="old", candidate_b="new")
        torn = make_verdicts(pairs.tail(10), ["A"] * 10)
        torn.loc[torn["order"] == "BA", "verdict"] = "B"
        verdicts = pd.concat([make_verdicts(pairs.head(30), self.SAID), torn], ignore_index=True)
        tables = {"pairs": pairs, "verdicts": verdicts, "judged_verdicts": verdicts}
        tables["labels"] = make_labels(pairs.head(20), ["B"] * 15 + ["A"] * 5)
        gated.add_run(PRODUCT, tables, "release", HASH, times(PRODUCT))
        (gated.root / "conf" / "release").mkdir()
        result, document = decide(gated)
        found = {path.name: path for path in gated.files_below("08_reporting")}
        return gated, result, document, found

    def test_every_reason_is_queued_and_counted(self, decided):
        _, _, document, found = decided
        queue = pd.read_parquet(found["gate_audit.parquet"])
        assert queue["reasons"].value_counts().to_dict() == {
            '["contradiction"]': 10,
            '["disagrees_with_people"]': 5,
            '["abstention"]': 5,
            '["failed_outcome"]': 5,
        }
        assert document["audit"] == {"with_a_reason": 25, "queued": 25}
        page = found["gate_decision.html"].read_text("utf-8")
        assert "the two orders name opposite answers" in page
        assert "gate_audit.html" in page

    def test_packets_are_blind_and_the_key_opens_them(self, decided):
        project, _, _, found = decided
        sheets = [
            path
            for path in project.files_below("08_reporting")
            if path.suffix == ".csv" and "gate_audit_packets" in path.parts
        ]
        (sheet,) = sheets
        rows = pd.read_csv(sheet, encoding="utf-8-sig")
        key = pd.read_parquet(found["gate_audit_key.parquet"])
        assert sorted(rows["packet_id"]) == sorted(key["packet_id"])
        assert len(key) == 25
        shown = rows.drop(columns=["packet_id", "sequence", "source_packet"]).dropna(axis=1, how="all")
        # Every pair has the same texts here: nothing but the order of the answers differs.
        assert set(shown.columns) == {"question", "answer_a", "answer_b"}
        assert len(shown.drop_duplicates()) == 2
        assert "gate_audit_key.csv" not in found
        assert project.kedro("audit").exit_code == 0

    def test_a_conflict_is_a_reason_of_its_own(self, gated):
        add_products(gated, NEW, OLD)
        decide(gated)
        path = next(p for p in gated.files_below("08_reporting") if p.name == "gate_audit.parquet")
        reasons = pd.read_parquet(path)["reasons"]
        assert reasons.tolist() == ['["gate_conflict", "disagrees_with_people"]'] * 40

    def test_nothing_to_look_at_gives_no_packets(self, gated):
        add_products(gated, NEW, NEW)
        result = gated.kedro("gate", "--env", "release")
        assert result.exit_code == 0
        assert "audit queue" not in result.output
        assert not any("gate_audit_packets" in str(p) for p in gated.files_below("08_reporting"))


class TestPauses:
    def reasons(self, project, *arguments):
        result, document = decide(project, *arguments)
        assert result.exit_code == 3, result.output
        return document["reasons"]

    def test_another_instrument_than_the_calibrated_one(self, gated):
        add_products(gated)
        verdicts = make_verdicts(make_pairs(40), NEW, instrument_id="instrument-2")
        pairs = make_pairs(40, candidate_a="old", candidate_b="new")
        run = "2026-11-21T10.00.00.000Z"
        tables = {"pairs": pairs, "verdicts": verdicts, "judged_verdicts": verdicts}
        gated.add_run(run, {**tables, "labels": make_labels(pairs, NEW)}, "release", HASH, times(run))
        reasons = self.reasons(gated)
        assert "not_calibrated: instrument instrument-2" in reasons
        assert "sentinel_not_run" in reasons
        assert "not_earned: math (never_calibrated)" in reasons

    def test_never_calibrated_at_all(self, gated):
        add_products(gated)
        reasons = self.reasons(gated, "--params", "gate.calibration_environment=elsewhere")
        assert "not_calibrated: instrument instrument-1" in reasons

    def test_too_few_people(self, gated):
        pairs = make_pairs(40, candidate_a="old", candidate_b="new")
        verdicts = make_verdicts(pairs, NEW)
        tables = {"pairs": pairs, "verdicts": verdicts, "judged_verdicts": verdicts}
        tables["labels"] = make_labels(pairs.head(5), ["B"] * 5)
        gated.add_run(PRODUCT, tables, "release", HASH, times(PRODUCT))
        (gated.root / "conf" / "release").mkdir()
        assert self.reasons(gated) == ["humans_unsettled: math (too_few)"]

    def test_high_stakes_need_people(self, gated):
        add_products(gated, people=[], stakes="medical")
        assert any(reason.startswith("high_stakes: medical needs people") for reason in self.reasons(gated))

    def test_a_drifted_sentinel(self, gated):
        known = make_pairs(60, "c", sentinel=True, reference_label="A", reference_kind="human")
        changed = make_verdicts(known, ["B"] * 40 + ["A"] * 20)
        run = "2026-11-11T10.00.00.000Z"
        gated.add_run(run, {"pairs": known, "verdicts": changed}, "sentinel", HASH, times(run))
        add_products(gated)
        assert "drifted" in self.reasons(gated)

    def test_a_sentinel_that_was_not_asked_again_counts_as_not_run(self, gated):
        known = make_pairs(60, "c", sentinel=True, reference_label="A", reference_kind="human")
        tables = {"pairs": known, "verdicts": make_verdicts(known, ["A"] * 60)}
        gated.add_run("2026-11-11T10.00.00.000Z", tables, "sentinel", HASH, times(CALIBRATED))
        add_products(gated)
        assert "sentinel_not_run" in self.reasons(gated)

    def test_a_rule_that_was_changed_after_judging(self, gated):
        add_products(gated, rule="0" * 64)
        assert "rule_changed_after_judging" in self.reasons(gated)

    def test_a_second_run_on_kept_answers_does_not_launder_a_new_rule(self, gated):
        add_products(gated, rule="0" * 64)
        later = "2026-11-22T10.00.00.000Z"
        pairs = make_pairs(40, candidate_a="old", candidate_b="new")
        verdicts = make_verdicts(pairs, NEW)
        tables = {"pairs": pairs, "verdicts": verdicts, "judged_verdicts": verdicts}
        tables["labels"] = make_labels(pairs, NEW)
        # The same rule is in this run's manifest, but its first call was asked two days before it.
        gated.add_run(later, tables, "release", HASH, times(PRODUCT))
        assert self.reasons(gated) == ["rule_changed_after_judging"]

    def test_a_rule_that_was_not_there_when_judging_started(self, gated):
        add_products(gated, rule=None)
        assert self.reasons(gated) == ["rule_not_recorded_at_judging: exploratory"]

    def test_replayed_logs_are_exploratory(self, gated):
        add_products(gated, judged=False)
        assert self.reasons(gated) == ["rule_after_verdicts: exploratory"]

    def test_labels_that_came_after_the_verdicts_count(self, gated):
        add_products(gated, people=[])
        assert self.reasons(gated) == ["humans_absent: math (no_human_labels)"]
        pairs = make_pairs(40)
        gated.add_run("2026-11-25T10.00.00.000Z", {"labels": make_labels(pairs, NEW)}, "release", HASH)
        assert gated.kedro("gate", "--env", "release").exit_code == 0

    def test_labels_of_a_simulated_panel_are_nobodys(self, gated):
        pairs = make_pairs(40, candidate_a="old", candidate_b="new")
        verdicts = make_verdicts(pairs, NEW)
        tables = {"pairs": pairs, "verdicts": verdicts, "judged_verdicts": verdicts}
        tables["labels"] = make_labels(pairs, NEW).assign(kind="simulated")
        gated.add_run(PRODUCT, tables, "release", HASH, times(PRODUCT))
        (gated.root / "conf" / "release").mkdir()
        assert self.reasons(gated) == ["humans_absent: math (no_human_labels)"]


class TestRefusals:
    def test_the_example_rule(self, tool_project):
        result = tool_project.kedro("gate", "--env", "test")
        assert result.exit_code == 2
        assert "shipped example" in result.stderr
        assert not tool_project.files_below("08_reporting")

    def test_no_run(self, gated):
        result = gated.kedro("gate", "--env", "test")
        assert result.exit_code == 2
        assert "kedro run --env test" in result.stderr

    def test_a_product_that_nobody_compared(self, gated):
        add_products(gated)
        result = gated.kedro("gate", "--env", "release", "--new", "v9")
        assert result.exit_code == 4
        assert "v9" in result.stderr

    def test_several_judges(self, gated):
        add_products(gated)
        pairs = make_pairs(40, candidate_a="old", candidate_b="new")
        both = pd.concat([make_verdicts(pairs, NEW), make_verdicts(pairs, NEW, judge_id="b")])
        run = "2026-11-21T10.00.00.000Z"
        tables = {"pairs": pairs, "verdicts": both, "judged_verdicts": both}
        gated.add_run(run, {**tables, "labels": make_labels(pairs, NEW)}, "release", HASH, times(run))
        assert gated.kedro("gate", "--env", "release").exit_code == 4
        chosen = gated.kedro("gate", "--env", "release", "--params", "gate.judge.judge_id=judge")
        assert chosen.exit_code == 0, chosen.output

    def test_a_damaged_table_decides_nothing(self, gated):
        add_products(gated)
        path = next(
            p for p in gated.files_below("04_feature") if PRODUCT in str(p) and p.suffix == ".parquet"
        )
        path.write_bytes(path.read_bytes()[:-1] + b"x")
        assert gated.kedro("gate", "--env", "release").exit_code == 4

    def test_a_crash_is_no_verdict(self, gated, monkeypatch):
        from judge_calibration.session import gating

        add_products(gated)
        monkeypatch.setattr(gating, "two_key_gate", lambda *_: 1 / 0)
        result = gated.kedro("gate", "--env", "release")
        assert result.exit_code == 4
        assert "ZeroDivisionError" in result.stderr

    def test_a_wrong_parameter(self, gated):
        result = gated.kedro("gate", "--params", "gate.judges=1")
        assert result.exit_code == 2
        assert "gate.judges" in result.stderr


class TestSentinel:
    def add(self, project, said, run="2026-11-11T10.00.00.000Z", calls=None, n=60):
        known = make_pairs(n, "c", sentinel=True, reference_label="A", reference_kind="human")
        tables = {"pairs": known, "verdicts": make_verdicts(known, said)}
        project.add_run(run, tables, "sentinel", HASH, calls or times(run))

    def test_stable(self, gated):
        result = gated.kedro("sentinel")
        assert result.exit_code == 0, result.output
        assert "stable" in result.output
        assert gated.kedro("audit").exit_code == 0

    def test_drift(self, gated):
        self.add(gated, ["B"] * 40 + ["A"] * 20)
        result = gated.kedro("sentinel", "--json")
        assert result.exit_code == 1
        document = json.loads(result.stdout)
        assert document["exit_code"] == 1
        assert document["cells"][0]["status"] == "drift"
        changed = document["cells"][0]["measures"][0]
        # 40 of 60 verdicts, one repetition, so no noise is subtracted.
        assert changed["value"] == pytest.approx(40 / 60)

    def test_too_few(self, gated):
        self.add(gated, ["A"] * 60)
        rule = {**RULE, "sentinel": {**RULE["sentinel"], "min_tasks": 100}}
        gated.write("conf/base/reporting/parameters.yml", json.dumps({"reporting": {"rule": rule}}))
        assert gated.kedro("sentinel").exit_code == 3

    def test_answers_of_the_frozen_run_prove_nothing(self, gated):
        self.add(gated, ["A"] * 60, calls=times(CALIBRATED))
        result = gated.kedro("sentinel")
        assert result.exit_code == 3
        assert "not_asked_again" in result.output

    def test_two_runs_by_name(self, gated):
        self.add(gated, ["B"] * 60)
        assert gated.kedro("sentinel", AGAIN, "--frozen", CALIBRATED).exit_code == 0

    def test_an_unknown_run_is_a_usage_error(self, gated):
        assert gated.kedro("sentinel", "yesterday").exit_code == 2
