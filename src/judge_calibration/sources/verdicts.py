"""Verdicts that were made elsewhere, out of the rows of described logs, and the pairs that they are about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from judge_calibration.options.layout import FlagRule, Layout, OutcomeRule
from judge_calibration.sources.codes import NONE, UNKNOWN, CodeTable, code_key, lookup
from judge_calibration.sources.fields import Reader
from judge_calibration.sources.files import OpenFile
from judge_calibration.sources.identity import content_hash, question_cluster
from judge_calibration.sources.pairs import CODES, _stem, _text, check_fields, read_labels_of, read_orders
from judge_calibration.sources.problems import Problems, show
from judge_calibration.sources.records import Block
from judge_calibration.text import sha256_of

# Above it a number read as floating point is no longer sure to be the one that the file holds.
_LARGEST_WHOLE = 2**53

PAIR_FIELDS = (
    "source",
    "base_id",
    "domain",
    "difficulty",
    "manipulation",
    "variant",
    "candidate_a",
    "candidate_b",
)
TEXT_FIELDS = ("question", "response_a", "response_b")
FIELDS = frozenset(
    (
        *PAIR_FIELDS, *TEXT_FIELDS, "pair_id", "reference_label", "reference_kind", "judge_id", "protocol",
        "constraint", "order", "temperature", "repetition", "verdict", "confidence", "scores",
    )
)  # fmt: skip


class VerdictBuilder:
    """Collects the verdicts of one log and the pairs that they are about."""

    def __init__(self, layout: Layout, file: OpenFile, problems: Problems) -> None:
        self.layout = layout
        self.file = file
        self.problems = problems
        self.reader = Reader(file, problems)
        self.notes: Counter[str] = Counter()
        self.odd_values: Counter[str] = Counter()
        """Verdicts that are no code and count as malformed, as a message shows them."""
        self.fields = layout.fields
        self._codes = CodeTable(layout.codes) if layout.codes else None
        self._reference_codes = CodeTable(layout.reference_codes) if layout.reference_codes else None
        self._orders = lookup(layout.order_codes.AB, layout.order_codes.BA)
        self._frames: list[pd.DataFrame] = []
        self._pair_frames: list[pd.DataFrame] = []
        self._provenance = f"{layout.layout}: {file.name} (sha256 {file.sha256[:12]}), row "
        place = f"layout '{layout.layout}'"
        needed: tuple[tuple[str, ...], ...] = (
            ("judge_id", "verdict", "pair_id"),
            ("judge_id", "verdict", *TEXT_FIELDS),
        )
        if layout.shown is None:
            needed = tuple((*group, "order") for group in needed)
        for column, found, wanted in check_fields(layout, FIELDS, needed, file.given):
            problems.add(place, None, column, found, wanted)
        if self._codes is None:
            problems.add(place, None, "codes", "nothing", "what the values of the verdict mean")
        if "reference_label" in layout.fields:
            if self._reference_codes is None:
                problems.add(
                    place, None, "reference_codes", "nothing", "what the reference label's values mean"
                )
            optional = layout.fields["reference_label"].optional
            if not optional and layout.reference_kind is None and "reference_kind" not in layout.fields:
                problems.add(
                    place,
                    None,
                    "reference_kind",
                    "nothing",
                    "human, ai, benchmark or constructed: who made the labels",
                )
        has_texts = all(name in layout.fields for name in TEXT_FIELDS)
        if not has_texts and layout.rules.missing_texts == "refuse":
            problems.add(
                place,
                None,
                "question",
                "no texts",
                "fields for the texts, or `rules: {missing_texts: allow}`",
            )
        self._has_texts = has_texts

    def add(self, block: Block) -> None:
        """Read a block of rows."""
        self.fields = self.reader.present(self.layout.fields, block)
        fields, size = self.fields, len(block.rows)
        if self._codes is None or not {"verdict", "judge_id"} <= self.layout.fields.keys():
            return
        texts = self._texts(block)
        pair_id = self._pair_ids(block, texts)
        order, extra = self._orders_of(block, pair_id)
        verdict, outcome = self._verdicts(block, order)
        reference = self._references(block, order)
        constraint = self.reader.names(fields.get("constraint"), block, "constraint")
        judge = self._required("judge_id", block)
        protocol = self._required("protocol", block) if "protocol" in fields else ["as_logged"] * size
        first_is = [{"AB": "A", "BA": "B"}.get(o or "") for o in order]
        self._frames.append(
            pd.DataFrame(
                {
                    "pair_id": _text(pair_id),
                    "judge_id": _text(judge),
                    "instrument_id": _text(self._instruments(block, judge, protocol, constraint)),
                    "protocol": _text(protocol),
                    "constraint": _text(constraint),
                    "order": _text(order),
                    "temperature": _floats(
                        self.reader.numbers(fields.get("temperature"), block, "temperature")
                    ),
                    "repetition": pd.array(self._repetitions(block), dtype="Int64"),
                    "outcome": _text(outcome),
                    "verdict": _text(verdict),
                    "shown_winner": _text(
                        [
                            None
                            if v not in ("A", "B") or f is None or not self.layout.order_recorded
                            else "first"
                            if v == f
                            else "second"
                            for v, f in zip(verdict, first_is, strict=True)
                        ]
                    ),
                    "scores": _text(self.reader.names(fields.get("scores"), block, "scores")),
                    "confidence": _floats(self.reader.numbers(fields.get("confidence"), block, "confidence")),
                    "flags": _text(self._flags(block)),
                    "_row": block.rows,
                }
            )
        )
        self._add_pairs(block, pair_id, texts, reference, extra)

    # -- pairs ----------------------------------------------------------------------------------------

    def _texts(self, block: Block) -> list[list[str | None]]:
        if not self._has_texts:
            return [[None] * len(block.rows) for _ in TEXT_FIELDS]
        return [self.reader.texts(self.fields[name], block, name) for name in TEXT_FIELDS]

    def _pair_ids(self, block: Block, texts: list[list[str | None]]) -> list[str]:
        if "pair_id" in self.fields:
            return self._required("pair_id", block)
        source = self._sources(block)
        return [
            f"{s}-{content_hash(q or '', a or '', b or '')[:16]}"
            for s, q, a, b in zip(source, *texts, strict=True)
        ]

    def _sources(self, block: Block) -> list[str]:
        if "source" in self.fields:
            return self._required("source", block)
        return [_stem(self.file.name)] * len(block.rows)

    def _orders_of(
        self, block: Block, pair_id: list[str]
    ) -> tuple[list[str | None], dict[str, list[str | None]]]:
        """Return the orders; where the file names candidates, A is the one whose name sorts first.

        The pair's id is completed by both names then, so that it is the same in both orders.
        """
        shown = self.layout.shown
        if shown is None:
            if "order" not in self.fields:
                return [None] * len(block.rows), {}
            return read_orders(self.reader, self.fields["order"], self._orders, block, self.problems), {}
        first = self.reader.names(shown.first, block, "shown first")
        second = self.reader.names(shown.second, block, "shown second")
        orders: list[str | None] = []
        extra: dict[str, list[str | None]] = {"candidate_a": [], "candidate_b": []}
        for number, (row, x, y) in enumerate(zip(block.rows, first, second, strict=True)):
            if x is None or y is None or x == y:
                self.problems.add(
                    self.file.given,
                    row,
                    f"{shown.first.column}/{shown.second.column}",
                    f"{show(x)} and {show(y)}",
                    "two candidates' names",
                )
            low, high = sorted((x or "", y or ""))
            orders.append("AB" if x == low else "BA")
            extra["candidate_a"].append(low)
            extra["candidate_b"].append(high)
            pair_id[number] = f"{pair_id[number]}/{low}/{high}"
        return orders, extra

    def _references(self, block: Block, order: Sequence[str | None]) -> list[str | None]:
        field = self.fields.get("reference_label")
        if field is None or self._reference_codes is None:
            return [None] * len(block.rows)
        return read_labels_of(
            self.reader.values(field, block), list(order), self._reference_codes, block.rows, self.file.given,
            field.column or "reference_label", self.problems,
        )  # fmt: skip

    def _add_pairs(
        self, block: Block, pair_id: list[str], texts: list[list[str | None]], reference: list[str | None],
        extra: dict[str, list[str | None]],
    ) -> None:  # fmt: skip
        fields, size = self.fields, len(block.rows)
        columns: dict[str, Any] = {
            name: extra.get(name) or self.reader.names(fields.get(name), block, name) for name in PAIR_FIELDS
        }
        columns["source"] = self._sources(block)
        kinds = self.reader.names(fields.get("reference_kind"), block, "reference_kind")
        if (
            any(label is not None for label in reference)
            and not self.layout.reference_kind
            and not any(kinds)
        ):
            self.problems.add(
                self.file.given, None, "reference_kind", "nothing",
                "human, ai, benchmark or constructed: who or what made the reference labels "
                "(`set: {reference_kind: human}`)",
            )  # fmt: skip
        columns["reference_kind"] = [
            None if label is None else kind or self.layout.reference_kind
            for label, kind in zip(reference, kinds, strict=True)
        ]
        frame = pd.DataFrame(
            {
                "pair_id": _text(pair_id),
                **{name: _text(values) for name, values in columns.items()},
                **{name: _text(values) for name, values in zip(TEXT_FIELDS, texts, strict=True)},
                "reference_label": _text(reference),
                "_row": block.rows,
            },
            index=range(size),
        )
        known = [name for name in frame.columns if name != "_row"]
        self._pair_frames.append(frame.drop_duplicates(known))

    def _finish_pairs(self) -> pd.DataFrame:
        if not self._pair_frames:
            return pd.DataFrame()
        frame = self.problems.sound(pd.concat(self._pair_frames, ignore_index=True), self.file.given)
        known = [name for name in frame.columns if name != "_row"]
        frame = frame.drop_duplicates(known).reset_index(drop=True)
        for pair_id, group in frame[frame["pair_id"].duplicated(keep=False)].groupby("pair_id", sort=False):
            for name in known:
                values = [value if isinstance(value, str) else None for value in group[name]]
                if len(set(values)) > 1:
                    row = int(group["_row"].iloc[1])
                    self.problems.add(
                        self.file.given, row, name,
                        f"pair {show(pair_id)} with {show(values[1])}, but {show(values[0])} in row "
                        f"{int(group['_row'].iloc[0])}",
                        "one value for each pair",
                    )  # fmt: skip
        frame = frame.drop_duplicates("pair_id").reset_index(drop=True)
        if frame["base_id"].isna().any():
            if self._has_texts:
                base = [
                    question_cluster(text) if isinstance(text, str) else None for text in frame["question"]
                ]
            else:  # with no text and no id of the question, each pair is its own cluster
                base = frame["pair_id"].tolist()
            frame["base_id"] = frame["base_id"].where(frame["base_id"].notna(), pd.Series(base, dtype="str"))
        frame["content_hash"] = _text(
            [
                content_hash(*row[1:])
                if all(isinstance(t, str) for t in row[1:])
                else sha256_of({"pair_id": row[0]})
                for row in frame[["pair_id", *TEXT_FIELDS]].itertuples(index=False)
            ]
        )
        frame["stakes"] = "ordinary"
        frame["sentinel"] = False
        frame["language"] = self.layout.language
        frame["license"] = self.layout.licence
        frame["provenance"] = [self._provenance + str(row) for row in frame["_row"]]
        if not self._has_texts:
            self.notes["pairs_without_texts"] = len(frame)
        return frame

    # -- verdicts -------------------------------------------------------------------------------------

    def _verdicts(self, block: Block, order: Sequence[str | None]) -> tuple[list[str | None], list[str]]:
        """Return verdicts by identity and outcomes; what has no verdict gets its reason, never a verdict."""
        assert self._codes is not None
        # Also where it is optional and absent: every row has to end with a verdict or with a cause.
        field = self.layout.fields["verdict"]
        values = self.reader.values(field, block)
        cannot = self._outcomes(block, [rule for rule in self.layout.outcomes if rule.over_verdict])
        why = self._outcomes(block, [rule for rule in self.layout.outcomes if not rule.over_verdict])
        verdicts: list[str | None] = []
        outcomes: list[str] = []
        for number, (row, value, side) in enumerate(zip(block.rows, values, order, strict=True)):
            meaning = self._codes.meaning(value)
            if cannot[number] is not None:
                if meaning not in (NONE, UNKNOWN):
                    self.notes[f"verdicts_overruled_by_{cannot[number]}"] += 1
                verdicts.append(None)
                outcomes.append(str(cannot[number]))
            elif meaning == UNKNOWN and self.layout.rules.unknown_verdict == "malformed":
                self.odd_values[self._codes.told(value)] += 1
                verdicts.append(None)
                outcomes.append(why[number] or "malformed")
            elif meaning == UNKNOWN:
                self.problems.add(
                    self.file.given,
                    row,
                    field.column or "verdict",
                    self._codes.told(value),
                    self._codes.wanted,
                )
                self.problems.advise(CODES)
                verdicts.append(None)
                outcomes.append("missing")
            elif meaning == NONE:
                if why[number] is None:
                    self.problems.add(
                        self.file.given, row, field.column or "verdict",
                        f"{show(value)} and no rule that says why", "a verdict, or a rule under `outcomes`",
                    )  # fmt: skip
                verdicts.append(None)
                outcomes.append(why[number] or "missing")
            else:
                if meaning in ("first", "second"):
                    meaning = "A" if (meaning == "first") == (side == "AB") else "B"
                verdicts.append(meaning)
                outcomes.append("valid")
        self.notes.update(f"outcome_{outcome}" for outcome in outcomes if outcome != "valid")
        return verdicts, outcomes

    def _outcomes(self, block: Block, rules: list[OutcomeRule]) -> list[str | None]:
        found: list[str | None] = [None] * len(block.rows)
        for rule in rules:
            hits = self._hits(rule, block)
            found = [
                old if old is not None else rule.outcome if hit else None
                for old, hit in zip(found, hits, strict=True)
            ]
        return found

    def _hits(self, rule: OutcomeRule | FlagRule, block: Block) -> list[bool]:
        if rule.column is None:
            return [True] * len(block.rows)
        if not self.reader.present({"column": rule.column}, block):
            return [False] * len(block.rows)
        values = self.reader.values(rule.column, block)
        wanted = {code_key(value) for value in rule.values}
        pattern = re.compile(rule.matches, re.DOTALL) if rule.matches is not None else None
        return [
            code_key(value) in wanted
            or (
                pattern is not None
                and isinstance(value, (str, int, float))
                and bool(pattern.search(str(value)))
            )
            for value in values
        ]

    def _flags(self, block: Block) -> list[str]:
        hits = [(rule.flag, self._hits(rule, block)) for rule in self.layout.flags]
        out = []
        for number in range(len(block.rows)):
            unknown = [] if self.layout.order_recorded else ["order_not_recorded"]
            names = ["replayed", *unknown, *(flag for flag, hit in hits if hit[number])]
            out.append("[" + ",".join(f'"{name}"' for name in sorted(names)) + "]")
        return out

    def _repetitions(self, block: Block) -> list[int]:
        field = self.fields.get("repetition")
        if field is None:
            return [0] * len(block.rows)
        out = []
        for row, number in zip(block.rows, self.reader.numbers(field, block, "repetition"), strict=True):
            first = self.layout.repetition_starts_at
            if number is None or number != int(number) or not first <= number <= _LARGEST_WHOLE:
                found = "nothing" if number is None else show(number)
                wanted = f"a whole number from {first}"
                if number is not None and number > _LARGEST_WHOLE:
                    wanted += f" to {_LARGEST_WHOLE:,}"
                self.problems.add(self.file.given, row, field.column or "repetition", found, wanted)
                number = float(first)
            out.append(int(number) - first)
        return out

    def _instruments(
        self, block: Block, judge: list[str], protocol: list[str], constraint: list[str | None]
    ) -> list[str]:
        """Name each replayed instrument by a hash of all that the log tells of it."""
        more = [self.reader.names(field, block, "instrument") for field in self.layout.instrument]
        cache: dict[tuple[Any, ...], str] = {}
        out = []
        for key in zip(judge, protocol, constraint, *more, strict=True):
            if key not in cache:
                known = {"judge": key[0], "protocol": key[1], "constraint": key[2], "more": list(key[3:])}
                cache[key] = sha256_of({"replayed": True, "layout": self.layout.layout, **known})
            out.append(cache[key])
        return out

    def _required(self, name: str, block: Block) -> list[str]:
        field = self.fields[name]
        values = self.reader.names(field, block, name)
        for row, value in zip(block.rows, values, strict=True):
            if value is None or not value.strip():
                self.problems.add(self.file.given, row, field.column or name, "nothing", f"a {name}")
        return [value or "" for value in values]

    def finish(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the log's verdicts and its pairs."""
        self.reader.note_missing_columns()
        if not self._frames:
            return pd.DataFrame(), pd.DataFrame()
        frame = self.problems.sound(pd.concat(self._frames, ignore_index=True), self.file.given)
        self._frames = []
        key = ["pair_id", "judge_id", "instrument_id", "order", "temperature"]
        if self.layout.number_repetitions:
            by_file_order = frame.sort_values("repetition", kind="stable")
            frame["repetition"] = (
                by_file_order.groupby(key, dropna=False, sort=False)
                .cumcount()
                .reindex(frame.index)
                .astype("Int64")
            )
        repeated = frame[frame.duplicated([*key, "repetition"], keep=False)]
        for _, group in repeated.groupby([*key, "repetition"], dropna=False, sort=False):
            rows = [int(row) for row in group["_row"]]
            first = group.iloc[0]
            self.problems.add(
                self.file.given, rows[1], None,
                f"judge {show(first['judge_id'])} on pair {show(first['pair_id'])}, order {first['order']}, "
                f"repetition {first['repetition']}, as in row {rows[0]}",
                "each once (map `repetition`, or declare `number_repetitions: true`)",
            )  # fmt: skip
        return frame, self._finish_pairs()


def _floats(values: list[float | None]) -> Any:
    return pd.array(values, dtype="Float64").astype("float64")
