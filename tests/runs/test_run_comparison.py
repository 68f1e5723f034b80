"""What a manifest says of a file, and what two manifests have in common."""

import pandas as pd
import pytest

from judge_calibration.runs import files
from judge_calibration.runs.artifacts import content_sha256, describe
from judge_calibration.runs.compare import _table_difference, agreement
from judge_calibration.runs.environment import imports_of, is_alive, this_process
from judge_calibration.runs.manifest import flattened, nested


class TestContentHash:
    def test_rows_in_another_order_say_the_same(self):
        table = pd.DataFrame({"pair_id": ["1", "2", "3"], "C": [0.5, float("nan"), 1.0]})
        assert content_sha256(table) == content_sha256(table.sample(frac=1, random_state=1))

    @pytest.mark.parametrize("change", [{"C": [0.5, 0.6]}, {"pair_id": ["1", "3"]}])
    def test_another_value_says_something_else(self, change):
        table = pd.DataFrame({"pair_id": ["1", "2"], "C": [0.5, 0.7]})
        assert content_sha256(table) != content_sha256(table.assign(**change))

    def test_another_column_name_too(self):
        table = pd.DataFrame({"C": [0.5]})
        assert content_sha256(table) != content_sha256(table.rename(columns={"C": "phi"}))

    def test_parquet_is_hashed_by_its_rows(self, tmp_path):
        from judge_calibration.datasets import Parquet

        table = pd.DataFrame({"n": pd.Series([3, 1, None], dtype="Int64"), "t": ["x", "y", None]})
        described = []
        for name, rows in (("a", table), ("b", table.iloc[::-1])):
            path = tmp_path / f"{name}.parquet"
            Parquet(filepath=str(path)).save(rows)
            described.append(describe(path, tmp_path))
        assert described[0]["content_sha256"] == described[1]["content_sha256"]
        assert described[0]["sha256"] != described[1]["sha256"]
        assert described[0]["rows"] == 3

    def test_of_an_empty_table(self, tmp_path):
        from judge_calibration.datasets import Parquet

        Parquet(filepath=str(tmp_path / "a.parquet")).save(pd.DataFrame({"a": pd.Series([], dtype="str")}))
        assert describe(tmp_path / "a.parquet", tmp_path)["rows"] == 0


class TestTolerance:
    def test_the_last_digits_may_differ(self):
        before = pd.DataFrame({"C": [1.0, float("nan")]})
        assert _table_difference(before, pd.DataFrame({"C": [1.0 + 1e-9, float("nan")]})) == ""
        assert "row 1, column C" in _table_difference(before, pd.DataFrame({"C": [1.0 + 1e-7, float("nan")]}))

    def test_counts_and_text_may_not(self):
        before = pd.DataFrame({"n": [10**9], "t": ["a"]})
        assert "column n" in _table_difference(before, pd.DataFrame({"n": [10**9 + 1], "t": ["a"]}))
        assert "column t" in _table_difference(before, pd.DataFrame({"n": [10**9], "t": ["b"]}))

    def test_an_undefined_number_is_not_a_number(self):
        assert _table_difference(pd.DataFrame({"C": [0.0]}), pd.DataFrame({"C": [float("nan")]}))


def test_agreement_counts_equal_outcomes_and_verdicts(tmp_path):
    from judge_calibration.datasets import Parquet

    def verdicts(letters):
        return pd.DataFrame(
            {
                "pair_id": [str(i) for i in range(len(letters))],
                "judge_id": "j",
                "instrument_id": "i",
                "protocol": "direct",
                "order": "AB",
                "temperature": None,
                "repetition": 0,
                "outcome": ["malformed" if letter is None else "valid" for letter in letters],
                "verdict": pd.Series(letters, dtype="str"),
            }
        )

    for name, letters in (("old", ["A", "B", None, None]), ("new", ["A", "A", None, "A"])):
        Parquet(filepath=str(tmp_path / f"{name}.parquet")).save(verdicts(letters))
    table = agreement(tmp_path / "old.parquet", tmp_path / "new.parquet")
    # Equal: the first (A, A) and the third (malformed both times).
    assert table[["n", "same"]].to_numpy().tolist() == [[4, 2]]
    assert table["temperature"].tolist() == [None]


def test_imports_inside_functions_are_followed(tmp_path):
    package = tmp_path / "package"
    for name, text in {
        "__init__.py": "",
        "a.py": "def f():\n    from package.b import x\n",
        "b.py": "import os\n",
        "c.py": "",
    }.items():
        files.write_bytes(package / name, text.encode())
    found = imports_of("package.a", package)
    assert found == {"package/a.py", "package/b.py", "package/__init__.py"}


def test_a_process_is_known_by_its_start(tmp_path):
    mine = this_process()
    assert is_alive(mine)
    assert not is_alive({**mine, "started": "0"})
    assert is_alive({**mine, "host": "elsewhere"})


def test_nested_undoes_flattened():
    parameters = {"judging": {"judges": [{"a": 1}], "asking": {"offline": True}}, "seed": 1}
    assert nested(flattened(parameters)) == parameters
