"""Small tables of pairs, verdicts and labels for the tests of the commands."""

from typing import Any

import pandas as pd

from judge_calibration.schemas import LABELS, PAIRS, VERDICT_ROWS, conform, empty


def make_pairs(n: int = 40, prefix: str = "p", **columns: Any) -> pd.DataFrame:
    """One pair a base task, of the domain math."""
    frame = pd.DataFrame(
        {
            "pair_id": [f"{prefix}{i}" for i in range(n)],
            "base_id": [f"{prefix}t{i}" for i in range(n)],
            "source": "made",
            "domain": "math",
            "stakes": "ordinary",
            "language": "en",
            "question": "q",
            "response_a": "one",
            "response_b": "two",
            "sentinel": False,
            "content_hash": "0",
        }
    ).assign(**columns)
    return conform(frame, PAIRS)


def make_verdicts(pairs: pd.DataFrame, said: list[str | None], **columns: Any) -> pd.DataFrame:
    """One judge's verdicts: the same in both orders; None is a malformed reply."""
    about = {
        "judge_id": "judge",
        "instrument_id": "instrument-1",
        "protocol": "direct",
        "constraint": "none",
        "temperature": 0.0,
        "repetition": 0,
    }
    parts = [
        pd.DataFrame({"pair_id": pairs["pair_id"], "order": order, "verdict": said}) for order in ("AB", "BA")
    ]
    frame = pd.concat(parts, ignore_index=True)
    frame["outcome"] = ["malformed" if pd.isna(value) else "valid" for value in frame["verdict"]]
    return conform(frame.assign(**(about | columns)), VERDICT_ROWS)


def make_labels(pairs: pd.DataFrame, said: list[str]) -> pd.DataFrame:
    """One annotator's overall preferences."""
    if not said:
        return empty(LABELS)
    frame = pd.DataFrame(
        {"pair_id": pairs["pair_id"], "label": said, "annotator_id": "annotator", "stage": "primary"}
    )
    return conform(frame, LABELS)
