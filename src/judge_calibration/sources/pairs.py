"""Pairs out of the rows of described files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pandas as pd

from judge_calibration.options.layout import Conversation, FieldFrom, Layout, VoteCodes
from judge_calibration.schemas import STAKES
from judge_calibration.sources.codes import NONE, UNKNOWN, CodeTable, code_key, lookup, nearly
from judge_calibration.sources.fields import (
    NoTextError,
    Reader,
    as_answer,
    as_question,
    has_entities,
    part_ways,
    read_messages,
    read_transcript,
    read_turns,
    unescape,
)
from judge_calibration.sources.files import OpenFile
from judge_calibration.sources.identity import chosen_is_a, content_hash, question_cluster
from judge_calibration.sources.problems import Problems, show
from judge_calibration.sources.records import Block
from judge_calibration.text import to_storable

NAMES = (
    "domain", "difficulty", "variant", "severity", "manipulation", "twin_pair_id", "language",
    "candidate_a", "candidate_b", "mutation_note", "mutation_diff", "source_packet_ids", "source_packet",
)  # fmt: skip
FIELDS = frozenset(
    (
        *NAMES, "source", "pair_id", "base_id", "stakes", "modified", "question", "response_a", "response_b",
        "chosen", "rejected", "candidate_chosen", "candidate_rejected", "tie", "label", "order",
        "quality_gap", "system", "earlier_turns", "licence", "reference_kind",
    )
)  # fmt: skip
_ALWAYS = ("candidate_a", "candidate_b", "manipulation", "variant")
Texts = tuple[list[Any], list[Any], list[Any]]


def check_fields(
    layout: Layout, known: frozenset[str], needed: tuple[tuple[str, ...], ...], at: str
) -> list[tuple[str, str, str]]:
    """Return what is wrong with the names of the described fields: (column, found, wanted)."""
    wanted = "one of " + ", ".join(sorted(known))
    found = [(name, "no such field", wanted) for name in layout.fields if name not in known]
    if not any(all(name in layout.fields for name in group) for group in needed):
        ways = " or ".join(" + ".join(group) for group in needed)
        found.append(("fields", f"{sorted(layout.fields)}", f"{ways} in the layout of {at}"))
    # Rows would vanish without a word where a file lacks such a column.
    for name in sorted({name for group in needed for name in group} - {"verdict"}):
        if name in layout.fields and layout.fields[name].optional:
            found.append((name, "optional: true", "a field that every file of the layout has"))
    return found


class PairBuilder:
    """Collects the pairs of one file; the rules are applied when all rows have been seen."""

    def __init__(self, layout: Layout, file: OpenFile, problems: Problems) -> None:
        self.layout = layout
        self.file = file
        self.problems = problems
        self.reader = Reader(file, problems)
        self.notes: Counter[str] = Counter()
        self.fields = layout.fields
        self._told = False
        self._blank_turns: list[bool] = []
        self._no_text: list[bool] = []
        self._codes = CodeTable(layout.codes) if layout.codes else None
        self._orders = lookup(layout.order_codes.AB, layout.order_codes.BA)
        self._frames: list[pd.DataFrame] = []
        self._provenance = f"{layout.layout}: {file.name} (sha256 {file.sha256[:12]}), row "
        needed: tuple[tuple[str, ...], ...] = (
            ("question", "response_a", "response_b"),
            ("question", "chosen", "rejected"),
        )
        if layout.conversation:
            needed = ((),)
        for column, found, wanted in check_fields(layout, FIELDS, needed, file.given):
            problems.add(f"layout '{layout.layout}'", None, column, found, wanted)
        if "label" in layout.fields and not layout.codes:
            problems.add(
                f"layout '{layout.layout}'", None, "codes", "nothing", "what the label's values mean"
            )

    # -- one block ------------------------------------------------------------------------------------

    def add(self, block: Block) -> None:
        """Read a block of rows."""
        self.fields = self.reader.present(self.layout.fields, block)
        fields = self.fields
        question, a, b = self._texts(block)
        size = len(block.rows)
        label = self._labels(block)
        gap = self.reader.numbers(fields.get("quality_gap"), block, "quality_gap")
        if self.layout.votes:
            label, gap = self._votes(block)
        wanted = [name for name in NAMES if name in fields or name in _ALWAYS]
        names = {name: self.reader.names(fields.get(name), block, name) for name in wanted}
        if self._has_chosen():
            a, b, label = self._place_chosen(question, a, b, self._ties(block), names, block)
        self._check_kind(label)
        if self.layout.sort_candidates:
            self._sort_candidates(a, b, label, names, block)
        hashes = [content_hash(q or "", x or "", y or "") for q, x, y in zip(question, a, b, strict=True)]
        source = self._required("source", block) if "source" in fields else [_stem(self.file.name)] * size
        if "pair_id" in fields:
            pair_id = self._required("pair_id", block)
            if self.layout.sort_candidates:
                sides = zip(pair_id, names["candidate_a"], names["candidate_b"], strict=True)
                pair_id = [f"{given}/{x}/{y}" for given, x, y in sides]
        else:
            pair_id = [f"{s}-{h[:16]}" for s, h in zip(source, hashes, strict=True)]
        base = (
            self._required("base_id", block)
            if "base_id" in fields
            else [question_cluster(q or "") for q in question]
        )
        language = names["language"] if "language" in fields else [self.layout.language] * size
        licence = (
            self.reader.names(fields["licence"], block, "licence")
            if "licence" in fields
            else [self.layout.licence] * size
        )
        frame = pd.DataFrame(
            {
                "pair_id": _text(pair_id),
                "base_id": _text(base),
                "source": _text(source),
                **{name: _text(values) for name, values in names.items()},
                "language": _text(language),
                "stakes": _text(self._choices("stakes", STAKES, block, "ordinary")),
                "modified": _text(self._choices("modified", ("A", "B"), block, None)),
                "question": _text(question),
                "response_a": _text(a),
                "response_b": _text(b),
                "reference_label": _text(label),
                "reference_kind": _text(self._kinds(block, label)),
                "quality_gap": pd.array(gap, dtype="Float64").astype("float64"),
                "license": _text(licence),
                "provenance": _text([self._provenance + str(row) for row in block.rows]),
                "content_hash": _text(hashes),
                "_row": block.rows,
            }
        )
        self._frames.append(self._apply_text_rules(frame, a, b))

    def _check_kind(self, labels: list[str | None]) -> None:
        declared = self.layout.reference_kind or "reference_kind" in self.fields or self._told
        if not declared and any(label is not None for label in labels):
            self._told = True
            self.problems.add(
                f"layout '{self.layout.layout}' for {self.file.given}",
                None,
                "reference_kind",
                "nothing",
                "human, ai, benchmark or constructed: who or what made the labels "
                "(`set: {reference_kind: human}`)",
            )

    def _has_chosen(self) -> bool:
        conversation = self.layout.conversation
        return "chosen" in self.fields or bool(conversation and conversation.a_is == "chosen")

    def _texts(self, block: Block) -> Texts:
        fields = self.fields
        self._blank_turns = [False] * len(block.rows)
        self._no_text = [False] * len(block.rows)
        if self.layout.conversation:
            question, a, b = self._conversations(self.layout.conversation, block)
        else:
            first, second = ("chosen", "rejected") if "chosen" in fields else ("response_a", "response_b")
            if not {"question", first, second} <= fields.keys():
                return ([None] * len(block.rows), [None] * len(block.rows), [None] * len(block.rows))
            question = self.reader.texts(fields["question"], block, "question")
            a = self._answers(fields[first], block, first)
            b = self._answers(fields[second], block, second)
        if "system" in fields:
            question = self._with_system(question, self.reader.names(fields["system"], block, "system"))
        if "earlier_turns" in fields:
            question, a, b = self._with_earlier_turns(question, a, b, block)
        if self.layout.rules.html_entities == "unescape":
            question, a, b = ([unescape(t) if t else t for t in texts] for texts in (question, a, b))
        else:
            rows = [
                {number for number, text in enumerate(texts) if text and "&" in text and has_entities(text)}
                for texts in (question, a, b)
            ]
            self.notes["html_entities"] += len(set().union(*rows))
        for row, text in zip(block.rows, question, strict=True):
            if text is not None and not text.strip():
                self.problems.add(self.file.given, row, "question", show(text), "a question")
        return question, a, b

    def _answers(self, field: FieldFrom, block: Block, column: str) -> list[str | None]:
        out: list[str | None] = []
        drop = self.layout.rules.response_no_text == "drop"
        for number, (row, value) in enumerate(zip(block.rows, self.reader.values(field, block), strict=True)):
            if type(value) is str:
                out.append(_storable(value))
                continue
            out.append(None)
            if drop and not isinstance(value, (list, dict)):
                self._no_text[number] = True
                continue
            name = field.column or column
            try:
                if not isinstance(value, (list, dict)):
                    raise ValueError(show(value))
                out[-1] = as_answer(read_messages(value))
            except ValueError as error:
                self.problems.add(self.file.given, row, name, str(error), "the answer as text")
        return out

    def _with_system(self, question: list[Any], system: list[str | None]) -> list[Any]:
        out = []
        for text, instruction in zip(question, system, strict=True):
            if text is None or not instruction:
                out.append(text)
                continue
            out.append(
                as_question([{"role": "system", "content": instruction}, {"role": "user", "content": text}])
            )
        return out

    def _with_earlier_turns(self, question: list[Any], a: list[Any], b: list[Any], block: Block) -> Texts:
        """Lay a dialogue out: the first question is shared, each answer is the dialogue from there on."""
        turns = self.reader.values(self.fields["earlier_turns"], block)
        out: Texts = ([], [], [])
        for number, (row, last, x, y, earlier) in enumerate(
            zip(block.rows, question, a, b, turns, strict=True)
        ):
            self._blank_turns[number] = not (x or "").strip() or not (y or "").strip()
            if not earlier or last is None or x is None or y is None:
                new = (last, x, y)
            elif not (
                isinstance(earlier, list)
                and all(
                    isinstance(t, list) and len(t) == 3 and all(isinstance(s, str) for s in t)
                    for t in earlier
                )
            ):
                self.problems.add(
                    self.file.given,
                    row,
                    "earlier_turns",
                    show(earlier),
                    "a list of [question, answer A, answer B]",
                )
                new = (last, x, y)
            else:
                asked = [*(turn[0] for turn in earlier), last]
                sides = []
                for answers in ([*(t[1] for t in earlier), x], [*(t[2] for t in earlier), y]):
                    dialogue = [
                        {"role": role, "content": _storable(text)}
                        for pair in zip(asked, answers, strict=True)
                        for role, text in zip(("user", "assistant"), pair, strict=True)
                    ]
                    sides.append(dialogue)
                shared, rest_a, rest_b = part_ways(*sides)
                new = (as_question(shared), as_answer(rest_a), as_answer(rest_b))
            for column, value in zip(out, new, strict=True):
                column.append(value)
        return out

    def _conversations(self, conversation: Conversation, block: Block) -> Texts:
        sides = (self.reader.values(conversation.a, block), self.reader.values(conversation.b, block))
        asked = (
            self.reader.values(conversation.asked, block) if conversation.asked else [None] * len(block.rows)
        )
        read = _conversation_reader(conversation)
        turns = self.reader.numbers(conversation.turns, block, "turns")
        drop = self.layout.rules.response_no_text == "drop"
        out: Texts = ([], [], [])
        for number, (row, questions, *pair) in enumerate(zip(block.rows, asked, *sides, strict=True)):
            new: tuple[Any, Any, Any] = (None, None, None)
            try:
                count = turns[number]
                end = None if count is None else 2 * int(count)
                shared, rest_a, rest_b = part_ways(*(read(value, questions)[:end] for value in pair))
                if not shared:
                    raise ValueError("two conversations that share no first turn")
                if {rest_a[-1]["role"], rest_b[-1]["role"]} != {"assistant"}:
                    raise ValueError("a conversation that does not end in an answer")
                self._blank_turns[number] = any(not rest[-1]["content"].strip() for rest in (rest_a, rest_b))
                new = (as_question(shared), as_answer(rest_a), as_answer(rest_b))
            except NoTextError as error:
                if drop:
                    self._no_text[number] = True
                else:
                    self._refuse_conversation(row, conversation, error)
            except ValueError as error:
                self._refuse_conversation(row, conversation, error)
            for column_values, value in zip(out, new, strict=True):
                column_values.append(value)
        return out

    def _refuse_conversation(self, row: int, conversation: Conversation, error: ValueError) -> None:
        columns = [field.column for field in (conversation.asked, conversation.a, conversation.b) if field]
        wanted = "two conversations that start alike and end in answers"
        if isinstance(error, NoTextError):
            wanted += " (or `rules: {response_no_text: drop}`)"
        self.problems.add(self.file.given, row, "/".join(str(name) for name in columns), str(error), wanted)

    def _labels(self, block: Block) -> list[str | None]:
        if "label" not in self.fields or self._codes is None:
            return [None] * len(block.rows)
        field = self.fields["label"]
        values = self.reader.values(field, block)
        orders = self._order(block) if self.layout.order_mode == "shown" else ["AB"] * len(block.rows)
        return read_labels_of(
            values, orders, self._codes, block.rows, self.file.given, field.column or "label", self.problems
        )

    def _order(self, block: Block) -> list[str | None]:
        if "order" not in self.fields:
            self.problems.add(
                f"layout '{self.layout.layout}'",
                None,
                "order",
                "no such field",
                "the order: labels name places",
            )
            return [None] * len(block.rows)
        return read_orders(self.reader, self.fields["order"], self._orders, block, self.problems)

    def _votes(self, block: Block) -> tuple[list[str | None], list[float | None]]:
        votes = self.layout.votes
        assert votes is not None
        columns = self._vote_counts(votes, block)
        labels: list[str | None] = []
        gaps: list[float | None] = []
        for a, b, tie in zip(*columns, strict=True):
            counts = {"A": a or 0.0, "B": b or 0.0, "TIE": tie or 0.0}
            total, most = sum(counts.values()), max(counts.values())
            first = [label for label, count in counts.items() if count == most]
            labels.append(None if total == 0 else first[0] if len(first) == 1 else "TIE")
            gaps.append(None if total == 0 else abs(counts["A"] - counts["B"]) / total)
        return labels, gaps

    def _vote_counts(self, votes: VoteCodes, block: Block) -> list[list[float | None]]:
        size = len(block.rows)
        if not votes.labels:
            fields = (("A", votes.a), ("B", votes.b), ("TIE", votes.tie))
            return [self.reader.numbers(f, block, n) if f else [0.0] * size for n, f in fields]
        assert self._codes is not None
        each = [
            read_labels_of(
                self.reader.values(field, block), ["AB"] * size, self._codes, block.rows, self.file.given,
                field.column or "label", self.problems,
            )
            for field in votes.labels
        ]  # fmt: skip
        return [
            [float(sum(label == wanted for label in row)) for row in zip(*each, strict=True)]
            for wanted in ("A", "B", "TIE")
        ]

    def _ties(self, block: Block) -> list[bool]:
        field = self.fields.get("tie")
        values = self.reader.values(field, block) if field else [False] * len(block.rows)
        for row, value in zip(block.rows, values, strict=True):
            if not isinstance(value, bool):
                self.problems.add(self.file.given, row, "tie", show(value), "true or false")
        return [value is True for value in values]

    def _place_chosen(
        self, question: list[Any], chosen: list[Any], rejected: list[Any], ties: list[bool],
        names: dict[str, list[str | None]], block: Block,
    ) -> tuple[list[Any], list[Any], list[str | None]]:  # fmt: skip
        fields = self.fields
        by_chosen = self.reader.names(fields.get("candidate_chosen"), block, "candidate_chosen")
        by_rejected = self.reader.names(fields.get("candidate_rejected"), block, "candidate_rejected")
        a: list[Any] = []
        b: list[Any] = []
        labels: list[str | None] = []
        rows = zip(question, chosen, rejected, ties, by_chosen, by_rejected, strict=True)
        for number, (q, good, bad, tie, who_good, who_bad) in enumerate(rows):
            at_a = chosen_is_a(q or "", good or "", bad or "")
            a.append(good if at_a else bad)
            b.append(bad if at_a else good)
            labels.append("TIE" if tie else "A" if at_a else "B")
            if who_good or who_bad:
                names["candidate_a"][number] = who_good if at_a else who_bad
                names["candidate_b"][number] = who_bad if at_a else who_good
        return a, b, labels

    def _sort_candidates(
        self,
        a: list[Any],
        b: list[Any],
        labels: list[str | None],
        names: dict[str, list[str | None]],
        block: Block,
    ) -> None:
        """Exchange the sides of the rows in which candidate B's name sorts first."""
        first, second = names["candidate_a"], names["candidate_b"]
        for i, row in enumerate(block.rows):
            if first[i] is None or second[i] is None or first[i] == second[i]:
                found = f"{show(first[i])} and {show(second[i])}"
                self.problems.add(
                    self.file.given, row, "candidate_a/candidate_b", found, "two candidates' names"
                )
            elif str(first[i]) > str(second[i]):
                a[i], b[i] = b[i], a[i]
                first[i], second[i] = second[i], first[i]
                labels[i] = {"A": "B", "B": "A"}.get(labels[i] or "", labels[i])

    def _required(self, name: str, block: Block) -> list[str]:
        field = self.fields[name]
        values = self.reader.names(field, block, name)
        for row, value in zip(block.rows, values, strict=True):
            if value is None or not value.strip():
                self.problems.add(
                    self.file.given,
                    row,
                    field.column or name,
                    "nothing" if value is None else show(value),
                    f"a {name}",
                )
        return [value or "" for value in values]

    def _choices(
        self, name: str, allowed: tuple[str, ...], block: Block, default: str | None
    ) -> list[str | None]:
        field = self.fields.get(name)
        if field is None:
            return [default] * len(block.rows)
        values = self.reader.names(field, block, name)
        for row, value in zip(block.rows, values, strict=True):
            if value is not None and value not in allowed:
                self.problems.add(
                    self.file.given, row, field.column or name, show(value), "one of " + ", ".join(allowed)
                )
        return [default if value is None else value for value in values]

    def _kinds(self, block: Block, labels: list[str | None]) -> list[str | None]:
        kinds = self._choices(
            "reference_kind", ("human", "ai", "benchmark", "constructed"), block, self.layout.reference_kind
        )
        return [None if label is None else kind for label, kind in zip(labels, kinds, strict=True)]

    # -- rules ----------------------------------------------------------------------------------------

    def _apply_text_rules(self, frame: pd.DataFrame, a: list[Any], b: list[Any]) -> pd.DataFrame:
        rules = self.layout.rules
        flags: list[list[str]] = [[] for _ in range(len(frame))]
        keep = [True] * len(frame)
        labels = frame["reference_label"].tolist()
        kinds = frame["manipulation"].tolist()
        variants = frame["variant"].tolist()
        touched = False
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            if self._no_text[i]:
                self.notes["response_no_text"] += 1
                keep[i] = False
                continue
            if not isinstance(x, str) or not isinstance(y, str):
                continue  # already a problem
            if not x.strip() or not y.strip() or self._blank_turns[i]:
                touched = True
                self.notes["empty_response"] += 1
                flags[i].append("empty_response")
                if rules.empty_response == "refuse":
                    side = "response_a" if not x.strip() else "response_b"
                    self.problems.add(
                        self.file.given,
                        int(frame["_row"].iloc[i]),
                        self._side_name(side),
                        show((x if side == "response_a" else y).strip()[-60:]),
                        "an answer (or `rules: {empty_response: keep}` if the candidate really said nothing)",
                    )
                keep[i] = rules.empty_response != "drop"
            if x == y:
                touched = True
                self.notes["identical_responses"] += 1
                flags[i].append("identical_responses")
                decisive = labels[i] in ("A", "B")
                if decisive:
                    self.notes["identical_responses_with_a_winner"] += 1
                    flags[i].append("identical_responses_with_a_winner")
                if rules.identical_responses == "refuse":
                    self.problems.add(
                        self.file.given,
                        int(frame["_row"].iloc[i]),
                        None,
                        "the same answer twice",
                        "two answers",
                    )
                if decisive and rules.identical_responses == "unlabel":
                    labels[i] = None
                keep[i] = keep[i] and rules.identical_responses != "drop"
                if not isinstance(kinds[i], str):
                    kinds[i], variants[i] = "identity", "as_imported"
        if touched:
            frame["reference_label"] = _text([v if isinstance(v, str) else None for v in labels])
            frame["reference_kind"] = frame["reference_kind"].where(frame["reference_label"].notna())
            frame["manipulation"] = _text([v if isinstance(v, str) else None for v in kinds])
            frame["variant"] = _text([v if isinstance(v, str) else None for v in variants])
        frame["import_flags"] = _text([_json_list(found) for found in flags])
        if rules.missing_label == "drop":
            unlabelled = frame["reference_label"].isna()
            self.notes["dropped_without_label"] += int(unlabelled.sum())
            keep = [k and not u for k, u in zip(keep, unlabelled, strict=True)]
        dropped = keep.count(False)
        if dropped:
            self.notes["dropped"] += dropped
            frame = frame[pd.Series(keep, index=frame.index)]
        return frame

    def _side_name(self, side: str) -> str:
        if self._has_chosen():
            sides = [
                self.fields[name].column or name for name in ("chosen", "rejected") if name in self.fields
            ]
            return " or ".join(sides) or "the last turn"
        field = self.fields.get(side)
        return field.column if field is not None and field.column else side

    def finish(self) -> pd.DataFrame:
        """Return all pairs of the file, repeated rows treated as the rules say."""
        self.reader.note_missing_columns()
        if not self._frames:
            return pd.DataFrame()
        frame = self.problems.sound(pd.concat(self._frames, ignore_index=True), self.file.given)
        self._frames = []
        return self._resolve_repeated(frame)

    def _resolve_repeated(self, frame: pd.DataFrame) -> pd.DataFrame:
        repeated = frame["pair_id"].duplicated(keep=False)
        if not repeated.any():
            return frame
        rule = self.layout.rules.repeated_rows
        column = self.fields["pair_id"].column if "pair_id" in self.fields else None
        drop: list[Any] = []
        for pair_id, group in frame[repeated].groupby("pair_id", sort=False):
            rows = [int(row) for row in group["_row"]]
            what = show(pair_id) if column else "the same question and answers"
            if len(set(group["content_hash"])) > 1:
                self.problems.add(
                    self.file.given, rows[1], column or "pair_id",
                    f"{what} with other texts than in row {rows[0]}", "one pair an id",
                )  # fmt: skip
                continue
            labels = [label if isinstance(label, str) else None for label in group["reference_label"]]
            agree = len(set(labels)) == 1
            if rule == "refuse" or (rule == "merge" and not agree):
                told = "the same label" if agree else f"labels {labels[:6]}"
                self.problems.add(
                    self.file.given, rows[1], column or "pair_id", f"{what} as in row {rows[0]}, with {told}",
                    "each pair once (or a rule: `repeated_rows: merge`, `merge_unlabel` or `majority`)",
                )  # fmt: skip
                continue
            self.notes["repeated_rows"] += len(rows) - 1
            drop.extend(group.index[1:])
            if not agree:
                self.notes["repeated_rows_in_conflict"] += 1
                counts = Counter(label for label in labels if label is not None).most_common()
                clear = len(counts) == 1 or counts[0][1] > counts[1][1]
                label = (counts[0][0] if clear else "TIE") if rule == "majority" else None
                frame.loc[group.index[0], "reference_label"] = label
                if label is None:
                    frame.loc[group.index[0], "reference_kind"] = None
        return frame.drop(index=drop).reset_index(drop=True)


CODES = "say what other values mean: `set: {codes: {A: [...], B: [...], TIE: [...]}}`"
ORDERS = (
    "say what other values mean: `set: {order_codes: {AB: [...], BA: [...]}}` (AB shows candidate A first)"
)


def read_labels_of(
    values: list[Any], orders: list[Any], codes: CodeTable, rows: list[int], file: str, column: str,
    problems: Problems,
) -> list[str | None]:  # fmt: skip
    """Return labels by candidate identity; a value outside the codes is a problem, "no label" is null."""
    cache: dict[Any, str] = {}
    out: list[str | None] = []
    for value, order, row in zip(values, orders, rows, strict=True):
        key = (type(value), value) if value is None or isinstance(value, (str, int, float, bool)) else None
        meaning = cache.get(key, UNKNOWN) if key is not None else UNKNOWN
        if meaning == UNKNOWN:
            meaning = codes.meaning(value)
            if meaning == UNKNOWN:
                problems.add(file, row, column, codes.told(value), codes.wanted)
                problems.advise(CODES)
                out.append(None)
                continue
            cache[key] = meaning
        if meaning == NONE:
            out.append(None)
        elif meaning in ("first", "second"):
            out.append(None if order is None else "A" if (meaning == "first") == (order == "AB") else "B")
        else:
            out.append(meaning)
    return out


def read_orders(
    reader: Reader, field: FieldFrom, table: dict[str | None, bool], block: Block, problems: Problems
) -> list[str | None]:
    """Return AB or BA for each row; another value is a problem."""
    out: list[str | None] = []
    for row, value in zip(block.rows, reader.values(field, block), strict=True):
        key = code_key(value)
        if key not in table:
            problems.add(
                reader.file.given, row, field.column or "order", show(value) + nearly(value, list(table)),
                "an order: one of " + ", ".join(str(code) for code in table),
            )  # fmt: skip
            problems.advise(ORDERS)
        out.append("AB" if table.get(key, True) else "BA")
    return out


def _conversation_reader(conversation: Conversation) -> Callable[[Any, Any], list[dict[str, str]]]:
    """Return what reads one side's conversation, given the questions where they stand apart."""
    if conversation.form == "messages":
        return lambda value, _: read_messages(value)
    if conversation.form == "turns":
        return lambda value, questions: read_turns(questions, value)

    def read(value: Any, _: Any) -> list[dict[str, str]]:
        if not isinstance(value, str):
            raise ValueError(show(value))
        return read_transcript(value, conversation.user_marker, conversation.assistant_marker)

    return read


def _storable(text: str) -> str:
    return text if text.isascii() else to_storable(text)


def _stem(name: str) -> str:
    return name.split(".")[0] or name


def _text(values: list[Any]) -> pd.api.extensions.ExtensionArray:
    return pd.array(values, dtype="str")


def _json_list(values: list[str]) -> str | None:
    return "[" + ",".join(f'"{value}"' for value in values) + "]" if values else None
