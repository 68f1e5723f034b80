"""The copy of the bank for others."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from judge_calibration.bank import Bank, BankError, load_bank
from judge_calibration.bank.publish import main, publish
from judge_calibration.schemas import PAIRS, check

SMALL = Path(__file__).parent / "small_bank"


class TestPublish:
    def test_checksums_and_description_fit_the_table(self, small_bank: Bank, tmp_path: Path) -> None:
        publish(small_bank, tmp_path)
        for line in (tmp_path / "SHA256SUMS").read_text().splitlines():
            digest, name = line.split("  ")
            assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest
        described = json.loads((tmp_path / "croissant.json").read_text(encoding="utf-8"))
        file = described["distribution"][0]
        content = (tmp_path / "pairs.parquet").read_bytes()
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
        assert file["contentSize"] == f"{len(content)} B"
        columns = [f["source"]["extract"]["column"] for f in described["recordSet"][0]["field"]]
        assert columns == list(check(pd.read_parquet(tmp_path / "pairs.parquet"), PAIRS).columns)

    def test_the_same_bank_gives_the_same_bytes(self, small_bank: Bank, tmp_path: Path) -> None:
        first, second = publish(small_bank, tmp_path / "a"), publish(small_bank, tmp_path / "b")
        assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]

    def test_nothing_is_written_of_a_faulty_bank(
        self, change_task: Callable[..., Path], tmp_path: Path
    ) -> None:
        folder = change_task("s001", lambda d: d["correctness"].update(settled_by="P3"))
        with pytest.raises(BankError):
            publish(load_bank(folder), tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_from_a_shell(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main([str(SMALL), str(tmp_path / "out")]) == 0
        assert "croissant.json" in capsys.readouterr().out
        assert main([str(tmp_path), str(tmp_path / "out")]) == 2
