"""What an annotator sees: question, source packet, two answers in an order of their own, the rubric.

Nothing else is in a packet: no manipulation, expected label, generator, provenance, verdict of a judge, pair
id or base task. Hidden text is made visible; nothing is rendered, so links and markup stay text.
"""

from __future__ import annotations

import pandas as pd

from judge_calibration.errors import Problem, TableError
from judge_calibration.labelling.rubric import rubric_text
from judge_calibration.labelling.visible import make_visible, packet_text, question_text

PACKET_COLUMNS = [
    "packet_id",
    "annotator_id",
    "sequence",
    "question",
    "source_packet",
    "answer_a",
    "answer_b",
    "rubric",
]
"""Columns of the packets; ``answer_a`` is the answer that is shown as A, whichever candidate wrote it."""

SIMULATED = "SIMULATED"


def make_packets(
    pairs: pd.DataFrame, key: pd.DataFrame, simulated: bool = False, questions: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the packets of the given rows of the un-blinding key.

    Parameters
    ----------
    pairs : pandas.DataFrame
        The canonical pairs; only question, source_packet and the two responses are read.
    key : pandas.DataFrame
        Rows of the key (planning.KEY_COLUMNS) whose packets are wanted.
    simulated : bool, optional
        Marks every packet SIMULATED, in a column ``mark``.
    questions : pandas.DataFrame, optional
        Attributes that are asked of each pair after the overall preference (study.ask_attributes).

    Returns
    -------
    pandas.DataFrame
        PACKET_COLUMNS, and attribute_n and attribute_n_question where any are asked; by annotator and place
        in the annotator's list.

    Raises
    ------
    TableError
        If a planned pair is not among the pairs.
    """
    by_pair = pairs.set_index("pair_id")
    unknown = sorted(set(key["pair_id"]) - set(by_pair.index))
    if unknown:
        raise TableError(
            "The plan names pairs that are not there.",
            [Problem("annotation_plan, pair_id", repr(pair_id), "a pair of `pairs`") for pair_id in unknown],
            "plan the round again: kedro run --pipelines annotation",
        )
    used = by_pair.loc[sorted(set(key["pair_id"])), ["question", "source_packet", "response_a", "response_b"]]
    shown = pd.DataFrame(
        {
            "question": used["question"].map(question_text),
            "source_packet": used["source_packet"].map(
                lambda text: packet_text(None if pd.isna(text) else text)
            ),
            "response_a": used["response_a"].map(make_visible),
            "response_b": used["response_b"].map(make_visible),
        }
    ).reindex(key["pair_id"])
    forward = (key["order"] == "AB").to_numpy()
    packets = pd.DataFrame(
        {
            "packet_id": key["packet_id"].to_numpy(),
            "annotator_id": key["annotator_id"].to_numpy(),
            "sequence": key["sequence"].to_numpy(),
            "question": shown["question"].to_numpy(),
            "source_packet": shown["source_packet"].to_numpy(),
            "answer_a": shown["response_a"].where(forward, shown["response_b"]).to_numpy(),
            "answer_b": shown["response_b"].where(forward, shown["response_a"]).to_numpy(),
            "rubric": rubric_text(),
        },
        columns=PACKET_COLUMNS,
    ).astype(dict.fromkeys([c for c in PACKET_COLUMNS if c != "sequence"], "str") | {"sequence": "Int64"})
    if questions is not None and len(questions):
        asked = questions.set_index("pair_id").reindex(key["pair_id"])
        for column in asked.columns:
            packets[column] = pd.Series(asked[column].to_numpy(), dtype="str")
    if simulated:
        packets["mark"] = pd.Series(SIMULATED, index=packets.index, dtype="str")
    return packets.sort_values(["annotator_id", "sequence"], kind="stable").reset_index(drop=True)


def primary_packets(
    pairs: pd.DataFrame, key: pd.DataFrame, simulated: bool = False, questions: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the packets that are out: those of the primary stage that were not handed over."""
    out = key[(key["stage"] == "primary") & (key["status"] == "issued")]
    return make_packets(pairs, out, simulated, questions)


def attribute_slots(packets: pd.DataFrame) -> list[str]:
    """Return the columns that name the attributes a packet asks for: attribute_1, attribute_2, ...

    Examples
    --------
    >>> attribute_slots(pd.DataFrame(columns=["packet_id", "attribute_1", "attribute_1_question"]))
    ['attribute_1']
    """
    return sorted(c for c in packets.columns if c.startswith("attribute_") and c.split("_")[-1].isdigit())
