"""The pairs that are made of a bank's files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judge_calibration.bank import Bank, BankError, build_pairs, check_design, load_bank, published
from judge_calibration.bank.__main__ import main
from judge_calibration.bank.diffs import apply_differences
from judge_calibration.schemas import PAIRS, check

SMALL = Path(__file__).parent / "small_bank"


@pytest.fixture(scope="module")
def pairs(small_bank: Bank) -> pd.DataFrame:
    return build_pairs(small_bank)


class TestBuildPairs:
    def test_counts(self, pairs: pd.DataFrame) -> None:
        # Two tasks with citations and one without: 2 x 5 + 4; two polished and one injection.
        assert len(pairs) == 14 + 2 + 1
        assert pairs["manipulation"].value_counts().to_dict() == {
            "length": 3, "style": 3, "correctness": 3, "identity": 3, "citation": 2, "polished_but_wrong": 2,
            "injection": 1,
        }  # fmt: skip

    def test_schema(self, pairs: pd.DataFrame) -> None:
        check(pairs, PAIRS)

    def test_content_preserving_pairs_expect_a_tie(self, pairs: pd.DataFrame) -> None:
        tie = pairs["manipulation"].isin(["length", "style", "identity"])
        assert (pairs.loc[tie, "expected"] == "TIE").all()
        assert (pairs.loc[~tie, "expected"] != pairs.loc[~tie, "modified"]).all()
        assert pairs["reference_label"].equals(pairs["expected"])

    def test_twins_change_the_same_side(self, pairs: pd.DataFrame) -> None:
        by_id = pairs.set_index("pair_id")
        for _, row in pairs[pairs["twin_pair_id"].notna()].iterrows():
            twin = by_id.loc[row["twin_pair_id"]]
            assert (twin["base_id"], twin["modified"]) == (row["base_id"], row["modified"])
            assert twin["manipulation"] == "correctness"

    def test_differences_explain_every_changed_answer(self, pairs: pd.DataFrame) -> None:
        for _, row in pairs[pairs["modified"].notna()].iterrows():
            changed, original = "response_a", "response_b"
            if row["modified"] == "B":
                changed, original = original, changed
            assert apply_differences(row[original], json.loads(row["mutation_diff"])) == row[changed]

    def test_identity_kinds_are_balanced(self, pairs: pd.DataFrame) -> None:
        same = pairs[pairs["variant"] == "same_bytes"]
        assert len(same) in (1, 2)
        assert (same["response_a"] == same["response_b"]).all()
        assert same["modified"].isna().all()

    def test_the_same_files_give_the_same_pairs(self, small_bank: Bank, pairs: pd.DataFrame) -> None:
        pd.testing.assert_frame_equal(build_pairs(small_bank), pairs)

    def test_recipe_that_does_not_fit(self, change_task: Callable[..., Path]) -> None:
        def stale(data: dict[str, Any]) -> None:
            data["answer"] = data["answer"].replace("on 9 May", "on 10 May")

        with pytest.raises(BankError, match=r"tasks/s001\.yml.*occurs 0 times"):
            build_pairs(load_bank(change_task("s001", stale)))


class TestPrivateSentinel:
    def test_private_tasks_are_marked_and_never_published(self, tmp_path: Path, small_bank: Bank) -> None:
        text = (SMALL / "tasks" / "s002.yml").read_text(encoding="utf-8")
        renamed = {"id: s002": "id: x001", "crowns": "pounds", "mug": "jug", "shirt": "scarf"}
        for old, new in renamed.items():
            text = text.replace(old, new)
        text = text.replace("A club sells", "On market day our club managed to sell")
        (tmp_path / "x001.yml").write_text(text, encoding="utf-8")
        bank = load_bank(SMALL, tmp_path)
        pairs = build_pairs(bank)
        private = pairs[pairs["base_id"] == "x001"]
        assert len(private) == 5
        assert private["sentinel"].all()
        assert (private["source"] == "private_sentinel").all()
        public = published(pairs)
        assert set(public["base_id"]) == {"s001", "s002", "s003"}
        assert "pounds" not in public.to_csv()

    def test_empty_private_folder_is_said(self, tmp_path: Path) -> None:
        with pytest.raises(BankError, match="no task file"):
            load_bank(SMALL, tmp_path)


class TestTheAuthoredBank:
    def test_it_passes_its_design_check(self, project_path: Path) -> None:
        bank = load_bank(project_path / "data" / "01_raw" / "pair_bank")
        table = check_design(bank, build_pairs(bank)).table
        proved = table.loc[table["check"] == "reasoning tasks proved by a program", "found"].item()
        assert proved == sum(task.domain == "reasoning" for task in bank.tasks)

    def test_no_file_is_large(self, project_path: Path) -> None:
        folder = project_path / "data" / "01_raw" / "pair_bank"
        assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 5_000_000


class TestFiles:
    def test_all_unreadable_files_in_one_report(self, bank_folder: Path) -> None:
        tasks = bank_folder / "tasks"
        (tasks / "s001.yml").write_text("id: s001\nid: s001\n", encoding="utf-8")
        (tasks / "s002.yml").write_bytes(b"id: \xff\xfe\n")
        (tasks / "s003.yml").write_text("- a list\n", encoding="utf-8")
        (bank_folder / "bank.yml").unlink()
        with pytest.raises(BankError) as caught:
            load_bank(bank_folder)
        report = str(caught.value)
        for wanted in (
            "bank.yml: found no such file",
            "the key 'id' occurs twice",
            "not UTF-8",
            "wanted a mapping",
        ):
            assert wanted in report

    def test_no_task_at_all(self, tmp_path: Path) -> None:
        with pytest.raises(BankError, match=r"one \.yml file a task"):
            load_bank(tmp_path)

    def test_dates_and_codes_stay_text(self, change_task: Callable[..., Path]) -> None:
        folder = change_task("s002", lambda d: d["check"]["numbers"].update(mugs=7))
        path = folder / "tasks" / "s002.yml"
        text = path.read_text(encoding="utf-8").replace("mugs: 7\n", "mugs: 2024-05-09\n")
        path.write_text(text, encoding="utf-8")
        task = load_bank(folder).tasks[1]
        assert task.check is not None
        assert task.check.numbers["mugs"] == "2024-05-09"


class TestCommand:
    def test_fine_bank(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main([str(SMALL)]) == 0
        out = capsys.readouterr().out
        assert "s002: fine" in out
        assert "the bank as a whole: fine" in out

    def test_faults_between_tasks_are_printed(
        self, bank_folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        text = (bank_folder / "tasks" / "s001.yml").read_text(encoding="utf-8")
        copy = text.replace("id: s001", "id: s004")
        (bank_folder / "tasks" / "s004.yml").write_text(copy, encoding="utf-8")
        assert main([str(bank_folder)]) == 1
        assert "a likeness of 1.00" in capsys.readouterr().out

    def test_faults_are_printed(
        self, change_task: Callable[..., Path], capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = change_task("s002", lambda d: d["check"].update(wrong="takes in 234 crowns"))
        assert main([str(folder), "--task", "s002", "--show"]) == 1
        out = capsys.readouterr().out
        assert "tasks/s002.yml, check.wrong" in out
        assert "--- s002: length, longer" in out

    def test_task_that_is_not_there(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main([str(SMALL), "--task", "s999"]) == 1
        assert "no such file" in capsys.readouterr().out

    def test_as_a_module(self) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "judge_calibration.bank", str(SMALL)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
