"""A user's own prompt: one YAML file, and at most one small class that reads the reply."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError

from judge_calibration.errors import OptionsError, Problem
from judge_calibration.judges.parsing.alphabet import Alphabet
from judge_calibration.judges.parsing.fields import LabelField, TextField
from judge_calibration.judges.parsing.forms import Form, JsonForm, PlainForm, XmlForm
from judge_calibration.judges.parsing.reasoning import without_reasoning
from judge_calibration.judges.parsing.replies import (
    Parsed,
    Reply,
    after_parsing,
    before_parsing,
    malformed,
    outer_stripped,
    truncated,
)
from judge_calibration.judges.prompts import load_prompts
from judge_calibration.judges.protocols.base import Protocol, Step, fill, placeholders
from judge_calibration.options.base import Options
from judge_calibration.options.faults import problems_of
from judge_calibration.options.judging import Constraint

KNOWN = ("question", "answer_a", "answer_b", "sources", "output")
_NEXT = "docs/own-prompt.md shows a file from empty to working"


class _Labels(Options):
    """What the judge says, by what it means; a meaning that is left out is not in the alphabet."""

    first: str = Field(default="A", min_length=1, max_length=40)
    second: str = Field(default="B", min_length=1, max_length=40)
    tie: str | None = Field(default=None, min_length=1, max_length=40)
    abstain: str | None = Field(default=None, min_length=1, max_length=40)


class PromptFile(Options):
    """What a prompt file may hold."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=60)
    """The protocol's name in parameters, tables and reports."""
    system: str = ""
    user: str = Field(min_length=1)
    """Template with {question}, {answer_a} (shown first), {answer_b}, {sources} and {output}."""
    format: Literal["plain", "json", "xml"] = "plain"
    labels: _Labels = _Labels()
    key: str = Field(default="winner", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The key or element that holds the label, for json and xml."""
    rationale: Literal["none", "before", "after"] = "none"
    """Whether reasons are asked for, before the label or after it, for json and xml."""
    reader: str | None = Field(default=None, pattern=r"^[^:]+\.py:[A-Za-z_][A-Za-z0-9_]*$")
    """``file.py:Class`` beside the prompt file, for replies of a form of their own."""
    max_tokens: int = Field(default=512, ge=1, le=131_072)


@dataclass(frozen=True)
class OwnForm:
    """A reply that a user's own class reads: ``read(text)`` gives a label, or None where there is none."""

    alphabet: Alphabet
    words: str
    read_label: Callable[[str], Any]
    source_sha256: str
    constraints: tuple[Constraint, ...] = ("none",)

    @property
    def instruction(self) -> str:
        """What the prompt says about the form."""
        return self.words

    def schema(self) -> dict[str, Any] | None:
        """None: the form is the user's."""
        return None

    def grammar(self) -> str | None:
        """None: the form is the user's."""
        return None

    def describe(self) -> dict[str, Any]:
        """What is part of the instrument's identity."""
        return {"form": "own", "labels": list(self.alphabet.labels), "source_sha256": self.source_sha256}

    def read(self, reply: Reply) -> Parsed:
        """Return what the reply states. Never raises."""
        settled = before_parsing(reply)
        if settled is not None:
            return settled
        rest = without_reasoning(reply.text or "")
        if rest is None:
            return truncated("unclosed_reasoning")
        rest = outer_stripped(rest)
        if not rest:
            return Parsed("empty", reason="only_reasoning")
        try:
            label = self.read_label(rest)
        except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError, RecursionError):
            label = None
        meaning = self.alphabet.read(label) if isinstance(label, str) else None
        if meaning is None:
            return after_parsing(malformed("no_label_read"), rest)
        return Parsed("valid", {"winner": meaning})


def load_own_prompt(path: str | Path) -> Protocol:
    """Return the protocol that a prompt file describes.

    Raises
    ------
    OptionsError
        With everything that is wrong with the file.
    """
    path = Path(path)
    prompt = _read(path)
    alphabet = Alphabet(**prompt.labels.model_dump())
    problems = []
    found = placeholders(prompt.user)
    for needed in ("question", "answer_a", "answer_b"):
        if needed not in found:
            problems.append(
                Problem(f"{path}, key user", f"no {{{needed}}}", "a place for it in the template")
            )
    labels = list(alphabet.labels)
    folded = [label.strip().lower() for label in labels]
    if len(set(folded)) != len(folded):
        problems.append(Problem(f"{path}, key labels", str(labels), "labels that differ, case ignored"))
    if (
        prompt.reader is None
        and prompt.format != "plain"
        and "output" not in found
        and prompt.key not in prompt.user
    ):
        problems.append(
            Problem(f"{path}, key user", f"neither {{output}} nor {prompt.key}", "the reply's form, in words")
        )
    form: Form | None = None
    try:
        form = _form(path, prompt, alphabet)
    except OptionsError as error:
        problems += error.problems
    if problems or form is None:
        raise OptionsError(f"The prompt file {path} cannot be used.", problems, _NEXT)
    system = fill(prompt.system, {"data_rule": load_prompts("pairwise")["data_rule"]}).strip()
    step = Step("verdict", prompt.user.rstrip("\n"), form, max_tokens=prompt.max_tokens)
    return Protocol(prompt.name, alphabet, system, (step,), verdict_field=prompt.key)


def _read(path: Path) -> PromptFile:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise OptionsError(
            f"The prompt file {path} cannot be read.", [Problem(str(path), found, "a YAML file")], _NEXT
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        found = " ".join(str(error).split())[:200]
        raise OptionsError(
            f"The prompt file {path} is not YAML.", [Problem(str(path), found, "YAML in UTF-8")], _NEXT
        ) from None
    if not isinstance(content, dict):
        raise OptionsError(
            f"The prompt file {path} holds no keys.",
            [Problem(str(path), type(content).__name__, "a mapping with name, user and format")],
            _NEXT,
        )
    try:
        return PromptFile.model_validate(content)
    except ValidationError as error:
        problems = problems_of(error, PromptFile, str(path))
        raise OptionsError(f"The prompt file {path} cannot be used.", problems, _NEXT) from None


def _form(path: Path, prompt: PromptFile, alphabet: Alphabet) -> Form:
    if prompt.reader is not None:
        return _own_form(path, prompt.reader, alphabet)
    if prompt.format == "plain":
        return PlainForm(alphabet)
    winner = LabelField(prompt.key, alphabet)
    reasons = TextField("rationale", "your reasons in at most 120 words")
    fields = {"none": (winner,), "before": (reasons, winner), "after": (winner, reasons)}[prompt.rationale]
    return JsonForm(fields) if prompt.format == "json" else XmlForm(fields)


def _own_form(path: Path, reader: str, alphabet: Alphabet) -> OwnForm:
    file_name, _, class_name = reader.rpartition(":")
    file = path.parent / file_name
    wanted = "a Python file beside the prompt file, with a class that has read(text)"
    try:
        source = file.read_bytes()
        spec = importlib.util.spec_from_file_location(f"own_prompt_{file.stem}", file)
        assert spec is not None and spec.loader is not None  # noqa: PT018 - a .py file always has both
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        read = getattr(module, class_name)().read
    except (OSError, SyntaxError, ImportError, AttributeError, TypeError) as error:
        raise OptionsError(
            f"The reader {reader} of {path} cannot be loaded.",
            [Problem(f"{path}, key reader", f"{reader} ({error})", wanted)],
            _NEXT,
        ) from None
    return OwnForm(alphabet, f"Reply with {alphabet.in_words()}.", read, hashlib.sha256(source).hexdigest())
