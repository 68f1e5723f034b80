"""Errors in words: one short message instead of a traceback through the framework."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from judge_calibration.errors import JudgeCalibrationError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_NOT_OURS = {errno.EACCES, errno.EPERM, errno.EROFS}
_WRAPPERS = {"DatasetError"}


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
    and a folder that cannot be written are told as such. Of anything else the outermost error is told that
    is not a dataset's wrapping of another.

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
    told = next((cause for cause in causes if type(cause).__name__ not in _WRAPPERS), causes[-1])
    text = str(told).strip()
    return f"{type(told).__name__}: {text}" if text else type(told).__name__


def is_expected(error: BaseException) -> bool:
    """Say whether the explanation is all that there is to know (no traceback is worth reading).

    So are the project's own errors, those of the file system, and what Kedro itself refuses.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised_in = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    return raised_in.startswith("kedro.") or any(
        isinstance(cause, JudgeCalibrationError)
        or (isinstance(cause, OSError) and cause.errno in _FULL | _NOT_OURS)
        for cause in chain(error)
    )
