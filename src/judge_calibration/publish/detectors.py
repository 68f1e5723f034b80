"""Personal data and secrets in texts that are to be published.

Two libraries look, both kept up and both working without a network: **DataFog** (its engine of patterns) for
e-mail addresses, telephone numbers, card and social security numbers and IP addresses; **Kingfisher** (its
rules for keys of services) for secrets. A few patterns of our own stand beside them for what they miss:
account numbers (IBAN), passwords that are called so, web tokens, and paths of the machine.

What all of them miss: names of people, postal addresses, dates of birth, identity numbers other than the
American one, telephone numbers written without any separator, secrets in other people's formats, and
everything that is personal only in its context. A detector is no reader.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from judge_calibration.bank.privacy import passes_luhn, private_things
from judge_calibration.errors import JudgeCalibrationError
from judge_calibration.publish.texts import Text

Kind = Literal["personal data", "secret", "private sentinel"]
"""What a finding is. The last one cannot be reviewed away."""

_PEOPLE = {
    "EMAIL": "an e-mail address",
    "PHONE": "a telephone number",
    "SSN": "a social security number",
    "CREDIT_CARD": "a card number",
    "IP_ADDRESS": "an IP address",
}
"""What of DataFog's entities counts. Dates and postal codes alone name nobody."""

_WRITTEN_APART = ("PHONE", "SSN")
"""A bare run of digits is a number or part of a hash far more often than one of these."""

_OWN = ("an account number", "a password", "a secret key")
_DECIMAL_BEFORE, _DECIMAL_AFTER = re.compile(r"\d\."), re.compile(r"\.\d")
_DECIMAL = re.compile(r"\d+\.\d+")
_RULES_AT_LEAST = "low"
_LONGEST_LINE = 60


class DetectorError(JudgeCalibrationError):
    """A detector is not installed or did not work; nothing is published unseen."""


@dataclass(frozen=True)
class Finding:
    """Something that others should not read, and where it stands first.

    Attributes
    ----------
    kind : {'personal data', 'secret', 'private sentinel'}
        What it is.
    what : str
        In words, with the detector's name.
    where : str
        File, row and column.
    text : str
        What was found.
    """

    kind: Kind
    what: str
    where: str
    text: str

    @property
    def id(self) -> str:
        """The same for the same text, wherever it stands: 12 hex digits."""
        return hashlib.sha256(f"{self.kind}\n{self.text}".encode("utf-8", "surrogatepass")).hexdigest()[:12]

    @property
    def shown(self) -> str:
        """The text as a message may hold it: the middle of a secret is left out."""
        line = " ".join(self.text.split())
        if self.kind == "secret":
            return f"{line[:6]}...{line[-2:]}"
        return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 3]}..."


def versions() -> dict[str, str]:
    """Return the detectors and their versions."""
    import importlib.metadata

    return {name: importlib.metadata.version(name) for name in ("datafog", "kingfisher-bin")}


def check_installed() -> None:
    """Refuse to go on without the detectors.

    Raises
    ------
    DetectorError
        One of them is absent.
    """
    import importlib.util

    if importlib.util.find_spec("datafog") is None or _kingfisher() is None:
        raise DetectorError(
            "The detectors of personal data and secrets are not installed; nothing is published unseen.",
            "pip install 'judge_calibration[publish]', or make env",
        )


def find_personal(texts: Iterable[Text], machine: Sequence[str] = ()) -> Iterator[Finding]:
    """Yield personal data, each text once.

    Parameters
    ----------
    texts : iterable of Text
        Where a text stands twice, the first place is told.
    machine : sequence of str
        Paths of this machine, which tell who its user is.
    """
    os.environ["DATAFOG_NO_TELEMETRY"] = "1"
    from datafog.engine import scan

    told: set[str] = set()
    for where, text in texts:
        for finding in _personal(where, text, scan, machine):
            if finding.id not in told:
                told.add(finding.id)
                yield finding


def _personal(where: str, text: str, scan: Any, machine: Sequence[str]) -> Iterator[Finding]:
    if any(char.isdigit() or char == "@" for char in text):
        for entity in scan(text, engine="regex").entities:
            what = _PEOPLE.get(entity.type)
            found = entity.text.strip()
            if what and _is_meant(entity.type, found) and _stands_alone(text, entity):
                yield Finding("personal data", f"{what} (DataFog)", where, found)
    for line in private_things(text):
        what, _, shown = line.partition(": ")
        if what in _OWN:
            kind: Kind = "personal data" if what == "an account number" else "secret"
            yield Finding(kind, f"{what} (own pattern)", where, shown.strip("'\""))
    for path in machine:
        if path in text:
            yield Finding("personal data", "a path of this machine", where, path)


def _is_meant(kind: str, found: str) -> bool:
    if kind in _WRITTEN_APART and (found.isdigit() or _DECIMAL.fullmatch(found)):
        return False
    digits = "".join(char for char in found if char.isdigit())
    return kind != "CREDIT_CARD" or passes_luhn(digits)


def _stands_alone(text: str, entity: Any) -> bool:
    """Say whether what was found is no piece of a longer word or number: a checksum, an id, 0.4155555."""
    before, after = text[: entity.start][-2:], text[entity.end : entity.end + 2]
    inside = before[-1:].isalnum() or after[:1].isalnum()
    return not inside and not _DECIMAL_BEFORE.fullmatch(before) and not _DECIMAL_AFTER.fullmatch(after)


def find_secrets(texts: Iterable[Text]) -> Iterator[Finding]:
    """Yield keys and tokens that Kingfisher's rules know; no network is used, so none is tried out.

    Raises
    ------
    DetectorError
        The program is absent or failed.
    """
    check_installed()
    places: list[str] = []
    with tempfile.TemporaryDirectory(prefix="judge-calibration-") as folder:
        file = Path(folder, "texts.txt")
        with file.open("w", encoding="utf-8", errors="replace", newline="\n") as handle:
            for where, text in texts:
                lines = text.splitlines() or [""]
                handle.write("\n".join(lines) + "\n")
                places += [where] * len(lines)
        done = subprocess.run(  # noqa: S603
            [
                str(_kingfisher()), "scan", str(file), "--no-validate", "--no-update-check", "--no-ignore",
                "--git-history", "none", "--confidence", _RULES_AT_LEAST, "--format", "json", "--quiet",
            ],
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        if done.returncode not in (0, 200, 205):
            raise DetectorError(
                f"Kingfisher ended with {done.returncode}: {done.stderr.strip()[-300:]}",
                "try `kingfisher --version`; nothing is published unseen",
            )
        told: set[str] = set()
        for found in _documents(done.stdout):
            detail = found["finding"]
            line = int(detail.get("line") or 1)
            where = places[min(line, len(places)) - 1] if places else ""
            what = f"{found['rule'].get('name') or found['rule']['id']} (Kingfisher)"
            finding = Finding("secret", what, where, str(detail.get("snippet", "")))
            if finding.id not in told:
                told.add(finding.id)
                yield finding


def _documents(output: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    start = output.find("{")
    while start >= 0:
        document, end = decoder.raw_decode(output, start)
        findings = document.get("findings")
        if isinstance(findings, list):
            yield from findings
        start = output.find("{", end)


def _kingfisher() -> str | None:
    beside = Path(sys.executable).parent / "kingfisher"
    return str(beside) if beside.is_file() else shutil.which("kingfisher")
