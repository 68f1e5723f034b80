"""The exit codes of the commands, and how an error ends one."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import click

from judge_calibration.errors import JudgeCalibrationError, OptionsError, RuleRefusedError, RunError

INTERRUPTED = 130
"""Ended by Ctrl-C."""


class Exit(IntEnum):
    """What the number that a command returns means."""

    PASS = 0
    """Intact, stable, reproduced."""
    FAIL = 1
    """A mismatch, a drift, a failed run."""
    USAGE = 2
    """The command was not given what it needs (an unknown run, a wrong option or parameter)."""
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
        except (RunError, OptionsError, RuleRefusedError) as error:
            say_error(str(error))
            code = Exit.USAGE
        except JudgeCalibrationError as error:
            say_error(str(error))
            code = Exit.ERROR
        except OSError as error:
            from judge_calibration.session.failures import explain

            say_error(explain(error))
            code = Exit.ERROR
        except KeyboardInterrupt:
            say_error("Interrupted.")
            sys.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except Exception:
            # Python would end with 1, which here means "fail": a crash must not read as a verdict.
            click.echo(traceback.format_exc(), err=True)
            code = Exit.ERROR
        sys.exit(int(code))

    return wrapped


def say_error(message: str) -> None:
    """Print an error to the error output."""
    click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(message, err=True)
