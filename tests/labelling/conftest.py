"""Fixtures of the labelling tests."""

import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from labelling_helpers import Round, fabricate_pairs, make_options

collect_ignore = ["conftest.py"]  # a file of fixtures, not a module of doctests


@pytest.fixture(scope="session")
def pairs() -> pd.DataFrame:
    return fabricate_pairs(24)


@pytest.fixture(scope="session")
def a_round(pairs: pd.DataFrame) -> Round:
    return Round(pairs, make_options())
