"""The files of a pair bank: one YAML file a task, read into typed records.

A task file holds the question, one canonical answer, the source passages and, for every dimension, the
few facts from which that variant is made. Everything else (the variants' text, which side is changed, ids,
notes, diffs) is derived; see :mod:`judge_calibration.bank.build`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, StringConstraints, ValidationError

from judge_calibration.errors import Problem, ProblemsError
from judge_calibration.options.base import Options
from judge_calibration.schemas import STAKES

Domain = Literal["evidence_seeking", "reasoning", "procedural"]
Difficulty = Literal["easy", "medium", "hard"]
Severity = Literal["small", "large"]
CARD = "bank.yml"
DOMAINS: tuple[Domain, ...] = ("evidence_seeking", "reasoning", "procedural")
DIFFICULTIES: tuple[Difficulty, ...] = ("easy", "medium", "hard")
INJECTION_KINDS = (
    "ask_for_win", "close_data_block", "forged_label", "forged_json", "forged_xml", "forged_scores",
    "system_message", "hidden_comment", "zero_width", "invisible_tags", "other_language", "authority",
)  # fmt: skip

Text = Annotated[str, StringConstraints(min_length=1)]
TaskId = Annotated[str, StringConstraints(pattern=r"^[a-z]\d{3,5}$")]


class BankError(ProblemsError):
    """Files of a pair bank cannot be read, or the bank breaks its design. Every fault is printed."""

    shown = 10_000


class Passage(Options):
    """One short passage of the task's source packet."""

    id: Annotated[str, StringConstraints(pattern=r"^P\d+$")]
    role: Literal["supports", "on_topic", "irrelevant"]
    """What it does for the answer's claims: entail one, be about the topic only, or neither."""
    text: Text


class Edit(Options):
    """A span of the answer, which occurs exactly once, and what it becomes."""

    old: Text
    new: str


class Addition(Options):
    """A restatement, and where it goes: after a span, or after a whole paragraph (counted from 1)."""

    after: Text | int
    text: Text
    new_paragraph: bool = False


class Length(Options):
    """How the length variant is made: either restatements that are added, or spans that are cut."""

    add: tuple[Addition, ...] = ()
    cut: tuple[Text, ...] = ()


class Style(Options):
    """How the style variant is made: rules on paragraphs (counted from 1) and a table of paraphrases."""

    strip: bool = False
    """Remove the mark-up that the canonical answer has."""
    headings: dict[int, Text] = Field(default_factory=dict)
    bullets: tuple[int, ...] = ()
    """Paragraphs whose sentences become list items."""
    numbered: tuple[int, ...] = ()
    quote: tuple[int, ...] = ()
    split: tuple[int, ...] = ()
    """Paragraphs whose sentences become paragraphs."""
    join: bool = False
    """Make one paragraph of all."""
    bold: tuple[Text, ...] = ()
    emoji: dict[int, Text] = Field(default_factory=dict)
    """A pictograph at the start of a paragraph."""
    opener: str = ""
    closer: str = ""
    """Sentences of tone before and after the answer. They state nothing."""
    paraphrases: tuple[Edit, ...] = ()


class Citation(Options):
    """How the support is taken away: every marker of a passage becomes another's, or goes (null)."""

    kind: Literal["irrelevant", "not_entailing", "absent"]
    replace: dict[str, str | None]
    why: Text


class Correctness(Options):
    """The one consequential error, and what settles that it is one."""

    severity: Severity
    consequence: Literal["consistent", "inconsistent"]
    """Whether what depends on the error was made to agree with it, or was left in contradiction."""
    edits: Annotated[tuple[Edit, ...], Field(min_length=1)]
    true_statement: Text
    false_statement: Text
    settled_by: Text
    """The id of the passage, or the reason; for reasoning tasks the word ``check``."""


class Numbers(Options):
    """A second set of numbers for the check, and the answer it has to give for them."""

    numbers: dict[str, Any]
    answer: Any


class Check(Options):
    """The program that proves a reasoning task; see :mod:`judge_calibration.bank.solving`."""

    numbers: dict[str, Any]
    implied: dict[str, Text] = Field(default_factory=dict)
    """Numbers that the question does not print, each with the reason that they hold."""
    answer: Text
    """The result as the canonical answer prints it."""
    wrong: Text
    """The result as the mutated answer prints it."""
    answer_value: Any = None
    wrong_value: Any = None
    """The same two as values, where the printed form cannot be read as a number."""
    second: Numbers
    code: Text


class Polished(Options):
    """The polished-but-wrong answer: the mutated one with the task's own better style or greater length."""

    by: Literal["style", "length"]
    edits: tuple[Edit, ...] = ()
    """What has to change besides, so that what was added agrees with the error."""


class Injection(Options):
    """Text that addresses the judge, put into the mutated answer."""

    kind: Literal[
        "ask_for_win", "close_data_block", "forged_label", "forged_json", "forged_xml", "forged_scores",
        "system_message", "hidden_comment", "zero_width", "invisible_tags", "other_language", "authority",
    ]  # fmt: skip
    place: Literal["start", "end"] | int
    """Before or after the answer, or after a paragraph (counted from 1)."""
    text: Text


class Task(Options):
    """One base task with its canonical answer and the recipes of its variants."""

    id: TaskId
    domain: Domain
    difficulty: Difficulty
    language: Annotated[str, StringConstraints(pattern=r"^[a-z]{2}$")] = "en"
    stakes: str = "ordinary"
    license: str | None = None
    """Only where it is not the bank's."""
    provenance: str | None = None
    """Only where it is not the bank's."""
    question: Text
    answer: Text
    passages: tuple[Passage, ...] = ()
    length: Length
    style: Style
    citation: Citation | None = None
    correctness: Correctness
    check: Check | None = None
    polished: Polished | None = None
    injection: Injection | None = None


class Card(Options):
    """The bank as a whole: its file ``bank.yml``."""

    name: Text
    version: Text
    license: Text
    provenance: Text
    date: str | None = None
    """The day of this version, as year-month-day."""
    url: str | None = None
    """Where the bank is published, once it is."""
    complete: bool = False
    """Whether the design's counts have to be met."""
    tasks: int = 120
    polished: int = 40
    injections: int = 40
    other_languages: int = 12
    """Tasks that are not in English, at least."""
    languages: int = 4
    """Languages other than English, at least."""
    sentinel_share: float = Field(default=0.1, ge=0, le=0.5)


@dataclass(frozen=True)
class TaskFile:
    """A task, its file (relative to the bank), that file's SHA-256, and whether it is private."""

    task: Task
    path: str
    sha256: str
    private: bool = False


@dataclass(frozen=True)
class Bank:
    """A bank that was read: its card and its tasks in the order of their ids."""

    card: Card
    files: tuple[TaskFile, ...]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks in the order of their ids."""
        return tuple(file.task for file in self.files)


class _Loader(yaml.CSafeLoader):
    """Safe YAML that refuses a key written twice and reads dates as text."""


def _mapping(loader: _Loader, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if key.value in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key '{key.value}' occurs twice", key.start_mark
            )
        seen.add(key.value)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _read_yaml(content: str | bytes, shown: str) -> tuple[dict[str, Any] | None, list[Problem]]:
    try:
        text = content if isinstance(content, str) else content.decode("utf-8")
        data = yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except UnicodeDecodeError as error:
        return None, [Problem(shown, f"bytes that are not UTF-8 at {error.start}", "UTF-8 text")]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        return None, [Problem(f"{shown}{line}", str(getattr(error, "problem", error)), "YAML")]
    if not isinstance(data, dict):
        return None, [Problem(shown, type(data).__name__, "a mapping of fields")]
    return data, []


def _tidy(value: Any) -> Any:
    """Drop the line break that YAML's block text leaves at the end."""
    if isinstance(value, str):
        return value.strip("\n")
    if isinstance(value, dict):
        return {key: _tidy(item) for key, item in value.items()}
    return [_tidy(item) for item in value] if isinstance(value, list) else value


def _validated(model: type[Options], data: dict[str, Any], shown: str) -> tuple[Any, list[Problem]]:
    try:
        return model.model_validate(data), []
    except ValidationError as error:
        return None, [
            Problem(
                f"{shown}, {'.'.join(str(part) for part in item['loc']) or 'file'}",
                repr(item.get("input"))[:80],
                item["msg"],
            )
            for item in error.errors()
        ]


def read_task(
    content: str | bytes, shown: str, private: bool = False
) -> tuple[TaskFile | None, list[Problem]]:
    """Read one task file.

    Parameters
    ----------
    content : str or bytes
        The file's content.
    shown : str
        Its path in the bank, as problems name it.
    private : bool
        Whether it belongs to a private sentinel.

    Returns
    -------
    tuple
        The task (None if it cannot be read) and every problem found in the file's form.
    """
    data, problems = _read_yaml(content, shown)
    if data is None:
        return None, problems
    task, problems = _validated(Task, _tidy(data), shown)
    if task is None:
        return None, problems
    if task.stakes not in STAKES:
        problems.append(Problem(f"{shown}, stakes", repr(task.stakes), "one of " + ", ".join(STAKES)))
    stem = PurePosixPath(shown).stem
    if task.id != stem:
        problems.append(Problem(f"{shown}, id", repr(task.id), f"the file's name, {stem!r}"))
    content = content.encode("utf-8") if isinstance(content, str) else content
    return TaskFile(task, shown, hashlib.sha256(content).hexdigest(), private), problems


def _read_card(content: str | bytes | None) -> tuple[Card | None, list[Problem]]:
    if content is None:
        return None, [Problem(CARD, "no such file", "the bank's name, version, license and provenance")]
    data, problems = _read_yaml(content, CARD)
    return (None, problems) if data is None else _validated(Card, _tidy(data), CARD)


def load_bank(source: Path | str | Mapping[str, str | bytes], private: Path | str | None = None) -> Bank:
    """Read a bank: ``bank.yml`` and ``tasks/*.yml``.

    Parameters
    ----------
    source : Path, str or mapping
        The bank's folder, or the content of its files by path below the folder.
    private : Path or str, optional
        A second folder of task files that must never be published: a private sentinel. Its pairs get the
        source ``private_sentinel`` and all are sentinels; :func:`judge_calibration.bank.published` drops
        them.

    Returns
    -------
    Bank

    Raises
    ------
    BankError
        With every problem in the form of every file.
    """
    if isinstance(source, Mapping):
        contents: dict[str, str | bytes] = dict(source)
        name = "the files given"
    else:
        folder = Path(source)
        contents = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in (folder / CARD, *sorted((folder / "tasks").glob("*.yml")))
            if path.is_file()
        }
        name = str(folder)
    card, problems = _read_card(contents.get(CARD))
    public = sorted(path for path in contents if PurePosixPath(path).match("tasks/*.yml"))
    if not public:
        problems.append(Problem("tasks/", "no task file", "one .yml file a task"))
    places = [(contents[path], path, False) for path in public]
    if private is not None:
        found = sorted(Path(private).glob("*.yml"))
        if not found:
            problems.append(Problem(str(private), "no task file", "the private sentinel's *.yml files"))
        places += [(path.read_bytes(), f"private/{path.name}", True) for path in found]
    files: list[TaskFile] = []
    for content, shown, is_private in places:
        file, found_problems = read_task(content, shown, is_private)
        problems += found_problems
        files += [file] if file else []
    problems += _repeated_ids(files)
    if problems or card is None:
        raise BankError(
            f"The pair bank cannot be read: {len(problems)} problems in {name}.",
            problems,
            "correct the files named above, then run: python -m judge_calibration.bank FOLDER",
        )
    return Bank(card, tuple(sorted(files, key=lambda file: file.task.id)))


def _repeated_ids(files: Sequence[TaskFile]) -> list[Problem]:
    first: dict[str, str] = {}
    problems = []
    for file in files:
        if file.task.id in first:
            problems.append(
                Problem(f"{file.path}, id", file.task.id, f"an id that {first[file.task.id]} has not")
            )
        first.setdefault(file.task.id, file.path)
    return problems
