"""Errors in words: one short message instead of a traceback through the framework."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from judge_calibration.errors import JudgeCalibrationError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_NOT_OURS = {errno.EACCES, errno.EPERM, errno.EROFS}


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what caused it, the outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def explain(error: BaseException) -> str:
    r"""Return what a person has to know about an error.

    The project's own errors speak for themselves, however deep the framework has wrapped them. A full disk
    and a folder that cannot be written are told as such. Of anything else the innermost cause is told, with
    its kind.

    Examples
    --------
    >>> explain(OSError(28, "No space left on device", "data/x"))
    'The disk is full: data/x was not written.\n  Next: free some space and run the same command again'
    """
    causes = list(chain(error))
    for cause in causes:
        if isinstance(cause, JudgeCalibrationError):
            return str(cause)
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno in _FULL:
            what = cause.filename or "a file"
            return (
                f"The disk is full: {what} was not written.\n"
                "  Next: free some space and run the same command again"
            )
        if isinstance(cause, OSError) and cause.errno in _NOT_OURS:
            what, why = cause.filename or "A file", (cause.strerror or "no permission").lower()
            return (
                f"{what} cannot be used: {why}.\n"
                "  Next: give this user the right to it, then run the same command again"
            )
        if "disk is full" in str(cause):
            return f"The disk is full ({cause}).\n  Next: free some space and run the same command again"
    inner = causes[-1]
    text = str(inner).strip()
    return f"{type(inner).__name__}: {text}" if text else type(inner).__name__


def is_expected(error: BaseException) -> bool:
    """Say whether the explanation is all that there is to know (no traceback is worth reading)."""
    return any(
        isinstance(cause, JudgeCalibrationError)
        or (isinstance(cause, OSError) and cause.errno in _FULL | _NOT_OURS)
        for cause in chain(error)
    )
