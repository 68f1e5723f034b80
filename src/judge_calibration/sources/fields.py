"""The values of a described field, for a block of rows at a time."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from judge_calibration.options.layout import FieldFrom
from judge_calibration.sources.files import OpenFile
from judge_calibration.sources.problems import Problems, show
from judge_calibration.sources.records import ABSENT, Block, unknown_column
from judge_calibration.text import canonical_json, from_storable, to_storable

CHAT_ROLES = {
    "human": "user",
    "user": "user",
    "prompter": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "assistant": "assistant",
    "system": "system",
    "tool": "tool",
}


class Reader:
    """Reads described fields out of the blocks of one file and notes what is wrong."""

    def __init__(self, file: OpenFile, problems: Problems) -> None:
        self.file = file
        self.problems = problems
        self._seen: dict[str, bool] = {}
        self._names: dict[str, None] = {}
        self._absent: set[str] = set()
        self._fields: dict[str, FieldFrom] = {}
        self._any_of: dict[frozenset[str], None] = {}
        self._met: set[str] = set()

    def present(self, fields: Mapping[str, FieldFrom], block: Block) -> dict[str, FieldFrom]:
        """Return the described fields without the optional ones whose column this block lacks."""
        self._names.update(dict.fromkeys(_names_of(block)))
        self._fields |= fields
        found = {}
        for name, field in fields.items():
            if field.optional and field.column is not None and self._find(field.column, block) is None:
                self._absent.add(field.column)
            else:
                found[name] = field
        return found

    def unread_columns(self) -> list[str]:
        """Return the file's columns that no described field reads, sorted."""
        used = {name for column in self._seen for name in (column, column.split(".")[0])}
        return sorted(name for name in self._names if name not in used and not name.startswith("_"))

    # -- values ---------------------------------------------------------------------------------------

    def values(self, field: FieldFrom, block: Block) -> list[Any]:
        """Return the field's value for each row; null where the file has none."""
        values = self._origin(field, block)
        if field.json_text:
            values = self._from_json(values, field, block)
        if field.path:
            inside = [_walk(value, field.path.split(".")) for value in values]
            values = self._single(inside, block, f"{field.column}.{field.path}")
            values = [None if value is ABSENT else value for value in values]
        if field.match:
            pattern = re.compile(field.match, re.DOTALL)
            values = [_group(pattern, value) for value in values]
        if field.replace:
            table = field.replace
            values = [table.get(str(value), value) if value is not None else None for value in values]
        return values

    def _origin(self, field: FieldFrom, block: Block) -> list[Any]:
        size = len(block.rows)
        if field.column is not None:
            return self._column(field.column, block, field.optional)
        if field.file is not None:
            found = re.search(field.file, self.file.given.replace("\\", "/"))
            if not found and not field.optional:
                self.problems.add(
                    self.file.given,
                    None,
                    None,
                    "a path that does not fit",
                    f"a path that matches {field.file}",
                )
                self.problems.advise(self._instead_of_path(field))
            return [(found.group(1) if found.groups() else found.group()) if found else None] * size
        if field.join:
            parts = [self.values(part, block) for part in field.join]
            rows = zip(*parts, strict=True)
            if field.skip_empty:
                rows = (tuple(value for value in row if value not in (None, "")) for row in rows)  # type: ignore[assignment]
            return [_join(row, field.separator) for row in rows]
        if field.any_of:
            # No single one of them is needed.
            loose = [part.model_copy(update={"optional": True}) for part in field.any_of]
            names = frozenset(part.column for part in loose if part.column is not None)
            if len(names) == len(loose):
                self._any_of[names] = None
            parts = [self.values(part, block) for part in loose]
            return [next((v for v in row if v is not None), None) for row in zip(*parts, strict=True)]
        return [field.const] * size

    def _instead_of_path(self, field: FieldFrom) -> str:
        name = next((name for name, origin in self._fields.items() if _holds(origin, field)), "FIELD")
        return f"say what the path does not tell: `set: {{fields: {{{name}: {{const: VALUE}}}}}}`"

    def _find(self, name: str, block: Block) -> list[Any] | None:
        values = block.column(name)
        if values is None and "." in name:
            first, *rest = name.split(".")
            outer = block.column(first)
            if outer is not None:
                values = self._single([_walk(value, rest) for value in outer], block, name)
                if all(value is ABSENT for value in values):
                    values = None
        return values

    def _single(self, values: list[Any], block: Block, name: str) -> list[Any]:
        """Note where `*` stands for several entries: which one is meant is nobody's guess."""
        for row, value in zip(block.rows, values, strict=True):
            if isinstance(value, _Several):
                wanted = f"one (name it in place of * in {name})"
                self.problems.add(self.file.given, row, name, f"several entries: {value.names}", wanted)
        return [ABSENT if isinstance(value, _Several) else value for value in values]

    def _column(self, name: str, block: Block, optional: bool) -> list[Any]:
        values = self._find(name, block)
        if values is not None:
            self._met.add(name)
        self._seen[name] = self._seen.get(name, False) or values is not None or optional
        if values is None:
            return [None] * len(block.rows)
        return [None if value is ABSENT else value for value in values]

    def _from_json(self, values: list[Any], field: FieldFrom, block: Block) -> list[Any]:
        read: list[Any] = []
        for row, value in zip(block.rows, values, strict=True):
            if value is None or not isinstance(value, str):
                read.append(value)
                continue
            try:
                read.append(json.loads(value))
            except (json.JSONDecodeError, RecursionError):
                self.problems.add(self.file.given, row, field.column, show(value), "JSON as text")
                read.append(None)
        return read

    def note_missing_columns(self) -> None:
        """Note each described column that no row of the file has (called when the file has been read)."""
        lacking = [name for name, seen in self._seen.items() if not seen]
        lacking += [min(names) for names in self._any_of if not names & self._met]
        # Where a whole mapping is absent, it is named, and not everything that should stand in it.
        unnamed: dict[str, None] = {}
        for name in self._outermost(lacking):
            readers = [
                field
                for field, origin in self._fields.items()
                if any(column == name or column.startswith(f"{name}.") for column in columns_of(origin))
            ]
            # What was found of a value that is made of the column was told of each row; its cause is this.
            consequences = [*readers, *(self._fields[field].column or field for field in readers)]
            self.problems.add_absent_column(
                self.file.given, name, unknown_column(name, list(self._names)), consequences
            )
            for field in readers:
                if self._fields[field].column == name:
                    unnamed[f"{field}: NAME"] = None
                if field == "order":
                    self.problems.advise(
                        "if the file does not tell which answer was shown first: "
                        "`set: {fields: {order: {const: AB}}, order_recorded: false}`"
                    )
        if unnamed:
            self.problems.advise(f"name the columns as they are: `set: {{fields: {{{', '.join(unnamed)}}}}}`")
        # An optional column under a misspelt name would be left out without a word.
        absent = [name for name in self._absent if name not in self._names]
        for name in self.unread_columns():
            close = get_close_matches(name, absent, n=1, cutoff=0.8)
            if close:
                self.problems.add(
                    self.file.given,
                    None,
                    name,
                    "a column that nothing reads",
                    f"'{close[0]}' if that is meant, else a name less like it",
                )

    def _outermost(self, names: list[str]) -> list[str]:
        found: dict[str, None] = {}
        for name in names:
            head = name.split(".")[0]
            whole = "." in name and head not in self._names and name not in self._names
            found[head if whole else name] = None
        return list(found)

    # -- texts ----------------------------------------------------------------------------------------

    def texts(self, field: FieldFrom, block: Block, column: str) -> list[str | None]:
        """Return texts that are shown to judges: text as it is, chat messages as JSON; else a problem."""
        out: list[str | None] = []
        add = self.problems.add
        values = self.values(field, block)
        for part in field.join:
            for number, value in enumerate(self.values(part, block)):
                if value is not None and not isinstance(value, str):
                    add(self.file.given, block.rows[number], _name(part, column), show(value), "text")
                    values[number] = ""
        for row, value in zip(block.rows, values, strict=True):
            if type(value) is str:
                out.append(value if value.isascii() else to_storable(value))
            elif isinstance(value, (list, dict)):
                try:
                    out.append(as_question(read_messages(value)))
                except ValueError as error:
                    add(self.file.given, row, _name(field, column), str(error), "text, or chat messages")
                    out.append(None)
            else:
                out.append(None)
                add(self.file.given, row, _name(field, column), show(value), "text")
        return out

    def names(self, field: FieldFrom | None, block: Block, column: str) -> list[str | None]:
        """Return short values such as ids and categories as text; whole numbers become text, null stays."""
        if field is None:
            return [None] * len(block.rows)
        out: list[str | None] = []
        for row, value in zip(block.rows, self.values(field, block), strict=True):
            if type(value) is str:
                out.append((value if value.isascii() else to_storable(value)) or None)
            elif value is None or value != value:
                out.append(None)
            elif isinstance(value, int) and not isinstance(value, bool):
                out.append(str(value))
            elif isinstance(value, float) and value.is_integer():
                out.append(str(int(value)))  # a column of whole numbers with a gap is one of floats
            else:
                out.append(None)
                self.problems.add(
                    self.file.given, row, _name(field, column), show(value), "text or a whole number"
                )
        return out

    def numbers(self, field: FieldFrom | None, block: Block, column: str) -> list[float | None]:
        """Return numbers; text that is a number is one, an empty text is null."""
        if field is None:
            return [None] * len(block.rows)
        out: list[float | None] = []
        for row, value in zip(block.rows, self.values(field, block), strict=True):
            number = as_number(value)
            if number is None and value is not None and value == value and value != "":
                self.problems.add(self.file.given, row, _name(field, column), show(value), "a number")
            out.append(number)
        return out


def columns_of(field: FieldFrom) -> set[str]:
    """Return the columns that a value is made of."""
    inner = [columns_of(part) for part in (*field.join, *field.any_of)]
    return set().union(*inner) | ({field.column} if field.column is not None else set())


def _holds(field: FieldFrom, part: FieldFrom) -> bool:
    return field is part or any(_holds(inner, part) for inner in (*field.join, *field.any_of))


def _name(field: FieldFrom, column: str) -> str:
    return field.column if field.column else column


def _names_of(block: Block) -> list[str]:
    columns = getattr(block, "columns", None)
    if columns is not None:
        return list(columns)
    names: dict[str, None] = {}
    for record in block.records[:100]:  # type: ignore[attr-defined]
        names.update(dict.fromkeys(record))
    return list(names)


def _join(values: tuple[Any, ...], separator: str) -> str | None:
    """Join values as text; a boolean or a fraction is told apart from its text, null makes the whole null."""
    if not values or any(value is None for value in values):
        return None
    whole = (int(v) if isinstance(v, float) and v.is_integer() else v for v in values)
    return separator.join(value if isinstance(value, str) else json.dumps(value) for value in whole)


class _Several:
    """Where one entry was wanted whatever its name, and there are several."""

    def __init__(self, names: list[str]) -> None:
        self.names = ", ".join(names)


def _walk(value: Any, path: list[str]) -> Any:
    for part in path:
        if part == "*" and isinstance(value, Mapping) and len(value) > 1:
            return _Several(list(value))
        if isinstance(value, Mapping):
            # `*` is the only entry there is, whatever its name.
            value = next(iter(value.values())) if part == "*" and len(value) == 1 else value.get(part, ABSENT)
        elif isinstance(value, (list, tuple)) and part == "*" and len(value) == 1:
            value = value[0]
        elif isinstance(value, (list, tuple)) and part.lstrip("-").isdigit():
            index = int(part)
            value = value[index] if -len(value) <= index < len(value) else ABSENT
        else:
            return ABSENT
    return value


def _group(pattern: re.Pattern[str], value: Any) -> str | None:
    if value is None:
        return None
    found = pattern.search(value if isinstance(value, str) else json.dumps(value))
    if not found:
        return None
    return found.group(1) if found.groups() else found.group()


def as_number(value: Any) -> float | None:
    """Return a number, or the number that a text is; else null. NaN and infinity are no numbers here.

    Examples
    --------
    >>> as_number("1.5"), as_number(2), as_number(True), as_number("x"), as_number(float("nan"))
    (1.5, 2.0, None, None, None)
    """
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if number - number == 0 else None


# -- chat ---------------------------------------------------------------------------------------------


class NoTextError(ValueError):
    """A turn of a conversation is null, a boolean or a number in place of a text."""


def read_messages(value: Any) -> list[dict[str, str]]:
    """Return chat messages as a list of {role, content}, from the ways in which public files write them.

    Read are a list of mappings with role and content (or from and value), a list that nests such lists
    once, a single message, and content given as parts of type text.

    Raises
    ------
    ValueError
        Where a message cannot be read without guessing: an unknown role, no text, a picture.

    Examples
    --------
    >>> read_messages([{"from": "human", "value": "Hi"}])
    [{'role': 'user', 'content': 'Hi'}]
    """
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError(f"{show(value)} as chat")
    if len(value) == 1 and isinstance(value[0], (list, tuple)):
        value = value[0]
    messages = []
    for number, message in enumerate(value, start=1):
        if not isinstance(message, Mapping):
            raise ValueError(f"chat message {number}: {show(message)}")
        role = message.get("role", message.get("from"))
        content = message.get("content", message.get("value"))
        if not isinstance(role, str) or role.lower() not in CHAT_ROLES:
            raise ValueError(f"chat message {number} with role {show(role)}")
        if isinstance(content, (list, tuple)) and content:
            parts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
            if any(not isinstance(part, str) for part in parts):
                raise NoTextError(f"chat message {number} with a part that is not text")
            content = "".join(str(part) for part in parts)
        if not isinstance(content, str):
            raise NoTextError(f"chat message {number} with content {show(content)}")
        messages.append({"role": CHAT_ROLES[role.lower()], "content": to_storable(content)})
    return messages


def read_turns(questions: Any, answers: Any) -> list[dict[str, str]]:
    """Return the conversation of a list of questions and a list of answers, side by side.

    Raises
    ------
    ValueError
        If they are no lists of one length.
    NoTextError
        If a turn is no text.

    Examples
    --------
    >>> [turn["role"] for turn in read_turns(["Hi", "And?"], ["Ho", "So."])]
    ['user', 'assistant', 'user', 'assistant']
    """
    for value in (questions, answers):
        if not isinstance(value, (list, tuple)) or not value:
            raise ValueError(f"{show(value)} as a list of turns")
    if len(questions) != len(answers):
        raise ValueError(f"{len(questions)} questions and {len(answers)} answers")
    messages = []
    for number, turn in enumerate(zip(questions, answers, strict=True), start=1):
        for role, text in zip(("user", "assistant"), turn, strict=True):
            if not isinstance(text, str):
                what = "question" if role == "user" else "answer"
                raise NoTextError(f"{what} {number} is {show(text)}")
            messages.append({"role": role, "content": to_storable(text)})
    return messages


def as_question(messages: list[dict[str, str]]) -> str:
    """Return messages as the column `question` holds them: a single user message as its text, else JSON.

    Examples
    --------
    >>> as_question([{"role": "user", "content": "Hi"}])
    'Hi'
    """
    if len(messages) == 1 and messages[0]["role"] == "user":
        return messages[0]["content"]
    return canonical_json(messages)


_TITLES = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}


def as_answer(messages: list[dict[str, str]]) -> str:
    """Return the turns by which a conversation differs from its rival as one text.

    One assistant message is its text; several turns are a transcript with the role before each turn.

    Examples
    --------
    >>> print(as_answer([{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Why?"}]))
    Assistant: Yes.
    <BLANKLINE>
    User: Why?
    """
    if len(messages) == 1 and messages[0]["role"] == "assistant":
        return messages[0]["content"]
    return "\n\n".join(f"{_TITLES[message['role']]}: {message['content']}" for message in messages)


def part_ways(
    first: list[dict[str, str]], second: list[dict[str, str]]
) -> tuple[list[dict[str, str]], list[dict[str, str]], list[dict[str, str]]]:
    """Split two conversations into what they share at the start and the rest of each.

    The shared part ends before an assistant turn at the latest, so that each rest starts with an answer,
    also where both conversations are the same.
    """
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    if shared == len(first) or shared == len(second):  # one runs out: its last answer belongs to the rest
        shared = max(0, min(len(first), len(second)) - 1)
    while shared > 0 and (first[shared]["role"] != "assistant" or second[shared]["role"] != "assistant"):
        shared -= 1
    return first[:shared], first[shared:], second[shared:]


def read_transcript(text: str, user_marker: str, assistant_marker: str) -> list[dict[str, str]]:
    r"""Return the turns of a transcript in one text.

    Raises
    ------
    ValueError
        If it does not start with a turn's marker, or lacks one of the two roles.

    Examples
    --------
    >>> turns = read_transcript("\n\nHuman: a\n\nAssistant: b", "\n\nHuman: ", "\n\nAssistant: ")
    >>> [turn["role"] for turn in turns]
    ['user', 'assistant']
    """
    # The marker's trailing space is not always there: an empty turn ends at the colon.
    user, assistant = user_marker.rstrip(" "), assistant_marker.rstrip(" ")
    parts = re.split(f"({re.escape(user)}|{re.escape(assistant)})", text)
    if parts[0].strip():
        raise ValueError(f"a transcript that starts with {show(parts[0])}")
    messages = [
        {"role": "user" if mark == user else "assistant", "content": to_storable(content.removeprefix(" "))}
        for mark, content in zip(parts[1::2], parts[2::2], strict=True)
    ]
    if {message["role"] for message in messages} != {"user", "assistant"}:
        raise ValueError("a transcript without both a user's and an assistant's turn")
    return messages


_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|nbsp|apos|#39|#x27|#34|#x2F);", re.IGNORECASE)


def has_entities(text: str) -> bool:
    """Say whether a text holds HTML entities that a web page left in it."""
    return "&" in text and _ENTITY.search(text) is not None


def unescape(text: str) -> str:
    """Return the text with HTML entities as the characters that they stand for."""
    return to_storable(html.unescape(from_storable(text))) if "&" in text else text
