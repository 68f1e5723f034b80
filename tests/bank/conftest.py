"""A small bank of three tasks, as files that a test may break."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from judge_calibration.bank import Bank, load_bank

SMALL = Path(__file__).parent / "small_bank"

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="session")
def small_bank() -> Bank:
    return load_bank(SMALL)


@pytest.fixture
def bank_folder(tmp_path: Path) -> Path:
    """A copy of the small bank."""
    return Path(shutil.copytree(SMALL, tmp_path / "bank"))


@pytest.fixture
def change_task(bank_folder: Path) -> Callable[[str, Change], Path]:
    """Rewrite one task file of the copy; returns the bank's folder."""

    def change(task_id: str, edit: Change) -> Path:
        path = bank_folder / "tasks" / f"{task_id}.yml"
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        edit(data)
        path.write_text(yaml.safe_dump(data, allow_unicode=True, sort_keys=False), encoding="utf-8")
        return bank_folder

    return change
