"""Label rows: what a file of labels says, before it is checked against the plan.

Every reader (spreadsheets, Label Studio) gives the same columns. They may hold people's names, so they stay
in memory; only checked labels under pseudonyms reach an artifact.
"""

from __future__ import annotations

import pandas as pd

ROW_COLUMNS = [
    "file",
    "row",
    "made_by",
    "annotator",
    "packet_id",
    "pair_id",
    "attribute",
    "label",
    "reason_codes",
    "comment",
    "labelled_at",
    "state",
    "question",
    "answer_a",
    "answer_b",
    "place",
    "layout",
    "label_column",
    "said_by",
    "declared",
    "changed_by",
    "begun_from",
]
"""Columns of label rows.

``file`` (as it was given), ``row`` (as a spreadsheet shows it, or the number of the task) and ``place`` (the
same in words) say where the row stands; ``layout`` and ``label_column`` how its columns are called there.
``annotator`` is who labelled: ``declared`` for the file or else ``said_by`` the row (null: it does not say);
``changed_by`` is somebody else who changed the label afterwards (null: nobody did); ``begun_from`` says what
else the label was begun from, a model's prediction or somebody else's label (null: nothing);
``packet_id`` for blinded labels (by the answers as shown) or ``pair_id`` for labels by candidate identity;
``state`` completed, skipped, cancelled or open; ``question``, ``answer_a``, ``answer_b`` the packet as it
came back (null: the file has none).
"""


def empty_rows() -> pd.DataFrame:
    """Return a frame of label rows with no row."""
    return rows_frame([])


def rows_frame(records: list[dict[str, object]]) -> pd.DataFrame:
    """Return label rows as a frame; absent columns are null."""
    frame = pd.DataFrame(records, columns=ROW_COLUMNS)
    texts = [column for column in ROW_COLUMNS if column != "row"]
    return frame.astype(dict.fromkeys(texts, "str") | {"row": "Int64"})
