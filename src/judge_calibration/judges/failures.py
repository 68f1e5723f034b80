"""Why a call got no answer: one alphabet for all transports, and which failures may be asked again.

Every connection that could not be made, was reset or cut, and every 5xx status is ``unavailable``: some
clients cannot tell them apart, and the classes have to be the same over every transport. A reply that
arrived whole but is no completion (broken JSON, another object) is ``error``.
"""

from __future__ import annotations

import email.utils
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

from judge_calibration.errors import JudgeCalibrationError

FailureClass = Literal[
    "refusal", "timeout", "rate_limited", "context_overflow", "unavailable", "error", "missing"
]

_OVERFLOW: Final = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|too many tokens|prompt is too long"
    r"|exceed_context_size",
    re.IGNORECASE,
)
_FILTER: Final = re.compile(
    r"content[ _-]?(?:filter|policy|management)|responsible ?ai ?policy|safety system", re.IGNORECASE
)
_QUOTA: Final = re.compile(r"insufficient_quota|billing_hard_limit|credit balance", re.IGNORECASE)
_LONGEST_MESSAGE: Final = 500


class AuthenticationFailedError(JudgeCalibrationError):
    """A provider refused the key, or none is set. The run stops at once; the key itself is never named."""


class AccountError(JudgeCalibrationError):
    """The provider says that the account has no money or quota left. Waiting does not help."""


class StoppedError(JudgeCalibrationError):
    """The run was stopped (Ctrl-C, or too many calls in a row without an answer). Answers are kept."""


class Attempt(NamedTuple):
    """One try at a call, as the store keeps it.

    Attributes
    ----------
    call_id : str
    number : int
        From 1, within one run.
    run_id : str
    started_at, finished_at : str
        ISO 8601, UTC.
    status : int or None
        HTTP status; None where there was none.
    failure : str or None
        None: an answer arrived.
    code : str or None
        What happened, finer than the class, e.g. ``http_503``, ``timed_out``, ``not_a_completion``.
    message : str or None
        The provider's or the client's words, shortened, less secrets.
    body, headers : str or None
        The transport's own reply (headers as JSON), less secrets.
    """

    call_id: str
    number: int
    run_id: str
    started_at: str
    finished_at: str
    status: int | None = None
    failure: str | None = None
    code: str | None = None
    message: str | None = None
    body: str | None = None
    headers: str | None = None


@dataclass
class CallFailure(Exception):  # noqa: N818
    """One attempt that brought no answer.

    Attributes
    ----------
    failure : str
        The class, a value of the column ``failure`` of the answers.
    code : str
        What happened, in more detail.
    retryable : bool
        Whether asking the same again can help.
    retry_after_s : float or None
        Seconds that the provider asked to wait.
    terminal : bool
        The provider's last word on this call (a refusal): it is an answer, and is kept as one.
    perhaps_billed : bool
        The provider may have produced, and charged, an answer that did not arrive.
    """

    failure: FailureClass
    code: str
    message: str = ""
    status: int | None = None
    retryable: bool = False
    retry_after_s: float | None = None
    terminal: bool = False
    perhaps_billed: bool = False
    body: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.failure} ({self.code}): {self.message[:_LONGEST_MESSAGE]}"


@dataclass
class Refused(Exception):  # noqa: N818
    """The provider turned the key or the account down: no call of this judge can succeed."""

    code: Literal["authentication", "quota", "no_key"]
    status: int | None = None
    message: str = ""
    variable: str | None = None
    """The environment variable that the key comes from, where the transport knows it."""


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, or None where there is none.

    Both forms are read, seconds and an HTTP date (a date in the past is 0); so is ``retry-after-ms``.

    Examples
    --------
    >>> retry_after({"Retry-After": "3"})
    3.0
    >>> at = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
    >>> retry_after({"retry-after": "Thu, 01 Jan 2026 12:00:07 GMT"}, at)
    7.0
    >>> retry_after({"retry-after": "soon"}) is None
    True
    """
    named = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        if name in named:
            try:
                seconds = float(named[name]) / scale
            except ValueError:
                continue
            # NaN and infinity are no waits.
            return max(0.0, seconds) if seconds < float("inf") else None
    if "retry-after" in named:
        try:
            date = email.utils.parsedate_to_datetime(named["retry-after"])
        except ValueError:
            return None
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())
    return None


def _error_of(body: str) -> tuple[str, str]:
    """Return the code and the message of an error body; the whole body where it has no known form."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return "", body
    inner = value.get("error", value) if isinstance(value, dict) else value
    if isinstance(inner, dict):
        return f"{inner.get('code') or ''} {inner.get('type') or ''}", str(inner.get("message") or body)
    return "", str(inner)


def of_status(status: int, body: str, headers: Mapping[str, str]) -> CallFailure | Refused:
    """Return what an HTTP error status means.

    Parameters
    ----------
    status : int
        400 or above.
    body : str
        The reply's body as text.
    headers : mapping
        The reply's headers.

    Examples
    --------
    >>> failed = of_status(429, "", {"retry-after": "2"})
    >>> failed.failure, failed.retryable, failed.retry_after_s
    ('rate_limited', True, 2.0)
    >>> of_status(404, '{"error": {"message": "no such model"}}', {}).failure
    'unavailable'
    """
    code, message = _error_of(body)
    described = f"{code} {message}"
    named = f"http_{status}"
    common: dict[str, Any] = {
        "message": message[:_LONGEST_MESSAGE],
        "status": status,
        "body": body,
        "headers": dict(headers),
    }
    if status in (401, 403) and not _FILTER.search(described):
        return Refused("authentication", status, message[:_LONGEST_MESSAGE])
    if status in (402, 429) and _QUOTA.search(described):
        return Refused("quota", status, message[:_LONGEST_MESSAGE])
    if status in (408, 504):
        return CallFailure(
            "timeout",
            named,
            retryable=True,
            retry_after_s=retry_after(headers),
            perhaps_billed=True,
            **common,
        )
    if status == 429:
        return CallFailure(
            "rate_limited", named, retryable=True, retry_after_s=retry_after(headers), **common
        )
    if status >= 500:
        return CallFailure("unavailable", named, retryable=True, retry_after_s=retry_after(headers), **common)
    if status in (400, 413, 422) and _OVERFLOW.search(described):
        return CallFailure("context_overflow", named, **common)
    if _FILTER.search(described):
        return CallFailure("refusal", named, terminal=True, **common)
    if status == 404:
        return CallFailure("unavailable", named, **common)
    return CallFailure("error", named, **common)


def timed_out(seconds: float) -> CallFailure:
    """Return the failure of an attempt that took longer than it may."""
    return CallFailure(
        "timeout", "timed_out", f"no answer within {seconds:g} s", retryable=True, perhaps_billed=True
    )


def no_connection(message: str, perhaps_billed: bool = True) -> CallFailure:
    """Return the failure of a connection that could not be made, or that broke."""
    return CallFailure(
        "unavailable",
        "connection",
        message[:_LONGEST_MESSAGE],
        retryable=True,
        perhaps_billed=perhaps_billed,
    )


def not_a_completion(message: str, body: str = "", headers: Mapping[str, str] | None = None) -> CallFailure:
    """Return the failure of a reply that arrived and is no completion."""
    return CallFailure(
        "error",
        "not_a_completion",
        message[:_LONGEST_MESSAGE],
        status=200,
        retryable=True,
        perhaps_billed=True,
        body=body,
        headers=headers or {},
    )
