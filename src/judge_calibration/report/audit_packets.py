"""The audit queue as blinded packets: nothing in them tells a verdict, a reason or how pressing one is."""

from __future__ import annotations

import pandas as pd

from judge_calibration.labelling.handing_out import round_files
from judge_calibration.labelling.identity import RoundKey
from judge_calibration.labelling.packets import make_packets
from judge_calibration.labelling.planning import KEY_COLUMNS

AUDITOR = "auditor"
STAGE = "audit"


def audit_key(queue: pd.DataFrame, pairs: pd.DataFrame, key: RoundKey) -> pd.DataFrame:
    """Return which packet is which pair, in a sequence and with orders that depend on the key alone.

    Parameters
    ----------
    queue : pandas.DataFrame
        The audit queue (metrics.audit_queue.AUDIT_COLUMNS); a pair that several judges brought in is one
        packet. Pairs whose texts are not there get none.
    pairs : pandas.DataFrame
    key : RoundKey

    Returns
    -------
    pandas.DataFrame
        labelling.planning.KEY_COLUMNS, and ``reasons`` (every judge's, joined). Un-blinds: not for auditors.
    """
    queued = queue[queue["queued"]]
    shown = pairs[pairs["question"].notna() & pairs["response_a"].notna() & pairs["response_b"].notna()]
    rows = []
    for pair_id, own in queued[queued["pair_id"].isin(shown["pair_id"])].groupby("pair_id", sort=True):
        rows.append(
            {
                "packet_id": key.packet_id(str(pair_id), key.pseudonym(AUDITOR), STAGE),
                "round_id": key.round_id,
                "pair_id": pair_id,
                "annotator_id": key.pseudonym(AUDITOR),
                "stage": STAGE,
                "slot": 1,
                "order": "AB" if key.uniform("audit order", str(pair_id)) < 0.5 else "BA",
                "status": "issued",
                "reasons": "; ".join(dict.fromkeys(own["reasons"])),
            }
        )
    frame = pd.DataFrame(rows, columns=[*KEY_COLUMNS, "reasons"]).sort_values("packet_id", kind="stable")
    frame["sequence"] = range(1, len(frame) + 1)
    kinds = dict.fromkeys([*KEY_COLUMNS, "reasons"], "str") | {"slot": "Int64", "sequence": "Int64"}
    return frame.astype(kinds).reset_index(drop=True)


def audit_files(pairs: pd.DataFrame, key: pd.DataFrame, simulated: bool = False) -> dict[str, str | bytes]:
    """Return the packets as a spreadsheet, a workbook and Label Studio tasks, by relative path."""
    packets = make_packets(pairs, key[KEY_COLUMNS], simulated)
    return round_files(packets, packets.head(0))
