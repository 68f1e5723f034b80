"""The judge card: one cell's instrument, numbers and answer in a form that machines read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from judge_calibration.metrics.trust_statistics import METRICS
from judge_calibration.options.reporting import RegionOptions
from judge_calibration.report.sections import answers, cell_labels, whole_rows
from judge_calibration.report.wording import is_missing, undefined_reasons


def judge_cards(
    trust: pd.DataFrame, outcomes: pd.DataFrame, instruments: Mapping[str, Any], regions: RegionOptions
) -> dict[str, Any]:
    """Return the cards of all cells.

    Parameters
    ----------
    trust, outcomes : pandas.DataFrame
        The trust table and the outcome table.
    instruments : mapping
        instrument_id to its identity; a log's instrument is not on record and its card says null.
    regions : RegionOptions

    Returns
    -------
    dict
        ``{"cards": [...]}``; a statistic holds value, low and high (null where undefined, with the reason).
    """
    worded = {answer.name: answer for answer in answers(trust, outcomes, regions)}
    rows = whole_rows(trust)
    cards = []
    for row, name in zip(rows.to_dict("records"), cell_labels(rows), strict=True):
        reasons = undefined_reasons({str(key): value for key, value in row.items()})
        cards.append(
            {
                "cell": name,
                "answer": worded[name].headline,
                "instrument_id": _known(row["instrument_id"]),
                "instrument": instruments.get(str(row["instrument_id"])),
                "source": _known(row["source"]),
                "judge_id": row["judge_id"],
                "protocol": _known(row["protocol"]),
                "constraint": _known(row["constraint"]),
                "temperature": _known(row["temperature"]),
                "n_pairs": _known(row["n_pairs"]),
                "n_clusters": _known(row["n_clusters"]),
                "repetitions": _known(row["repetitions"]),
                "statistics": {
                    metric: {
                        "value": _known(row[metric]),
                        "low": _known(row[f"{metric}_low"]),
                        "high": _known(row[f"{metric}_high"]),
                        "undefined": reasons.get(metric),
                    }
                    for metric in METRICS
                },
            }
        )
    return {"cards": cards}


def _known(value: Any) -> Any:
    if is_missing(value):
        return None
    return value.item() if hasattr(value, "item") else value
