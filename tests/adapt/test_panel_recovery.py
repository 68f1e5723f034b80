"""A SIMULATED panel with known weights: what reweighting has to find, and where there is nothing to find."""

import numpy as np
import pytest

from judge_calibration.adapt.reweighting_panel import LabelledReads, reweight_panel
from judge_calibration.profiles.panel_simulation import simulate_panel

ITEMS, TRAIN, ATTRIBUTES = 2_400, 1_800, 12


@pytest.fixture(scope="module")
def planted():
    """Judges that see the latent directions nearly always, and a reference made of them by known weights."""
    return simulate_panel(
        8, 3, ITEMS, ATTRIBUTES, resolution=(1.0, 1.0), accuracy=(1.0, 1.0), position_share=0.0, strength=1.0
    )


def reads_of(panel, reference=None, right=None):
    reference = panel.reference if reference is None else reference
    train = np.arange(ITEMS) < TRAIN
    rank = np.stack([np.where(train, np.random.default_rng(r).permutation(ITEMS), -1) for r in range(2)])
    # Ranks from 0 among the training pairs, as the shared subsets have them.
    rank = np.array(
        [np.where(row >= 0, np.argsort(np.argsort(np.where(row >= 0, row, ITEMS))), -1) for row in rank]
    )
    verdict_right = (panel.verdicts == reference).astype(float) if right is None else right
    return LabelledReads(
        tuple("xyz"),
        tuple(f"i{i}" for i in range(ITEMS)),
        tuple(f"a{k}" for k in range(ATTRIBUTES)),
        panel.stable,
        verdict_right,
        reference,
        np.full(ITEMS, "s", dtype=object),
        np.array([f"b{i}" for i in range(ITEMS)], dtype=object),
        rank,
        ~train,
    )


def test_the_ranking_of_the_planted_weights_is_recovered_at_the_full_budget(planted):
    found = reweight_panel(reads_of(planted), (32, 256)).coefficients
    full = found[found["budget"] == "full"]
    for _, part in full.groupby("judge_id"):
        wanted = np.argsort(np.argsort(planted.reference_weights[0]))
        got = np.argsort(np.argsort(part["coefficient"].to_numpy()))
        # Spearman's correlation of the ranks.
        assert np.corrcoef(wanted, got)[0, 1] >= 0.9


def test_the_interval_of_a_coefficient_holds_the_planted_weight(planted):
    found = reweight_panel(reads_of(planted), ()).coefficients
    wanted = np.tile(planted.reference_weights[0], 3)
    held = (found["low"].to_numpy() <= wanted) & (wanted <= found["high"].to_numpy())
    # The three judges see nearly the same: 12 coefficients, of which one or two may miss.
    assert held.mean() >= 0.8


def test_the_accuracy_is_within_two_points_of_bayes(planted):
    curves = reweight_panel(reads_of(planted), ()).curves
    truth = planted.stable[0]
    test = np.arange(ITEMS) >= TRAIN
    bayes = np.mean(np.sign(truth[test] @ planted.reference_weights[0]) == planted.reference[test])
    assert (np.abs(curves["accuracy"] - bayes) <= 0.02).all()


def test_more_labels_do_better_and_the_spread_over_resamples_is_there(planted):
    curves = reweight_panel(reads_of(planted), (32, 256)).curves
    means = curves.groupby("budget")["accuracy"].mean()
    assert means["32"] < means["256"] <= means["full"] + 0.02
    assert set(curves.loc[curves["budget"] == "32", "resample"]) == {0, 1}
    assert set(curves.loc[curves["budget"] == "full", "resample"]) == {0}


def test_nothing_is_gained_where_the_reference_is_a_coin(planted):
    coin = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), ITEMS)
    curves = reweight_panel(reads_of(planted, coin), ()).curves
    # 600 test pairs: standard error .020; the same for base and adapted.
    assert (np.abs(curves["accuracy"] - 0.5) < 0.08).all()
    assert (np.abs(curves["delta"]) < 12).all()


def test_nothing_is_gained_by_a_judge_that_already_weighs_as_the_source_does(planted):
    best = np.sign(planted.stable @ planted.reference_weights[0])
    right = (best == planted.reference).astype(float)
    curves = reweight_panel(reads_of(planted, right=right), ()).curves
    assert (curves["delta"] <= 1.0).all()
    assert (curves["delta"] >= -2.0).all()


def test_probabilities_mean_what_they_say(planted):
    from judge_calibration.adapt.probability_calibration import probability_calibration

    summary, curve = probability_calibration(reweight_panel(reads_of(planted), ()).predictions, 5, 500)
    assert (summary["brier"] < 0.2).all()
    assert (summary["brier_low"] < summary["brier"]).all()
    assert (summary["calibration_error"] < summary["expected_if_calibrated"] + 0.04).all()
    assert curve.groupby("judge_id")["n_pairs"].sum().eq(ITEMS - TRAIN).all()


def test_a_subset_with_pairs_that_nobody_read_says_how_many_it_used(planted):
    panel = reads_of(planted)
    # The subset's second half was not read: its pairs are not among the items.
    keep = ~((panel.rank[0] >= 16) & (panel.rank[0] < 32))
    thin = LabelledReads(
        panel.judges,
        tuple(np.array(panel.items)[keep]),
        panel.attributes,
        panel.stable[:, keep],
        panel.base_right[:, keep],
        panel.reference[keep],
        panel.source[keep],
        panel.clusters[keep],
        panel.rank[:1, keep],
        panel.test[keep],
    )
    curves = reweight_panel(thin, (32,)).curves
    assert (curves.loc[curves["budget"] == "32", "n_train"] == 16).all()
    assert curves.loc[curves["budget"] == "32", "fewer_than_budget"].all()
    assert not curves.loc[curves["budget"] == "full", "fewer_than_budget"].any()


def test_sources_without_a_fit_carry_their_reason(planted):
    panel = reads_of(planted)
    source = panel.source.copy()
    source[:40] = "one class"
    source[40:60] = "no test pair"
    reference = panel.reference.copy()
    reference[:40] = 1
    source[ITEMS - 5 :] = "one class"
    found = reweight_panel(
        LabelledReads(
            panel.judges,
            panel.items,
            panel.attributes,
            panel.stable,
            panel.base_right,
            reference,
            source,
            panel.clusters,
            panel.rank[:1],
            panel.test,
        ),
        (),
    )
    reasons = found.curves.set_index(["judge_id", "source"])["undefined"]
    assert reasons["x", "one class"] == "one_class_only"
    assert reasons["x", "no test pair"] == "no_test_pair"
    assert found.curves.set_index(["judge_id", "source"])["accuracy"].isna()["x", "one class"]
    assert set(found.predictions["source"]) == {"s"}


def test_with_87_attributes_and_imperfect_perception_the_ranking_and_nearly_all_accuracy_are_recovered():
    """A source of the study's size: 2,000 labels, reads that resolve half of the cells, one in ten wrong."""
    many, full, test = 20_000, 2_000, 2_000
    panel = simulate_panel(
        11, 1, many + test, 87, resolution=(0.6, 0.6), accuracy=(0.92, 0.92), position_share=0.05
    )
    train = np.arange(many + test) < many
    rank = np.where(train, np.arange(many + test), -1)[None]
    reads = LabelledReads(
        ("x",),
        tuple(map(str, range(many + test))),
        tuple(f"a{k}" for k in range(87)),
        panel.stable,
        (panel.verdicts == panel.reference).astype(float),
        panel.reference,
        np.full(many + test, "s", dtype=object),
        np.arange(many + test).astype(str).astype(object),
        rank,
        ~train,
    )
    found = reweight_panel(reads, (full,))
    accuracy = found.curves.set_index("budget")["accuracy"]
    # Ten times the labels stand for all that these reads can tell (Bayes).
    assert accuracy[str(full)] >= accuracy["full"] - 0.02
    coefficients = found.coefficients[found.coefficients["budget"] == str(full)]["coefficient"].to_numpy()
    wanted = np.argsort(np.argsort(panel.reference_weights[0]))
    assert np.corrcoef(wanted, np.argsort(np.argsort(coefficients)))[0, 1] >= 0.9
    assert found.curves["delta"].min() > 0
