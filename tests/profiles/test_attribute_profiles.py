import numpy as np
import pandas as pd
import pytest
import yaml

from judge_calibration.profiles.agreement import agreement_by_judge_pair, item_agreement, panel_agreement
from judge_calibration.profiles.attribute_table import attribute_table
from judge_calibration.profiles.coverage import coverage_table
from judge_calibration.profiles.cube import ReadCube, ReadsError, cube_from_reads
from judge_calibration.profiles.inventory import InventoryError, read_inventory
from judge_calibration.profiles.panel_simulation import simulate_panel
from judge_calibration.profiles.subjective_set import minority_share, select_subjective
from judge_calibration.profiles.weights import fit_weights, profiles_table


def long_reads(values):
    """values: {(judge, item, attribute): (direction in AB, direction in BA)}."""
    rows = [
        {"judge_id": j, "pair_id": i, "attribute": k, "order": order, "direction": d, "outcome": "valid"}
        for (j, i, k), pair in values.items()
        for order, d in zip(("AB", "BA"), pair, strict=True)
    ]
    return pd.DataFrame(rows)


class TestInventory:
    def test_shipped_inventory_has_87_attributes_in_14_families(self, project_path):
        path = project_path / "data/01_raw/attributes/inventory.yml"
        attributes = read_inventory(yaml.safe_load(path.read_text(encoding="utf-8")))
        families = pd.Series([a.family for a in attributes]).value_counts()
        assert len(attributes) == 87
        assert len(families) == 14
        assert sorted(families[families == 1].index) == ["content", "format", "interpersonal", "stance"]
        assert sum(a.origin == "paper" for a in attributes) == 20

    def test_all_problems_are_reported_together(self):
        good = {"family": "f", "origin": "ours", "definition": "How deep.", "more": "m", "not": "n"}
        entries = [
            {"name": "detail level", **good},
            {"name": "level detail", **good},
            {"name": "breadth", **good, "family": "g"},
            {"name": "", **good, "definition": "x", "colour": "red"},
        ]
        with pytest.raises(InventoryError) as caught:
            read_inventory({"families": {"f": ""}, "attributes": entries})
        text = str(caught.value)
        for part in ("nearly the same name", "same definition", "'g'", "field name", "colour"):
            assert part in text


class TestCube:
    def test_stable_directions_of_the_definitions_table(self):
        cube = cube_from_reads(
            long_reads(
                {
                    ("j", "p", "a"): ("A", "A"),
                    ("j", "p", "b"): ("A", "B"),
                    ("j", "p", "c"): ("A", "NONE"),
                    ("j", "p", "d"): ("NONE", "NONE"),
                }
            ),
            list("abcd"),
        )
        assert cube.stable[0, 0].tolist() == [1, 0, 0, 0]

    def test_a_failed_read_has_no_direction(self):
        reads = long_reads({("j", "p", "a"): ("A", "A")})
        reads.loc[1, ["outcome", "direction"]] = ["malformed", None]
        assert cube_from_reads(reads, ["a"]).stable[0, 0, 0] == 0

    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            (lambda r: r.iloc[:1], "no read in order BA"),
            (lambda r: pd.concat([r, r.iloc[:1]]), "several reads"),
            (lambda r: r.assign(attribute="colour"), "'colour'"),
            (lambda r: r.assign(pair_id="q"), "'q'"),
        ],
    )
    def test_refuses_incomplete_and_unknown_reads(self, damage, message):
        reads = long_reads({("j", "p", "a"): ("A", "A")})
        with pytest.raises(ReadsError, match=message):
            cube_from_reads(damage(reads), ["a"], pairs=["p"])


class TestAgreement:
    def test_worked_agreement_3_of_4_and_joint_coverage_4_of_12(self):
        # 3 items x 4 attributes; judges share 4 stable cells and agree on 3 of them.
        s1 = np.array([[1, 1, 0, -1], [1, 0, 0, 0], [0, 0, 0, 0]])
        s2 = np.array([[1, -1, 0, -1], [1, 1, 0, 0], [0, 0, 1, 0]])
        stable = np.stack([s1, s2]).astype(np.int8)
        table = agreement_by_judge_pair(stable, np.zeros((2, 3), dtype=np.int8), ("x", "y"))
        row = table[table["stratum"] == "all"].iloc[0]
        assert row["agreement"] == 0.75
        assert row["joint_coverage"] == pytest.approx(4 / 12)
        assert table.loc[table["stratum"] == "same", "undefined"].item() == "no_items"

    def test_strata_follow_the_two_verdicts(self):
        stable = np.array([[[1], [1]], [[1], [-1]]], dtype=np.int8)
        verdicts = np.array([[1, 1], [1, -1]], dtype=np.int8)
        table = agreement_by_judge_pair(stable, verdicts, ("x", "y")).set_index("stratum")
        assert table.loc["same", ["n_items", "agree"]].tolist() == [1, 1]
        assert table.loc["opposite", ["n_items", "agree", "joint"]].tolist() == [1, 0, 1]

    def test_mean_of_rates_and_ratio_of_sums_differ(self):
        # rates 3/4, 5/7, 3/4: mean .7381; sums 11/15 = .7333
        result = panel_agreement(np.array([3, 5, 3]), np.array([4, 7, 4]))
        assert round(result.mean, 4) == 0.7381
        assert round(result.pooled, 4) == 0.7333

    def test_undefined_judge_pairs_are_left_out_of_the_mean(self):
        result = panel_agreement(np.array([1, 0]), np.array([2, 0]))
        assert (result.mean, result.n_defined, result.n_judge_pairs) == (0.5, 1, 2)
        assert np.isnan(panel_agreement(np.array([0]), np.array([0])).mean)

    def test_item_agreement_worked_pooled_3_of_7_macro_5_of_9(self):
        # attribute 1: a=3, b=1: G = 3/6; attribute 2: a=1, b=0: not comparable;
        # by hand for pooled 3/7 and macro 5/9: a=2,b=1 (1/3), a=2,b=1 (1/3), a=2,b=0 (1): 3/7, 5/9
        column = {"2:1": [1, 1, -1], "2:0": [1, 1, 0], "1:0": [1, 0, 0]}
        stable = np.array([column["2:1"], column["2:1"], column["2:0"], column["1:0"]], dtype=np.int8).T[
            :, None
        ]
        row = item_agreement(stable).iloc[0]
        assert row["g_pooled"] == pytest.approx(3 / 7)
        assert row["g_macro"] == pytest.approx(5 / 9)
        assert (row["comparable"], row["unanimous"]) == (3, 1)

    def test_chunks_do_not_change_the_counts(self):
        panel = simulate_panel(1, 4, 50, 9)
        from judge_calibration.profiles.agreement import item_tables

        whole = next(item_tables(panel.stable, 50))
        parts = list(item_tables(panel.stable, 7))
        np.testing.assert_array_equal(np.concatenate([p.joint for p in parts]), whole.joint)
        np.testing.assert_array_equal(np.concatenate([p.agree for p in parts]), whole.agree)


class TestCoverageAndCoreSet:
    def test_a_judge_that_always_names_the_first_answer_has_no_stable_direction(self):
        first = np.ones((1, 3, 2), dtype=np.int8)
        cube = ReadCube(("j",), ("p", "q", "r"), ("a", "b"), first, -first)
        reads = pd.DataFrame({"judge_id": ["j"] * 12, "outcome": ["valid"] * 12})
        row = coverage_table(cube, reads).iloc[0]
        assert (row["coverage"], row["first_share"], row["order_consistency"]) == (0.0, 1.0, 0.0)
        assert row["position_biased"]

    def test_nothing_resolved_is_undefined_not_zero(self):
        zero = np.zeros((1, 2, 1), dtype=np.int8)
        cube = ReadCube(("j",), ("p", "q"), ("a",), zero, zero)
        row = coverage_table(cube, pd.DataFrame({"judge_id": ["j"] * 4, "outcome": ["malformed"] * 4})).iloc[
            0
        ]
        assert np.isnan(row["first_share"])
        assert row["undefined"] == "nothing_resolved"
        table = attribute_table(cube)
        assert np.isnan(table["order_consistency"][0])
        assert not table["core"][0]


class TestSubjectiveSet:
    def test_threshold_is_inclusive_and_compared_in_integers(self):
        shares = minority_share(np.array([[1, 1, 0], [1, 1, 0], [-1, 1, 0]], dtype=np.int8))
        assert select_subjective(shares).tolist() == [True, False, False]
        assert shares["undefined"].dropna().to_dict() == {2: "no_definite_verdict"}


class TestWeights:
    def test_planted_weights_are_ranked_alike(self):
        panel = simulate_panel(5, 1, 4_000, 10, resolution=(0.9, 0.9))
        fit = fit_weights(panel.stable[0], panel.verdicts[0])
        order = np.argsort(np.argsort(fit.coefficients)), np.argsort(np.argsort(panel.weights[0]))
        assert np.corrcoef(*order)[0, 1] > 0.9

    @pytest.mark.parametrize(
        ("stable", "verdicts", "reason"),
        [
            (np.ones((3, 2)), np.zeros(3), "no_definite_verdict"),
            (np.ones((3, 2)), np.ones(3), "one_class_only"),
            (np.zeros((3, 2)), np.array([1, -1, 1]), "no_stable_direction"),
        ],
    )
    def test_undefined_profiles_have_reasons(self, stable, verdicts, reason):
        fit = fit_weights(stable, verdicts)
        assert fit.undefined == reason
        assert np.isnan(fit.coefficients).all()

    def test_profiles_table_has_a_row_a_judge_and_attribute(self):
        panel = simulate_panel(2, 3, 40, 5)
        table = profiles_table(panel.stable, panel.verdicts, ("a", "b", "c"), tuple("vwxyz"))
        assert len(table) == 15
        assert table["resolution"].between(0, 1).all()


def test_no_reads_give_empty_tables_with_their_columns():
    from judge_calibration.schemas import READS, empty

    cube = cube_from_reads(empty(READS), ["depth"])
    none = np.zeros((0, 0), dtype=np.int8)
    tables = [
        coverage_table(cube, empty(READS)),
        attribute_table(cube),
        agreement_by_judge_pair(cube.stable, none, ()),
        profiles_table(cube.stable, none, (), ()),
        item_agreement(cube.stable),
    ]
    assert all(table.empty and len(table.columns) for table in tables)
