"""The exit codes of the commands, and how an error ends one."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import click

from judge_calibration.errors import JudgeCalibrationError, RunError


class Exit(IntEnum):
    """What the number that a command returns means."""

    PASS = 0
    """Intact, stable, reproduced."""
    FAIL = 1
    """A mismatch, a drift, a failed run."""
    USAGE = 2
    """The command was not given what it needs (an unknown run, a wrong option)."""
    PAUSE = 3
    """Inconclusive, in conflict, or too few data."""
    ERROR = 4
    """It could not decide: a crash is never a verdict."""


def explained(function: Callable[..., Exit]) -> Callable[..., None]:
    """Make a command exit with its result, and with :attr:`Exit.ERROR` and a short message if it breaks."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            code = function(*args, **kwargs)
        except RunError as error:
            say_error(str(error))
            code = Exit.USAGE
        except JudgeCalibrationError as error:
            say_error(str(error))
            code = Exit.ERROR
        except OSError as error:
            from judge_calibration.session.failures import explain

            say_error(explain(error))
            code = Exit.ERROR
        sys.exit(int(code))

    return wrapped


def say_error(message: str) -> None:
    """Print an error to the error output."""
    click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(message, err=True)
