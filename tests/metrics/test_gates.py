"""The gates: every outcome and every reason to pause, authority by slice, the sentinel, false alarms."""

import numpy as np
import pandas as pd
import pytest

from judge_calibration.errors import GateInputError, RuleRefusedError
from judge_calibration.metrics.authority import (
    ALL,
    AUTHORITY_COLUMNS,
    authority_table,
    calibration_shift,
    earned_slices,
    tasks_to_settle,
)
from judge_calibration.metrics.clustered_mean import clustered_mean, clustered_share
from judge_calibration.metrics.decision_rule import check_rule, read_rule, rule_hash, rule_status
from judge_calibration.metrics.sentinel import compare_sentinel
from judge_calibration.metrics.two_key_gate import human_keys, judge_key, two_key_gate
from judge_calibration.options.gates import DecisionRule, SentinelRule

RULE = {
    "name": "release rule 7",
    "claim": "improvement",
    "slice_by": ["domain"],
    "critical_slices": ["math"],
    "floors": {"agreement": 0.7, "order_consistency": 0.7},
    "min_tasks": 20,
    "min_human_tasks": 10,
    "min_valid_share": 0.9,
    "sentinel": {"max_changed": 0.1, "accuracy_margin": 0.1, "min_tasks": 20},
}


def rule(**changes) -> DecisionRule:
    return read_rule({**RULE, **changes})


def product_pairs(n=40, domain="math", stakes="ordinary", per_task=1, start=0):
    index = np.arange(start, start + n)
    return pd.DataFrame(
        {
            "pair_id": [f"p{i}" for i in index],
            "base_id": [f"t{i // per_task}" for i in index],
            "source": "product",
            "domain": domain,
            "stakes": stakes,
            "candidate_a": "old",
            "candidate_b": "new",
            "reference_label": None,
        }
    )


def verdicts_of(pairs, first, second, **columns):
    """Return one judge's verdicts: `first` in order AB, `second` in order BA; None is a failure."""
    parts = []
    for order, said in (("AB", first), ("BA", second)):
        part = pd.DataFrame({"pair_id": pairs["pair_id"], "order": order, "verdict": list(said)})
        parts.append(part)
    frame = pd.concat(parts, ignore_index=True)
    frame["outcome"] = np.where(frame["verdict"].isna(), "malformed", "valid")
    about = {
        "judge_id": "judge",
        "instrument_id": "instrument-1",
        "protocol": "holistic",
        "constraint": "none",
        "temperature": 0.0,
        "repetition": 0,
    }
    return frame.assign(**(about | columns))


def labels_of(pairs, said, **columns):
    return pd.DataFrame({"pair_id": pairs["pair_id"], "label": list(said)}).assign(**columns)


def gate(verdicts, pairs, labels, the_rule=None, **changes):
    arguments = {
        "authority": {"math": "earned"},
        "calibrated_instruments": ["instrument-1"],
        "sentinel": "stable",
    }
    return two_key_gate(verdicts, pairs, labels, the_rule or rule(), "old", "new", **(arguments | changes))


MOSTLY_NEW = ["B"] * 30 + ["A"] * 10
MOSTLY_OLD = ["A"] * 30 + ["B"] * 10
EVEN = ["A", "B"] * 20


@pytest.fixture
def pairs():
    return product_pairs()


class TestRule:
    def test_example_is_refused(self):
        with pytest.raises(RuleRefusedError, match="shipped example"):
            check_rule(rule(name="EXAMPLE: choose your own"))

    def test_hash_changes_with_any_value(self):
        assert rule_hash(rule()) == rule_hash(rule())
        assert rule_hash(rule()) != rule_hash(rule(alpha=0.04))

    def test_status(self):
        recorded = rule_hash(rule())
        assert rule_status(rule(), recorded) == "declared"
        assert rule_status(rule(alpha=0.01), recorded) == "rule_changed_after_judging"
        assert rule_status(rule(), recorded, replayed=True) == "exploratory"
        assert rule_status(rule(), None) == "not_recorded"

    @pytest.mark.parametrize(
        ("changes", "match"),
        [
            ({"margin": 0.1}, "no_regression"),
            ({"claim": "no_regression"}, "how much worse"),
            ({"floors": {}}, "at least one criterion"),
            ({"floors": {"agreement": 1.0}}, "below 1"),
            ({"floors": {"charm": 0.5}}, "floors.charm"),
            ({"critical_slices": []}, "slices that decide"),
            ({"unknown": 1}, "unknown"),
        ],
    )
    def test_contradictions_are_refused(self, changes, match):
        with pytest.raises(RuleRefusedError, match=match):
            rule(**changes)

    def test_all_problems_together(self):
        with pytest.raises(RuleRefusedError) as caught:
            read_rule({"name": "x"})
        assert len(caught.value.problems) >= 6


class TestOutcomes:
    def test_pass(self, pairs):
        decision = gate(verdicts_of(pairs, MOSTLY_NEW, MOSTLY_NEW), pairs, labels_of(pairs, MOSTLY_NEW))
        assert (decision.outcome, decision.reasons) == ("pass", ())
        assert decision.judge.net == 0.5
        assert decision.judge.low > 0
        assert decision.rule_hash == rule_hash(rule())
        frame = decision.frame()
        assert frame["key"].tolist() == ["judge", "human"]

    def test_fail(self, pairs):
        decision = gate(verdicts_of(pairs, MOSTLY_OLD, MOSTLY_OLD), pairs, labels_of(pairs, MOSTLY_OLD))
        assert decision.outcome == "fail"
        assert decision.reasons[0].startswith("judge_against")

    def test_inconclusive_judge(self, pairs):
        decision = gate(verdicts_of(pairs, EVEN, EVEN), pairs, labels_of(pairs, MOSTLY_NEW))
        assert decision.outcome == "inconclusive"
        assert "judge_unsettled: bounds_hold_the_threshold" in decision.reasons

    def test_inconclusive_humans(self, pairs):
        decision = gate(verdicts_of(pairs, MOSTLY_NEW, MOSTLY_NEW), pairs, labels_of(pairs, EVEN))
        assert decision.outcome == "inconclusive"
        assert decision.reasons == ("humans_unsettled: math (bounds_hold_the_threshold)",)

    def test_conflict_fills_the_audit_queue(self, pairs):
        decision = gate(verdicts_of(pairs, MOSTLY_NEW, MOSTLY_NEW), pairs, labels_of(pairs, MOSTLY_OLD))
        assert decision.outcome == "conflict"
        assert decision.reasons == ("judge_for_humans_against: math",)
        # The judge prefers new on pairs 0 to 29, people old on 0 to 29 and new on 30 to 39: all differ.
        assert len(decision.audit_pairs) == 40

    def test_conflict_the_other_way(self, pairs):
        decision = gate(verdicts_of(pairs, MOSTLY_OLD, MOSTLY_OLD), pairs, labels_of(pairs, MOSTLY_NEW))
        assert (decision.outcome, decision.reasons) == ("conflict", ("judge_against_humans_for",))

    def test_no_regression_tolerates_its_margin(self, pairs):
        even = verdicts_of(pairs, ["TIE"] * 40, ["TIE"] * 40)
        labels = labels_of(pairs, ["TIE"] * 40)
        tolerant = rule(claim="no_regression", margin=0.1, human_margin=0.1)
        assert gate(even, pairs, labels, tolerant).outcome == "pass"
        assert gate(even, pairs, labels).outcome == "inconclusive"

    def test_sides_may_be_exchanged(self, pairs):
        flipped = pairs.assign(candidate_a="new", candidate_b="old")
        decision = gate(verdicts_of(flipped, MOSTLY_OLD, MOSTLY_OLD), flipped, labels_of(flipped, MOSTLY_OLD))
        assert decision.outcome == "pass"


class TestPauses:
    @pytest.fixture
    def passing(self, pairs):
        return verdicts_of(pairs, MOSTLY_NEW, MOSTLY_NEW), pairs, labels_of(pairs, MOSTLY_NEW)

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"authority": {}}, "not_earned: math (never_calibrated)"),
            (
                {"authority": {"math": "agreement: below_floor"}},
                "not_earned: math (agreement: below_floor)",
            ),
            ({"calibrated_instruments": ["another"]}, "not_calibrated: instrument instrument-1"),
            ({"sentinel": "drift"}, "drifted"),
            ({"sentinel": "too_few"}, "sentinel_too_few"),
            ({"sentinel": None}, "sentinel_not_run"),
            ({"rule_state": "rule_changed_after_judging"}, "rule_changed_after_judging"),
            ({"rule_state": "exploratory"}, "rule_after_verdicts: exploratory"),
        ],
    )
    def test_pauses_whatever_the_numbers(self, passing, changes, reason):
        decision = gate(*passing, **changes)
        assert decision.outcome == "inconclusive"
        assert reason in decision.reasons

    def test_a_pause_does_not_hide_a_conflict(self, pairs):
        decision = gate(
            verdicts_of(pairs, MOSTLY_NEW, MOSTLY_NEW),
            pairs,
            labels_of(pairs, MOSTLY_OLD),
            sentinel="drift",
        )
        assert decision.outcome == "conflict"
        assert "drifted" in decision.reasons

    def test_high_stakes_never_pass_on_the_judge_alone(self, passing):
        verdicts, pairs, labels = passing
        medical = product_pairs(20, "health", "medical", start=100)
        both = pd.concat([pairs, medical], ignore_index=True)
        said = verdicts_of(medical, ["B"] * 20, ["B"] * 20)
        decision = gate(pd.concat([verdicts, said], ignore_index=True), both, labels)
        assert decision.outcome == "inconclusive"
        assert decision.reasons == ("high_stakes: medical needs people (no_human_labels)",)
        confirmed = pd.concat([labels, labels_of(medical, ["B"] * 20)], ignore_index=True)
        assert gate(pd.concat([verdicts, said]), both, confirmed).outcome == "pass"

    def test_too_few_tasks(self):
        few = product_pairs(10)
        decision = gate(verdicts_of(few, ["B"] * 10, ["B"] * 10), few, labels_of(few, ["B"] * 10))
        assert decision.outcome == "inconclusive"
        assert "judge_unsettled: too_few" in decision.reasons

    def test_too_few_labels(self, passing):
        verdicts, pairs, labels = passing
        decision = gate(verdicts, pairs, labels.iloc[:5])
        assert decision.reasons == ("humans_unsettled: math (too_few)",)

    def test_no_labels(self, passing):
        verdicts, pairs, labels = passing
        assert gate(verdicts, pairs, labels.iloc[:0]).reasons == ("humans_absent: math (no_human_labels)",)

    def test_rows_of_one_task_are_no_evidence_of_many(self):
        dependent = product_pairs(40, per_task=4)
        decision = gate(
            verdicts_of(dependent, MOSTLY_NEW, MOSTLY_NEW), dependent, labels_of(dependent, MOSTLY_NEW)
        )
        assert "judge_unsettled: too_few" in decision.reasons

    def test_many_failures(self, pairs):
        said = [None] * 8 + MOSTLY_NEW[8:]
        decision = gate(verdicts_of(pairs, said, said), pairs, labels_of(pairs, MOSTLY_NEW))
        assert "judge_unsettled: too_many_failures" in decision.reasons
        assert decision.judge.failures == 16

    def test_failures_that_would_decide(self, pairs):
        said = ["B"] * 21 + ["A"] * 9 + ["TIE"] * 6 + [None] * 4
        lenient = rule(min_valid_share=0.5)
        decision = gate(verdicts_of(pairs, said, said), pairs, labels_of(pairs, MOSTLY_NEW), lenient)
        assert decision.judge.reason == "failures_decide"

    def test_one_order_only(self, passing):
        verdicts, pairs, labels = passing
        decision = gate(verdicts[verdicts["order"] == "AB"], pairs, labels)
        assert decision.judge.reason == "one_order"
        assert decision.outcome == "inconclusive"

    def test_position_bias_moves_nothing(self, pairs):
        # The second position wins always: "B" in order AB, "A" in order BA.
        decision = gate(verdicts_of(pairs, ["B"] * 40, ["A"] * 40), pairs, labels_of(pairs, MOSTLY_NEW))
        assert decision.judge.net == 0
        assert decision.outcome == "inconclusive"

    def test_example_rule_is_refused(self, passing):
        with pytest.raises(RuleRefusedError, match="EXAMPLE"):
            gate(*passing, rule(name="EXAMPLE"))


class TestInput:
    def test_products_have_to_be_there(self, pairs):
        verdicts = verdicts_of(pairs, EVEN, EVEN)
        with pytest.raises(GateInputError, match="pairs of v1 and v2"):
            judge_key(verdicts, pairs, rule(), "v1", "v2")

    def test_one_judge(self, pairs):
        two = pd.concat([verdicts_of(pairs, EVEN, EVEN), verdicts_of(pairs, EVEN, EVEN, judge_id="other")])
        with pytest.raises(GateInputError, match="2 cells"):
            judge_key(two, pairs, rule(), "old", "new")

    def test_abstentions_attributes_and_adjudication(self, pairs):
        some = pairs.iloc[:12]
        labels = pd.concat(
            [
                labels_of(some, ["A"] * 12, attribute=None, stage="primary"),
                labels_of(some, ["B"] * 12, attribute=None, stage="adjudication"),
                labels_of(some, ["A"] * 12, attribute="clarity", stage="primary"),
                labels_of(pairs.iloc[12:20], ["ABSTAIN"] * 8, attribute=None, stage="primary"),
            ]
        )
        key = human_keys(labels, pairs, rule(), "old", "new")[0]
        assert (key.wins, key.losses, key.n) == (12, 0, 12)


def calibration(domains=("math", "law"), tasks=40, wrong=0.05, flips=0.0, seed=0, **extra):
    """Return pairs with human references and a judge that is wrong at a rate, by domain if a mapping."""
    rng = np.random.default_rng(seed)
    frames, said = [], []
    for k, domain in enumerate(domains):
        pairs = product_pairs(tasks, domain, start=1000 * k).assign(
            reference_label="A", reference_kind="human", **extra
        )
        rate = wrong[domain] if isinstance(wrong, dict) else wrong
        first = np.where(rng.random(tasks) < rate, "B", "A")
        second = np.where(rng.random(tasks) < flips, np.where(first == "A", "B", "A"), first)
        frames.append(pairs)
        said.append(verdicts_of(pairs, first, second))
    return pd.concat(said, ignore_index=True), pd.concat(frames, ignore_index=True)


class TestAuthority:
    def test_earned_and_below(self):
        table = authority_table(*calibration(wrong={"math": 0.02, "law": 0.8}), rule())
        assert list(table.columns) == list(AUTHORITY_COLUMNS)
        assert earned_slices(table)["math"] == "earned"
        assert earned_slices(table)["law"] == "agreement: below_floor"
        sums = table[table["criterion"] == ALL].set_index("slice")
        assert sums.loc["math", "critical"]
        assert sums.loc["math", "adjustment"] == "holm"
        assert sums.loc["law", "adjustment"] == "benjamini_hochberg"

    def test_position_bias_is_not_earned(self):
        table = authority_table(*calibration(wrong=0.0, flips=0.9), rule())
        assert "order_consistency: below_floor" in earned_slices(table)["math"]

    def test_not_settled_says_how_many_tasks_would(self):
        verdicts, pairs = calibration(("math",), tasks=30, wrong=0.0)
        # 24 of 30 right in both orders: .8 against a floor of .7 cannot be settled with 30 tasks.
        verdicts["verdict"] = (
            verdicts["pair_id"].isin([f"p{i}" for i in range(6)]).map({True: "B", False: "A"})
        )
        row = authority_table(verdicts, pairs, rule()).query("criterion == 'agreement'").iloc[0]
        assert row["value"] == pytest.approx(0.8)
        assert row["low"] < 0.7 < row["high"]
        assert row["reason"] == "not_settled"
        more = int(row["tasks_to_settle"])
        assert 30 < more < 150
        share = clustered_share([1.0] * (more - more // 5) + [0.0] * (more // 5), range(more))
        assert share.bounds(0.05).low > 0.69

    def test_too_few_tasks(self):
        table = authority_table(*calibration(("math",), tasks=10, wrong=0.0), rule())
        assert "too_few_tasks" in earned_slices(table)["math"]
        assert (table["tasks_to_settle"].dropna() >= 20).all()

    def test_slice_without_calibration(self):
        table = authority_table(*calibration(("law",)), rule(), judged_pairs=product_pairs(5, "poetry"))
        assert earned_slices(table)["math"] == "never_calibrated"
        assert earned_slices(table)["poetry"] == "never_calibrated"

    def test_without_human_labels(self):
        verdicts, pairs = calibration(("math",))
        table = authority_table(verdicts, pairs.assign(reference_kind="constructed"), rule())
        assert earned_slices(table)["math"] == "agreement: no_human_labels"

    def test_labels_replace_references(self):
        verdicts, pairs = calibration(("math",), wrong=0.0)
        labels = labels_of(pairs, ["B"] * len(pairs), stage="adjudication", attribute=None)
        assert (
            "agreement: below_floor"
            in earned_slices(authority_table(verdicts, pairs, rule(), labels))["math"]
        )

    def test_failed_judgments_agree_with_nothing(self):
        verdicts, pairs = calibration(("math",), wrong=0.0)
        verdicts.loc[:, "verdict"] = None
        verdicts.loc[:, "outcome"] = "timeout"
        row = authority_table(verdicts, pairs, rule()).query("criterion == 'order_consistency'").iloc[0]
        assert row["value"] == 0

    def test_exempt_criteria(self):
        verdicts, pairs = calibration(("math",), wrong=0.0, flips=0.9)
        floors = {"agreement": 0.2, "order_consistency": 0.7}
        exempt = rule(floors=floors, exempt={"math": ["order_consistency"]})
        assert earned_slices(authority_table(verdicts, pairs, exempt))["math"] == "earned"

    def test_multiplicity_over_the_critical_slices(self):
        domains = [f"d{k}" for k in range(12)]
        verdicts, pairs = calibration(domains, tasks=40, wrong=0.15, seed=3)
        strict = rule(critical_slices=domains, floors={"agreement": 0.7})
        table = authority_table(verdicts, pairs, strict).query("criterion == 'all'")
        assert "multiplicity" in set(table["reason"])
        assert (table.loc[table["earned"], "adjusted_p"] <= 0.05).all()

    def test_invariance_and_sensitivity(self):
        # Length pairs: the longer side wins always: invariance 0. Correctness pairs: always right.
        n = 30
        length = product_pairs(n, "math").assign(manipulation="length", modified="B", reference_label="TIE")
        correct = product_pairs(n, "math", start=500).assign(
            manipulation="correctness", modified="B", reference_label="A"
        )
        pairs = pd.concat([length, correct], ignore_index=True)
        said = ["B"] * n + ["A"] * n
        floors = {"invariance_length": 0.8, "sensitivity_correctness": 0.8, "invariance_style": 0.8}
        table = authority_table(verdicts_of(pairs, said, said), pairs, rule(floors=floors))
        rows = table.set_index("criterion")
        assert rows.loc["invariance_length", "value"] == 0
        assert rows.loc["invariance_length", "reason"] == "below_floor"
        assert rows.loc["sensitivity_correctness", "reason"] == "earned"
        assert rows.loc["invariance_style", "reason"] == "no_pairs"
        # A judge that is not moved by length, ties in both orders.
        said = ["TIE"] * n + ["A"] * n
        table = authority_table(verdicts_of(pairs, said, said), pairs, rule(floors=floors))
        assert table.set_index("criterion").loc["invariance_length", "reason"] == "earned"

    def test_identity_pairs(self):
        pairs = product_pairs(30).assign(manipulation="identity", reference_label="TIE")
        floors = {"invariance_identity": 0.8}
        always_first = verdicts_of(pairs, ["A"] * 30, ["B"] * 30)
        row = authority_table(always_first, pairs, rule(floors=floors)).set_index("criterion")
        assert row.loc["invariance_identity", "value"] == 0
        ties = verdicts_of(pairs, ["TIE"] * 30, ["TIE"] * 30)
        row = authority_table(ties, pairs, rule(floors=floors)).set_index("criterion")
        assert row.loc["invariance_identity", "earned"]

    def test_unknown_slice_column(self):
        with pytest.raises(GateInputError, match="column planet"):
            authority_table(*calibration(("math",)), rule(slice_by=["planet"]))

    def test_tasks_to_settle_at_the_floor(self):
        share = clustered_share([1, 0] * 20, range(40))
        assert tasks_to_settle(share, 0.5, 0.05) is None

    def test_shift(self):
        _, pairs = calibration(("math", "law"))
        texts = {"question": "q", "response_a": "a", "response_b": "b", "language": "en"}
        before = pairs.assign(**texts)
        after = before[before["domain"] == "law"].assign(language="de", question="q" * 500)
        shift = calibration_shift(before, after).set_index(["kind", "name"])
        assert shift.loc[("slice", "law"), "judged_share"] == 1
        assert shift.loc[("language", "de"), "never_calibrated"]
        assert shift.loc[("length", "quartile 4"), "judged_share"] == 1


SENTINEL = SentinelRule(max_changed=0.1, accuracy_margin=0.1, min_tasks=20)


class TestSentinel:
    @pytest.fixture
    def protected(self):
        return product_pairs(60).assign(sentinel=True, reference_label="A")

    def test_same_verdicts_are_stable(self, protected):
        run = verdicts_of(protected, ["A"] * 60, ["A"] * 60)
        result = compare_sentinel(run, run.assign(instrument_id="instrument-2"), protected, SENTINEL)
        assert (result.status, result.pairs, result.tasks) == ("stable", 60, 60)
        assert not result.noise_known

    def test_changed_verdicts_are_drift(self, protected):
        before = verdicts_of(protected, ["A"] * 60, ["A"] * 60)
        after = verdicts_of(protected, ["B"] * 30 + ["A"] * 30, ["B"] * 30 + ["A"] * 30)
        result = compare_sentinel(before, after, protected, SENTINEL)
        assert result.status == "drift"
        assert result.reason == "drift: changed, accuracy"

    def test_too_few_pairs_are_never_stable(self, protected):
        few = protected.iloc[:10]
        run = verdicts_of(few, ["A"] * 10, ["A"] * 10)
        result = compare_sentinel(run, run, few, SENTINEL)
        assert result.status == "too_few"
        assert "10 base tasks, 20 wanted" in result.reason

    def test_new_failures_are_drift(self, protected):
        before = verdicts_of(protected, ["A"] * 60, ["A"] * 60)
        after = verdicts_of(protected, [None] * 40 + ["A"] * 20, ["A"] * 60)
        result = compare_sentinel(before, after, protected, SENTINEL)
        assert "failures" in result.reason

    def test_absent_pairs_count_as_failed_and_are_named(self, protected):
        before = verdicts_of(protected, ["A"] * 60, ["A"] * 60)
        result = compare_sentinel(
            before, before[before["pair_id"].isin(protected["pair_id"][30:])], protected, SENTINEL
        )
        assert result.status == "drift"
        assert len(result.absent) == 30

    def test_own_noise_is_no_drift(self, protected):
        # A judge that is right 80 % of the time at random, three repetitions, in two runs.
        rng = np.random.default_rng(4)
        many = product_pairs(400).assign(sentinel=True, reference_label="A")

        def run():
            parts = [
                verdicts_of(
                    many,
                    np.where(rng.random(400) < 0.8, "A", "B"),
                    np.where(rng.random(400) < 0.8, "A", "B"),
                    repetition=r,
                )
                for r in range(3)
            ]
            return pd.concat(parts, ignore_index=True)

        before, after = run(), run()
        result = compare_sentinel(before, after, many, SENTINEL)
        assert result.noise_known
        assert result.status == "stable"
        single = [frame[frame["repetition"] == 0] for frame in (before, after)]
        assert compare_sentinel(*single, many, SENTINEL).status == "drift"

    def test_no_sentinel_set(self, protected):
        run = verdicts_of(protected, ["A"] * 60, ["A"] * 60)
        with pytest.raises(GateInputError, match="no sentinel set"):
            compare_sentinel(run, run, protected.assign(sentinel=False), SENTINEL)


def simulate_products(seed, net=0.0, tasks=60, per_task=2):
    """Return pairs, a judge's verdicts and human labels of two products with a true net preference."""
    rng = np.random.default_rng(seed)
    pairs = product_pairs(tasks * per_task, per_task=per_task)
    lean = np.repeat(rng.normal(scale=0.6, size=tasks), per_task)
    # Half the task's lean and half the pair's own: tasks are what differs; the mean over tasks is `net`.
    chance = np.clip(0.5 + net / 2 + 0.3 * np.sign(lean) * np.minimum(np.abs(lean), 1), 0, 1)
    first, second = (np.where(rng.random(len(pairs)) < chance, "B", "A") for _ in range(2))
    human = np.where(rng.random(len(pairs)) < chance, "B", "A")
    return pairs, verdicts_of(pairs, first, second), labels_of(pairs, human)


def one_sided_bound(n: int, alpha: float) -> int:
    """Return the 99 % point of a binomial: 67 for 1,000 at 5 %, 18 for 200."""
    from scipy.stats import binom

    return int(binom.ppf(0.99, n, alpha))


class TestFalseAlarms:
    def test_key_rarely_turns_for_equal_products(self):
        # 1,000 repetitions of the statistic that the judge's key reads: at most 67 wrong ones at 5 %.
        assert one_sided_bound(1000, 0.05) == 67
        wrong = 0
        for seed in range(1000):
            rng = np.random.default_rng(seed)
            lean = np.repeat(rng.choice([-0.6, 0.0, 0.6], size=40), 3)
            nets = np.where(rng.random((120, 2)) < 0.5 + lean[:, None] / 2, 1, -1).mean(axis=1)
            low, _ = clustered_mean(nets, np.arange(120) // 3).bounds(0.05)
            wrong += low > 0
        assert 30 <= wrong <= 67

    def test_rows_instead_of_tasks_would_be_caught(self):
        wrong = 0
        for seed in range(200):
            rng = np.random.default_rng(seed)
            nets = np.repeat(rng.choice([-1, 1], size=40), 3)
            wrong += clustered_mean(nets, np.arange(120)).bounds(0.05)[0] > 0
        assert wrong > one_sided_bound(200, 0.05)

    def test_gate_rarely_passes_equal_products(self):
        passed = [
            gate(verdicts, pairs, labels).outcome == "pass"
            for pairs, verdicts, labels in map(simulate_products, range(60))
        ]
        assert sum(passed) <= one_sided_bound(60, 0.05)

    def test_a_real_improvement_passes(self):
        simulated = (simulate_products(seed, 0.4) for seed in range(20))
        passed = [gate(verdicts, pairs, labels).outcome == "pass" for pairs, verdicts, labels in simulated]
        assert sum(passed) >= 16

    @pytest.mark.slow
    @pytest.mark.parametrize(("claim", "net"), [("improvement", 0.0), ("no_regression", -0.1)])
    def test_gate_of_1000_repetitions(self, claim, net):
        margin = 0.1 if claim == "no_regression" else 0.0
        the_rule = rule(claim=claim, margin=margin, human_margin=margin)
        judge_alone = both_keys = 0
        for seed in range(1000):
            pairs, verdicts, labels = simulate_products(seed, net)
            key = judge_key(verdicts, pairs, the_rule, "old", "new")
            judge_alone += key.verdict == "for"
            if key.verdict == "for":
                both_keys += gate(verdicts, pairs, labels, the_rule).outcome == "pass"
        assert 30 <= judge_alone <= 67
        assert both_keys <= judge_alone
