"""Labels by people, out of the rows of described files."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from judge_calibration.options.layout import Layout
from judge_calibration.sources.codes import CodeTable, lookup
from judge_calibration.sources.fields import Reader
from judge_calibration.sources.files import OpenFile
from judge_calibration.sources.pairs import _text, check_fields, read_labels_of, read_orders
from judge_calibration.sources.problems import Problems, show
from judge_calibration.sources.records import Block

FIELDS = frozenset(
    ("pair_id", "annotator_id", "label", "order", "attribute", "stage", "labelled_at", "reason_codes")
)


MAKERS = ("human", "ai")
"""Who may have made the labels of a file. What a benchmark says is a reference of its pairs, and no label."""


class LabelBuilder:
    """Collects the labels of one file."""

    def __init__(self, layout: Layout, file: OpenFile, problems: Problems) -> None:
        self.layout = layout
        self.file = file
        self.problems = problems
        self.reader = Reader(file, problems)
        self.notes: Counter[str] = Counter()
        self.fields = layout.fields
        self._codes = CodeTable(layout.codes) if layout.codes else None
        self._orders = lookup(layout.order_codes.AB, layout.order_codes.BA)
        self._frames: list[pd.DataFrame] = []
        place = f"layout '{layout.layout}'"
        for column, found, wanted in check_fields(
            layout, FIELDS, (("pair_id", "annotator_id", "label"),), file.given
        ):
            problems.add(place, None, column, found, wanted)
        maker = layout.reference_kind
        if maker not in MAKERS:
            problems.add(
                place, None, "reference_kind", show(maker) if maker else "nothing",
                "who made these labels: human or ai (`set: {reference_kind: human}`)",
            )  # fmt: skip
        if self._codes is None:
            problems.add(place, None, "codes", "nothing", "what the label's values mean")
        if layout.order_mode == "shown" and "order" not in layout.fields:
            problems.add(place, None, "order", "nothing", "the order: these labels name places")

    def add(self, block: Block) -> None:
        """Read a block of rows."""
        self.fields = self.reader.present(self.layout.fields, block)
        fields = self.fields
        if self._codes is None or not {"pair_id", "annotator_id", "label"} <= fields.keys():
            return
        order: list[str | None] = [None] * len(block.rows)
        if "order" in fields:
            order = read_orders(self.reader, fields["order"], self._orders, block, self.problems)
        label = read_labels_of(
            self.reader.values(fields["label"], block), list(order), self._codes, block.rows, self.file.given,
            fields["label"].column or "label", self.problems,
        )  # fmt: skip
        names = {
            name: self.reader.names(fields.get(name), block, name) for name in FIELDS - {"label", "order"}
        }
        for name in ("pair_id", "annotator_id"):
            for row, value in zip(block.rows, names[name], strict=True):
                if value is None:
                    self.problems.add(
                        self.file.given, row, fields[name].column or name, "nothing", f"a {name}"
                    )
        stage = [value or "primary" for value in names.pop("stage")]
        for row, value in zip(block.rows, stage, strict=True):
            if value not in ("primary", "adjudication"):
                self.problems.add(self.file.given, row, "stage", show(value), "primary or adjudication")
        frame = pd.DataFrame(
            {
                **{name: _text(values) for name, values in names.items()},
                "label": _text(label),
                "order": _text(list(order)),
                "stage": _text(stage),
                "kind": self.layout.reference_kind,
                "_row": block.rows,
            }
        )
        self.notes["without_label"] += int(frame["label"].isna().sum())
        self._frames.append(frame[frame["label"].notna()])

    def finish(self) -> pd.DataFrame:
        """Return the labels, one a person, pair, attribute and stage."""
        self.reader.note_missing_columns()
        if not self._frames:
            return pd.DataFrame()
        frame = self.problems.sound(pd.concat(self._frames, ignore_index=True), self.file.given)
        key = ["pair_id", "attribute", "annotator_id", "stage"]
        repeated = frame[frame.duplicated(key, keep=False)]
        drop: list[int] = []
        for _, group in repeated.groupby(key, dropna=False, sort=False):
            agree = len(set(group["label"])) == 1
            rows = [int(row) for row in group["_row"]]
            if self.layout.rules.repeated_votes == "refuse" or not agree:
                who = f"{show(group['annotator_id'].iloc[0])} on pair {show(group['pair_id'].iloc[0])}"
                told = "the same label" if agree else f"labels {group['label'].tolist()[:6]}"
                self.problems.add(
                    self.file.given, rows[1], None, f"{who} twice (as in row {rows[0]}), with {told}",
                    "one label each (`rules: {repeated_votes: merge}` keeps one where they agree)",
                )  # fmt: skip
                continue
            self.notes["repeated_votes"] += len(group) - 1
            drop.extend(group.index[1:])
        return frame.drop(index=drop).reset_index(drop=True)
