"""What is wrong with a label row, in words: the column to look at, what stands there, what is wanted."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from pathlib import Path

import pandas as pd

from judge_calibration import schemas
from judge_calibration.labelling.identity import RoundKey
from judge_calibration.labelling.rubric import REASON_TEXTS

LONGEST = 60
"""Characters of a found value that are shown."""

_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
ADDRESS = re.compile(rf"{_MAIL.pattern}|\+?\d[\d ()/-]{{7,}}\d")
"""Mail addresses and telephone numbers (and other long numbers) in a text that people wrote."""

_SHORTEST_CODE = 3
_ANNOTATOR, _ID, _LABEL, _REASONS, _TIME, _TEXT = "annotator", "id", "label", "reason_codes", "time", "text"
_COLUMN_KINDS = {
    "unknown_annotator": _ANNOTATOR,
    "annotator_not_named": _ANNOTATOR,
    "annotator_contradicted": _ANNOTATOR,
    "several_people": _ANNOTATOR,
    "changed_by_another": _ANNOTATOR,
    "begun_from_another": _ANNOTATOR,
    "id_missing": _ID,
    "id_damaged_by_spreadsheet": _ID,
    "id_mistyped": _ID,
    "unknown_packet": _ID,
    "unknown_pair": _ID,
    "not_assigned": _ID,
    "not_of_this_file": _ID,
    "handed_over": _TIME,
    "empty_annotation": _LABEL,
    "unknown_label": _LABEL,
    "unknown_reason_code": _REASONS,
    "reason_code_missing": _REASONS,
    "unknown_attribute": _LABEL,
    "overall_missing": _LABEL,
    "time_unreadable": _TIME,
    "older_than_packet": _TIME,
    "columns_shuffled": _TEXT,
    "conflicting_labels": _LABEL,
}
_COLUMN_NAMES = {
    "spreadsheet": {_ANNOTATOR: "annotator", _ID: "packet_id", _LABEL: "label", _TIME: "labelled_at"},
    "label_studio": {
        _ANNOTATOR: "completed_by",
        _ID: "data.packet_id",
        _LABEL: "overall",
        _TIME: "updated_at",
    },
}
_FIELD_NAMES = {
    "changed_by_another": "updated_by",
    "begun_from_another": "parent_prediction, parent_annotation",
}

_WANTED = {
    "unknown_annotator": "an annotator of the round (see annotation.labels.identities)",
    "annotator_not_named": "who labelled: a column annotator, or `annotator` declared for the file",
    "annotator_contradicted": "{declared}, who is declared for the file",
    "changed_by_another": "an annotation that only who made it changed",
    "begun_from_another": "an annotation that its author began with nothing chosen",
    "several_people": "one person, or annotation.labels.identities that say who each of them is",
    "id_missing": "the packet's id",
    "id_damaged_by_spreadsheet": "the id as it was issued (a spreadsheet made something else of it)",
    "id_mistyped": "the id as it was issued (its check letter does not fit)",
    "unknown_packet": "a packet of this round (the same secret, round_id and annotation.issued_plan)",
    "unknown_pair": "a pair of this round",
    "not_assigned": "a packet of {annotator}",
    "not_of_this_file": "a packet of {named}, after whom the file is named (declare `annotator` for the"
    " file if its name is wrong)",
    "handed_over": "a label from before the packet was handed over, {handed_over_at}",
    "empty_annotation": "a choice, or a skipped task",
    "unknown_label": "one of " + ", ".join(schemas.VERDICTS),
    "unknown_reason_code": "codes among " + ", ".join(REASON_TEXTS),
    "reason_code_missing": "at least one reason code",
    "unknown_attribute": "an attribute that is asked of this pair",
    "overall_missing": "the overall preference, given before the attributes",
    "time_unreadable": "an ISO 8601 time such as 2026-03-01T12:00:00Z",
    "older_than_packet": "a time after the packet was given out, {issued_at}",
    "columns_shuffled": "the text of this packet in the same row",
    "conflicting_labels": "one label (or the rule `last`, with a time on each)",
}


def people_named(path: str, codes: tuple[str, ...], key: RoundKey) -> list[str]:
    """Return the annotators, by code name, whom a file's own name names by code name or pseudonym.

    Examples
    --------
    >>> key = RoundKey(None, "round-1")
    >>> people_named("back/annotator_12 (final).csv", ("annotator_1", "annotator_12"), key)
    ['annotator_12']
    >>> people_named(f"{key.pseudonym('annotator_1')}.xlsx", ("annotator_1",), key)
    ['annotator_1']
    """
    stem = Path(path.replace("\\", "/")).name.casefold()
    found: dict[str, str] = {}
    for code in codes:
        for name in (code, key.pseudonym(code)):
            if len(name) >= _SHORTEST_CODE and re.search(
                rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", stem
            ):
                found[name] = code
    # `annotator_1` stands in `annotator_1_b` too: the longest name is meant.
    longest = [name for name in found if not any(name != other and name in other for other in found)]
    return sorted({found[name] for name in longest})


def shortened(value: object) -> str:
    """Return a found value as it is shown: quoted, short, without addresses.

    Examples
    --------
    >>> shortened("maybe"), shortened(None), shortened("ask ann@example.org")
    ("'maybe'", 'nothing', "'ask [address removed]'")
    """
    if value is None or pd.isna(value) or not str(value).strip():  # type: ignore[call-overload]
        return "nothing"
    # Long numbers stay: damaged ids and times are such.
    text = _MAIL.sub("[address removed]", str(value))
    return repr(text if len(text) <= LONGEST else text[: LONGEST - 3] + "...")


def explain(row: Mapping[Hashable, object]) -> tuple[str, str, str]:
    """Return column, found value and what is wanted for one row that is refused.

    Parameters
    ----------
    row : mapping
        A label row with its key and its ``reason``, as importing.check_rows has it.
    """
    reason = str(row["reason"])
    kind = _COLUMN_KINDS[reason]
    names = _COLUMN_NAMES["label_studio" if row.get("layout") == "label_studio" else "spreadsheet"]
    column = _FIELD_NAMES.get(reason) or names.get(kind, kind)
    if kind == _ID and row.get("by_identity"):
        column = "pair_id"
    elif kind == _LABEL:
        column = _text(row.get("label_column")) or column
    elif kind == _TEXT:
        column = str(row["moved_text"])
    known = {str(name): _text(value) for name, value in row.items()}
    return column, _found(reason, kind, row), _WANTED[reason].format(**known)


def _text(value: object) -> str:
    return "" if value is None or pd.isna(value) else str(value)  # type: ignore[call-overload]


def _found(reason: str, kind: str, row: Mapping[Hashable, object]) -> str:
    if reason in ("not_assigned", "not_of_this_file"):
        owner = _text(row.get("owner"))
        which = _text(row.get("packet_id")) or _text(row.get("pair_id"))
        return f"'{which}', a packet of {owner}" if owner else f"'{which}', given to others"
    if reason == "begun_from_another":
        return _text(row.get("begun_from"))
    if kind == _ANNOTATOR:
        said = _text(row.get("said_by")) or _text(row.get("annotator"))
        if reason == "changed_by_another":
            said = _text(row.get("changed_by"))
        return repr(said.removeprefix("?")) if said.removeprefix("?") else "nobody of the round"
    if reason == "unknown_attribute":
        return f"an answer about {shortened(row.get('attribute'))}"
    if reason == "overall_missing":
        about = shortened(row.get("attribute"))
        return f"{shortened(row.get('label_given'))} about {about} and no overall label"
    if reason == "conflicting_labels":
        return f"{shortened(row.get('label_given'))}, and {_text(row.get('other_labels'))}"
    if reason == "handed_over":
        when = _text(row.get("labelled_at"))
        return repr(when) if when else "no time"
    value = {
        _ID: row.get("pair_id") if row.get("by_identity") else row.get("packet_id"),
        _LABEL: row.get("label_given"),
        _REASONS: row.get("reason_codes"),
        _TIME: row.get("labelled_at"),
        _TEXT: row.get(str(row.get("moved_text"))),
    }[kind]
    return shortened(value)
