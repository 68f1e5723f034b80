import numpy as np
import pandas as pd
import pytest
import yaml

from judge_calibration.profiles.agreement import agreement_by_judge_pair, panel_agreement
from judge_calibration.profiles.attribute_table import attribute_table
from judge_calibration.profiles.code_counts import code_counts
from judge_calibration.profiles.coverage import coverage_table
from judge_calibration.profiles.cube import ReadCube, ReadsError, cube_from_reads
from judge_calibration.profiles.inventory import InventoryError, read_inventory
from judge_calibration.profiles.item_agreement import item_agreement
from judge_calibration.profiles.item_tables import item_tables
from judge_calibration.profiles.pair_counts import count_pairs
from judge_calibration.profiles.panel_simulation import simulate_panel
from judge_calibration.profiles.storage import pack
from judge_calibration.profiles.subjective_set import minority_share, select_subjective
from judge_calibration.profiles.weights import fit_weights, profiles_table


def agreement_of(stable, verdicts, judges):
    """The table of stable directions: both orders say the same."""
    return agreement_by_judge_pair(count_pairs(pack(stable, stable), verdicts), judges, stable.shape[2])


def coverage_of(cube):
    return coverage_table(code_counts(cube.codes), cube.judges, len(cube.items))


def attributes_of(cube):
    return attribute_table(code_counts(cube.codes), cube.attributes, len(cube.items))


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

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (None, "attributes: found none"),
            (["depth"], "families: found list; wanted a mapping"),
            ({"families": ["f"], "attributes": []}, "families: found list; wanted a mapping"),
            (
                {"families": {"f": ""}, "attributes": ["depth"]},
                "attribute 1: found 'depth'; wanted a mapping",
            ),
            ({"families": {"f": ""}, "attributes": {"depth": {}}}, "attributes: found dict; wanted a list"),
            ({"families": {"f": ""}, "attributes": [{"name": 5, "family": ["f"]}]}, "field name: found 5"),
            ({"families": {"f": ""}, "attributes": [{"name": "Depth"}]}, "'Depth'; wanted lower case"),
            ({"families": {"f": ""}, "attributes": [{"name": "pair id"}]}, "'pair id'; wanted lower case"),
        ],
    )
    def test_a_file_of_another_shape_is_explained(self, content, message):
        with pytest.raises(InventoryError) as caught:
            read_inventory(content)
        assert message in str(caught.value)


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
            (lambda r: pd.concat([r, r.iloc[:1]]), "2 values; wanted one read an order"),
            (lambda r: r.assign(order=["AB", "third"]), "'third'"),
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
        table = agreement_of(stable, np.zeros((2, 3), dtype=np.int8), ("x", "y"))
        row = table[table["stratum"] == "all"].iloc[0]
        assert row["agreement"] == 0.75
        assert row["joint_coverage"] == pytest.approx(4 / 12)
        assert table.loc[table["stratum"] == "same", "undefined"].item() == "no_items"

    def test_strata_follow_the_two_verdicts(self):
        stable = np.array([[[1], [1]], [[1], [-1]]], dtype=np.int8)
        verdicts = np.array([[1, 1], [1, -1]], dtype=np.int8)
        table = agreement_of(stable, verdicts, ("x", "y")).set_index("stratum")
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
        row = item_agreement(pack(stable, stable)).iloc[0]
        assert row["g_pooled"] == pytest.approx(3 / 7)
        assert row["g_macro"] == pytest.approx(5 / 9)
        assert (row["comparable"], row["unanimous"]) == (3, 1)

    def test_chunks_do_not_change_the_counts(self):
        panel = simulate_panel(1, 4, 50, 9)
        codes = pack(panel.first, panel.second)
        whole = next(item_tables(codes, chunk=50))
        parts = list(item_tables(codes, chunk=7))
        for name in whole._fields:
            joined = np.concatenate([getattr(part, name) for part in parts], axis=1)
            np.testing.assert_array_equal(joined, getattr(whole, name))
        one, many = (count_pairs(codes, panel.verdicts, chunk=size).sums for size in (50, 7))
        for name, values in one.items():
            np.testing.assert_allclose(values, many[name], rtol=1e-12)


class TestCoverageAndCoreSet:
    def test_a_judge_that_always_names_the_first_answer_has_no_stable_direction(self):
        first = np.ones((1, 3, 2), dtype=np.int8)
        cube = ReadCube.of_directions(("j",), ("p", "q", "r"), ("a", "b"), first, -first)
        row = coverage_of(cube).iloc[0]
        assert (row["coverage"], row["first_share"], row["order_consistency"]) == (0.0, 1.0, 0.0)
        assert row["position_biased"]

    def test_nothing_resolved_is_undefined_not_zero(self):
        zero = np.zeros((1, 2, 1), dtype=np.int8)
        cube = ReadCube.of_directions(("j",), ("p", "q"), ("a",), zero, zero)
        row = coverage_of(cube).iloc[0]
        assert np.isnan(row["first_share"])
        assert row["undefined"] == "nothing_resolved"
        table = attributes_of(cube)
        assert np.isnan(table["order_consistency"][0])
        assert not table["core"][0]
        assert table["undefined"][0] == "never_resolved_in_both_orders"

    def test_coverage_worked_5_of_12(self):
        codes = np.array([[[8, 8, 0, 4], [8, 0, 2, 6], [4, 4, 5, 7]]], dtype=np.int8)
        cube = ReadCube(("j",), ("p", "q", "r"), tuple("abcd"), codes)
        assert coverage_of(cube)["coverage"][0] == pytest.approx(5 / 12)

    def test_the_limit_of_the_position_rule_is_inclusive(self):
        # 4 of 5 resolved reads name the second answer: BA "A", AB "B".
        codes = np.array([[[2, 2, 3]]], dtype=np.int8)
        cube = ReadCube(("j",), ("p",), tuple("abc"), codes)
        row = coverage_of(cube).iloc[0]
        assert (row["second_share"], row["position_biased"]) == (pytest.approx(0.8), True)


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
        table = profiles_table(
            pack(panel.first, panel.second), panel.verdicts, ("a", "b", "c"), tuple("vwxyz")
        )
        assert len(table) == 15
        assert table["resolution"].between(0, 1).all()


def test_no_reads_give_empty_tables_with_their_columns():
    from judge_calibration.schemas import READS, empty

    cube = cube_from_reads(empty(READS), ["depth"])
    none = np.zeros((0, 0), dtype=np.int8)
    tables = [
        coverage_of(cube),
        attributes_of(cube),
        agreement_of(cube.codes, none, ()),
        profiles_table(cube.codes, none, (), ()),
        item_agreement(cube.codes),
    ]
    assert all(table.empty and len(table.columns) for table in tables)
