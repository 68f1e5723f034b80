"""Plans of calls without pairs, and parameters of asking, for tests and for the processes they start."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from judge_calibration import schemas
from judge_calibration.options.asking import AskingOptions, TransportOptions
from judge_calibration.text import canonical_json, sha256_of

SERVERS = str(Path(__file__).resolve().parent)


@dataclass(frozen=True)
class OneJudge:
    """A judge as asking needs it."""

    judge_id: str
    transport: TransportOptions


@dataclass(frozen=True)
class Asked:
    """Parameters as asking needs them."""

    judges: tuple[OneJudge, ...]
    asking: AskingOptions = field(default_factory=AskingOptions)


def plan(contents: list[str], judge_id: str = "judge", **settings: Any) -> pd.DataFrame:
    """One call for each content, as the table ``calls``."""
    rows = []
    for number, content in enumerate(contents):
        request = {
            "model": "hosted_vllm/m",
            "messages": [{"role": "user", "content": content}],
            "temperature": 0.0,
            "seed": number,
            "max_tokens": 8,
            "top_p": None,
            "constraint": {"kind": "none", "schema": None, "grammar": None},
            "top_logprobs": 0,
            "reasoning_effort": None,
            "substitutions": {},
            **settings,
        }
        rows.append(
            {
                "call_id": sha256_of([judge_id, content, settings]),
                "pair_id": f"pair-{number}",
                "judge_id": judge_id,
                "instrument_id": "instrument",
                "protocol": "direct",
                "constraint": "none",
                "step": "verdict",
                "order": "AB",
                "temperature": 0.0,
                "repetition": 0,
                "request": canonical_json(request),
            }
        )
    return schemas.conform(pd.DataFrame(rows), schemas.CALLS)
