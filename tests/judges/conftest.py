"""What tests of asking share: the fault server on the path, and fixtures that plan calls without pairs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judge_calibration.options.asking import AskingOptions, TransportOptions

SERVERS = str(Path(__file__).resolve().parents[1] / "servers")
if SERVERS not in sys.path:
    sys.path.insert(0, SERVERS)

from planned_calls import Asked, OneJudge, plan  # noqa: E402


@pytest.fixture
def make_plan() -> Callable[..., pd.DataFrame]:
    """One call for each content, as the table ``calls``."""
    return plan


@pytest.fixture
def asked() -> Callable[..., Asked]:
    """Parameters for one judge: fields of the transport, and of asking."""

    def make(asking: dict[str, Any] | None = None, judge_id: str = "judge", **transport: Any) -> Asked:
        quick = {"retries": {"first_wait_s": 0.001, "longest_wait_s": 0.01}, **transport}
        judge = OneJudge(judge_id, TransportOptions.model_validate(quick))
        return Asked((judge,), AskingOptions.model_validate(asking or {}))

    return make
