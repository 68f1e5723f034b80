"""The checks that the catalog's ``validator:`` key names: one plain function a canonical table.

Kedro calls them on every save and load and lists all faults of a table in one message.
"""

from __future__ import annotations

import pandas as pd

from judge_calibration import schemas


def pairs(frame: pd.DataFrame) -> pd.DataFrame:
    """Check the table ``pairs``."""
    return schemas.check(frame, schemas.PAIRS)


def calls(frame: pd.DataFrame) -> pd.DataFrame:
    """Check the table ``calls``."""
    return schemas.check(frame, schemas.CALLS)


def answers(frame: pd.DataFrame) -> pd.DataFrame:
    """Check the table ``answers``."""
    return schemas.check(frame, schemas.ANSWERS)


def verdicts(frame: pd.DataFrame) -> pd.DataFrame:
    """Check the table ``verdicts``."""
    return schemas.check(frame, schemas.VERDICT_ROWS)


def labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Check the table ``labels``."""
    return schemas.check(frame, schemas.LABELS)


def reads(frame: pd.DataFrame) -> pd.DataFrame:
    """Check the table ``reads``."""
    return schemas.check(frame, schemas.READS)
