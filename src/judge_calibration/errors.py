"""Every exception of the project, and the problem lists that they carry.

An error says what was found, where, what was wanted and what to do next. Checks collect all their
problems and raise once. Every exception survives pickling (worker processes send them home) and none
ever holds a key or a credential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and where.

    Parameters
    ----------
    where : str
        File, row, column, parameter or dataset, as a person would look it up, e.g.
        ``"pairs.csv, row 12, column winner"``.
    found : str
        What is there (shortened by the caller if it is long).
    wanted : str
        What would have been accepted.
    """

    where: str
    found: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.where}: found {self.found}; wanted {self.wanted}"


class JudgeCalibrationError(Exception):
    """The base of all errors that the project raises on purpose.

    Parameters
    ----------
    message : str
        What was found and where, in one sentence.
    next_step : str, optional
        What to do now; printed on a line of its own.
    """

    def __init__(self, message: str, next_step: str = "") -> None:
        self.message = message
        self.next_step = next_step
        super().__init__(message, next_step)

    def __str__(self) -> str:
        return f"{self.message}\n  Next: {self.next_step}" if self.next_step else self.message


class ProblemsError(JudgeCalibrationError):
    """Several problems found by one check, raised together.

    Examples
    --------
    >>> print(ProblemsError("2 problems", [Problem("a.csv, row 3", "''", "text")], "fix the file"))
    2 problems
      - a.csv, row 3: found ''; wanted text
      Next: fix the file
    """

    shown = 20

    def __init__(self, message: str, problems: Sequence[Problem], next_step: str = "") -> None:
        super().__init__(message, next_step)
        self.problems = tuple(problems)
        # All constructor arguments stay in args, so that pickle can call the constructor again.
        self.args = (message, self.problems, next_step)

    def __str__(self) -> str:
        lines = [self.message]
        lines += [f"  - {problem}" for problem in self.problems[: self.shown]]
        if len(self.problems) > self.shown:
            lines.append(f"  - ... and {len(self.problems) - self.shown} more")
        if self.next_step:
            lines.append(f"  Next: {self.next_step}")
        return "\n".join(lines)


class TableError(ProblemsError):
    """A table that crosses pipelines breaks its schema (missing column, duplicate key, bad label)."""


class SourceError(ProblemsError):
    """A file of pairs, verdicts or labels cannot be read without guessing. Nothing of it is imported."""


class OptionsError(ProblemsError):
    """Parameters that are each legal contradict one another."""


class StorageError(JudgeCalibrationError):
    """A file cannot be written: the disk is full, the folder is read-only or not ours."""


class ChecksumError(JudgeCalibrationError):
    """A file is not what was written: its SHA-256 differs from the recorded one, or none is recorded."""


class RunError(JudgeCalibrationError):
    """A run cannot start, be found or be repeated (unknown run id, unsupported runner, broken manifest)."""


class InterruptedRunError(JudgeCalibrationError):
    """A person or the system stopped the run (Ctrl-C, SIGTERM). What had arrived is kept."""


class MissingInputError(ProblemsError):
    """A pipeline needs datasets that nothing has made yet."""


class VarianceModelError(JudgeCalibrationError):
    """A random-effects model that cannot be estimated as written (a margin or a degree of freedom lacks)."""


class RemlError(JudgeCalibrationError):
    """The restricted likelihood could not be maximised; no component is reported."""


class PredictionPoweredError(ProblemsError):
    """Human and judge labels cannot be combined: the labelled pairs are no known random subset."""


class RuleRefusedError(ProblemsError):
    """A decision rule that no gate may use: the shipped EXAMPLE, or one that contradicts itself."""


class GateInputError(ProblemsError):
    """A gate was given tables that it cannot decide on."""
