"""Label rows checked against the plan: what is accepted, and what is refused with row and reason.

Nothing is repaired by guessing. A row is refused for the first of these reasons that holds:

``unknown_annotator``, ``annotator_not_named``, ``id_missing``, ``id_damaged_by_spreadsheet``,
``id_mistyped``, ``unknown_packet``, ``unknown_pair``, ``not_assigned`` (the packet is another person's),
``handed_over``, ``empty_annotation``, ``unknown_label``, ``unknown_reason_code``, ``reason_code_missing``,
``unknown_attribute``, ``overall_missing``, ``time_unreadable``, ``older_than_packet``, ``columns_shuffled``
(the texts beside the label are not this packet's), ``conflicting_labels`` (two different labels of one
person for one pair).

Set aside without being wrong: ``open`` (no label yet), ``skipped``, ``repeated`` (the same label again) and,
under the rule ``last``, ``superseded``.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from judge_calibration import schemas
from judge_calibration.errors import Problem, SourceError
from judge_calibration.labelling.identity import RoundKey, has_packet_form, is_packet_id
from judge_calibration.labelling.label_rows import empty_rows
from judge_calibration.labelling.label_studio import read_export
from judge_calibration.labelling.packets import attribute_slots
from judge_calibration.labelling.rubric import REASON_TEXTS
from judge_calibration.labelling.spreadsheets import decode, read_label_sheet
from judge_calibration.options.annotation import AnnotationOptions, ImportOptions, LabelFileOptions
from judge_calibration.text import canonical_json, to_storable

NOT_WRONG = ("open", "skipped", "repeated", "superseded")
REFUSED_COLUMNS = ["file", "row", "annotator_id", "packet_id", "attribute", "label", "reason"]
LABEL_COLUMNS = [*schemas.LABELS.column_names, "slot", "kind", "round_id", "comment"]
UNNAMED = "?"

_EXCEL_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")
_EXCEL_DATE = re.compile(
    r"\d{1,4}[-/.][A-Za-z]{3}([-/.]\d{2,4})?|[A-Za-z]{3}[-/. ]\d{2,4}|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*"
)
_NOT_ASCII_WORD = re.compile(r"[^A-Za-z0-9]+")
# So many equal letters and digits in a row are no accident.
_TELLING = 20
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+|\+?\d[\d ()/-]{7,}\d")


class Imported(NamedTuple):
    """What came out of the label files.

    Attributes
    ----------
    labels : pandas.DataFrame
        Accepted labels (LABEL_COLUMNS), by candidate identity, under pseudonyms; ``kind`` is human, ai or
        simulated.
    set_aside : pandas.DataFrame
        Every other row with its reason (REFUSED_COLUMNS).
    """

    labels: pd.DataFrame
    set_aside: pd.DataFrame


def read_identities(data: bytes, name: str, codes: Sequence[str]) -> dict[str, str]:
    """Return who is known as what: a CSV with the columns ``known_as`` and ``annotator`` (a code name).

    Raises
    ------
    SourceError
        If a column lacks, a code name is not of the round, or one name stands for two annotators.
    """
    rows = list(csv.DictReader(io.StringIO(decode(data, name), newline="")))
    problems: list[Problem] = []
    out: dict[str, str] = {}
    for number, row in enumerate(rows, start=2):
        known_as, code = (row.get("known_as") or "").strip(), (row.get("annotator") or "").strip()
        place = f"{name}, row {number}"
        if not known_as or not code:
            problems.append(Problem(place, "an empty cell or no such column", "known_as and annotator"))
        elif code not in codes:
            problems.append(Problem(f"{place}, column annotator", repr(code), "a code name of the round"))
        elif out.get(known_as.casefold(), code) != code:
            problems.append(Problem(f"{place}, column known_as", "the same name for two annotators", "one"))
        else:
            out[known_as.casefold()] = code
    if problems:
        raise SourceError(f"{name} does not say who is who.", problems)
    return out


def read_label_file(data: bytes, options: LabelFileOptions) -> pd.DataFrame:
    """Return the label rows of one file, by its declared layout or its ending."""
    layout = options.layout
    ending = Path(options.path).suffix.lower()
    if layout == "auto":
        if ending == ".json":
            layout = "label_studio"
        elif ending in (".csv", ".tsv", ".txt", ".xlsx", ".xlsm"):
            layout = "spreadsheet"
        else:
            raise SourceError(
                f"{options.path} has no ending that says what it is.",
                [Problem(options.path, repr(ending), ".csv, .tsv, .xlsx or .json, or a declared layout")],
            )
    return read_export(data, options) if layout == "label_studio" else read_label_sheet(data, options)


def read_label_files(options: ImportOptions, codes: Sequence[str]) -> pd.DataFrame:
    """Read every declared label file and put code names in place of the names that stand in them.

    Parameters
    ----------
    options : ImportOptions
        The files, and the file of identities.
    codes : sequence of str
        Code names of the round's annotators.

    Returns
    -------
    pandas.DataFrame
        Label rows; ``annotator`` is a code name, or ``?`` for somebody unknown. Who that is, is not kept.

    Raises
    ------
    SourceError
        Files that are not there or cannot be read; all problems together.
    """
    problems: list[Problem] = []

    def content(path: str) -> bytes | None:
        try:
            return Path(path).read_bytes()
        except OSError as error:
            problems.append(Problem(path, type(error).__name__, "a file that can be read"))
            return None

    known: dict[str, str] = {}
    if options.identities is not None and (data := content(options.identities)) is not None:
        known = read_identities(data, options.identities, codes)
    frames = []
    for file in options.files:
        if (data := content(file.path)) is None:
            continue
        try:
            frames.append(read_label_file(data, file))
        except SourceError as error:
            problems += error.problems
    if problems:
        raise SourceError(
            "The label files cannot be read.", problems, "correct annotation.labels in the parameters"
        )
    rows = pd.concat(frames, ignore_index=True) if frames else empty_rows()

    def code_of(name: str) -> str:
        folded = name.strip().casefold()
        return known.get(folded) or (folded if folded in codes else UNNAMED)

    mapping = {name: code_of(name) for name in rows["annotator"].dropna().unique()}
    rows["annotator"] = rows["annotator"].map(mapping).astype("str")
    return rows


def describe_label_files(options: ImportOptions, rows: pd.DataFrame) -> pd.DataFrame:
    """Return which files the labels came from: name, who made them, SHA-256 and number of label rows.

    Parameters
    ----------
    options : ImportOptions
        The declared files, already read.
    rows : pandas.DataFrame
        Their label rows.
    """
    counts = rows["file"].value_counts()
    records = []
    for file in options.files:
        name = Path(file.path).name
        digest = hashlib.sha256(Path(file.path).read_bytes()).hexdigest()
        records.append((name, file.made_by, digest, int(counts.get(name, 0))))
    frame = pd.DataFrame(records, columns=["file", "made_by", "sha256", "rows"])
    return frame.astype({"file": "str", "made_by": "str", "sha256": "str", "rows": "Int64"})


def given_packets(rows: pd.DataFrame, key: RoundKey) -> dict[str, datetime | None]:
    """Return the packets that have a label, each with the earliest time (None: a label without a time)."""
    done = rows[rows["state"] == "completed"]
    times = _times(done["labelled_at"])[0]
    out: dict[str, datetime | None] = {}
    for (packet_id, pair_id, code), moment in zip(
        done[["packet_id", "pair_id", "annotator"]].itertuples(index=False), times, strict=True
    ):
        when = None if pd.isna(moment) else moment.to_pydatetime()
        if not pd.isna(packet_id):
            packets = [clean_id(packet_id)]
        elif pd.isna(pair_id) or pd.isna(code) or code == UNNAMED:
            continue
        else:
            stages = ("primary", "adjudication")
            packets = [key.packet_id(pair_id, key.pseudonym(code), stage) for stage in stages]
        for packet in packets:
            before = out.get(packet)
            if packet not in out or (before is not None and (when is None or when < before)):
                out[packet] = when
    return out


def clean_id(text: str) -> str:
    """Return a packet id as it was issued, whatever case and outer space it came back with."""
    return text.strip().lower()


def _times(values: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Return the moments (UTC, NaT where there is none) and which rows cannot be read."""
    given = values.notna()
    moments = pd.to_datetime(values, utc=True, errors="coerce", format="ISO8601")
    # ISO8601 reads '2026' and '20260301' too, which spreadsheets make of other things.
    shaped = values.astype("str").str.match(r"\s*\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?\s*$").fillna(False)
    readable = moments.notna() & shaped
    return moments.where(readable), given & ~readable


def _squeezed(texts: pd.Series) -> pd.Series:
    """Return texts as they are compared: spreadsheets change white space and leading apostrophes."""
    return texts.astype("str").str.replace(r"\s+", " ", regex=True).str.strip().str.lstrip("' ")


def _same_but_damaged(came: str, issued: str) -> bool:
    """Return whether a text is the issued one with its characters lost to another encoding.

    Programs that save cp1252 put ``?`` for what it lacks, and others take UTF-8 for cp1252: letters and
    digits of ASCII survive both.
    """
    skeleton = _NOT_ASCII_WORD.sub("", came)
    if skeleton != _NOT_ASCII_WORD.sub("", issued):
        return False
    lost = came.count("?") + came.count("\ufffd") > issued.count("?") + issued.count("\ufffd")
    return lost or len(skeleton) >= _TELLING


def _reason_codes(text: object) -> tuple[str, bool]:
    """Return the reason codes as JSON, and whether all are known."""
    if text is None or pd.isna(text):  # type: ignore[call-overload]
        return "[]", True
    found = [part.strip() for part in re.split(r"[;,|\n]", str(text).strip().strip("[]")) if part.strip()]
    found = [part.strip("\"' ").lower().replace(" ", "_") for part in found]
    codes = list(dict.fromkeys(found))
    return canonical_json(sorted(codes, key=_code_place)), all(code in REASON_TEXTS for code in codes)


def _code_place(code: str) -> int:
    names = list(REASON_TEXTS)
    return names.index(code) if code in names else len(names)


def _id_reason(text: object) -> str:
    """Return why a packet id that is not of this round is none."""
    if text is None or pd.isna(text):  # type: ignore[call-overload]
        return "id_missing"
    shown = str(text).strip()
    if _EXCEL_NUMBER.fullmatch(shown) or _EXCEL_DATE.fullmatch(shown) or shown.startswith("#"):
        return "id_damaged_by_spreadsheet"
    folded = clean_id(shown)
    if has_packet_form(folded):
        return "unknown_packet" if is_packet_id(folded) else "id_mistyped"
    return "id_damaged_by_spreadsheet" if _is_cut_id(folded) else "unknown_packet"


def _is_cut_id(text: str) -> bool:
    # Letters in groups, but too few or with other dashes: autocorrection or a cut cell.
    bare = re.sub(r"[\s‐-―-]+", "", text)
    return 8 <= len(bare) < 16 and all(letter in "bcdfghjkmnpqrstvwxyz" for letter in bare)


def _pair_reason(text: object, pair_ids: set[str]) -> str:
    if text is None or pd.isna(text):  # type: ignore[call-overload]
        return "id_missing"
    shown = str(text).strip()
    damaged = _EXCEL_NUMBER.fullmatch(shown) or _EXCEL_DATE.fullmatch(shown) or shown.startswith("#")
    if damaged and (re.search(r"[eE.,/]", shown) or any(_lost_zeros(shown, known) for known in pair_ids)):
        return "id_damaged_by_spreadsheet"
    return "id_damaged_by_spreadsheet" if _EXCEL_DATE.fullmatch(shown) else "unknown_pair"


def _lost_zeros(shown: str, known: str) -> bool:
    return known != shown and known.isdigit() and known.lstrip("0") == shown.lstrip("0")


def check_rows(
    rows: pd.DataFrame,
    unblinding: pd.DataFrame,
    packets: pd.DataFrame,
    options: AnnotationOptions,
    key: RoundKey,
) -> Imported:
    """Check label rows against the plan and return the labels by candidate identity.

    Parameters
    ----------
    rows : pandas.DataFrame
        Label rows (label_rows.ROW_COLUMNS) under code names.
    unblinding : pandas.DataFrame
        The round's key (planning.KEY_COLUMNS).
    packets : pandas.DataFrame
        Packets of the round, to compare the texts that came back; others are not compared.
    options : AnnotationOptions
        Rules: conflicts, problems, reason codes.
    key : RoundKey
        Makes the annotators' pseudonyms.

    Returns
    -------
    Imported
        Labels and every other row with its reason.

    Raises
    ------
    SourceError
        Under the rule ``refuse``, if any row is wrong: every row with its reason, and nothing is imported.
    """
    frame = rows.reset_index(drop=True)
    frame["annotator_id"] = frame["annotator"].map({code: key.pseudonym(code) for code in options.codes})
    frame["id"] = frame["packet_id"].map(clean_id, na_action="ignore")
    frame = _with_key(frame, unblinding)
    moments, unreadable = _times(frame["labelled_at"])
    frame["moment"] = moments
    frame["label"] = frame["label"].str.strip().str.upper()
    codes = {text: _reason_codes(text) for text in frame["reason_codes"].unique()}
    frame["codes"] = [codes[text][0] for text in frame["reason_codes"]]
    frame["reason"] = _reasons(
        frame,
        unreadable,
        {t: ok for t, (_, ok) in codes.items()},
        packets,
        set(unblinding["pair_id"]),
        options,
    )
    frame = _settle_repeats(frame, options.labels.conflict)
    # The overall preference comes first: an attribute without it was answered out of order.
    preferred = frame.loc[frame["reason"].isna() & frame["attribute"].isna(), "id"]
    out_of_order = frame["reason"].isna() & frame["attribute"].notna() & ~frame["id"].isin(preferred)
    frame.loc[out_of_order, "reason"] = "overall_missing"
    accepted = frame[frame["reason"].isna()]
    labels = _label_frame(accepted, key.round_id)
    set_aside = frame[frame["reason"].notna()][REFUSED_COLUMNS].reset_index(drop=True)
    set_aside = set_aside.astype(dict.fromkeys([c for c in REFUSED_COLUMNS if c != "row"], "str"))
    _refuse_wrong(set_aside, options.labels)
    return Imported(schemas.check(labels, schemas.LABELS, "labels"), set_aside)


def _with_key(frame: pd.DataFrame, unblinding: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with what the key says of their packet (``owner``, ``pair``, ``order``, ...)."""
    # Labels by pair id find their packet by pair and annotator: a person holds one packet of a pair.
    held = unblinding.drop_duplicates(["pair_id", "annotator_id"], keep="last")
    by_pair = held.set_index(["pair_id", "annotator_id"])["packet_id"]
    asked = pd.MultiIndex.from_frame(frame[["pair_id", "annotator_id"]].fillna("").astype("str"))
    found = pd.Series(by_pair.reindex(asked).to_numpy(), index=frame.index)
    by_identity = frame["packet_id"].isna() & frame["pair_id"].notna()
    frame["by_identity"] = by_identity
    frame["known_pair"] = frame["pair_id"].isin(unblinding["pair_id"])
    frame["id"] = frame["id"].where(~by_identity, found)
    renamed = unblinding.rename(
        columns={"annotator_id": "owner", "pair_id": "pair", "status": "key_status", "packet_id": "id"}
    )
    wanted = ["id", "owner", "pair", "order", "stage", "slot", "key_status", "issued_at", "handed_over_at"]
    return frame.merge(renamed[wanted], on="id", how="left")


def _reasons(
    frame: pd.DataFrame,
    unreadable: pd.Series,
    known_codes: dict[object, bool],
    packets: pd.DataFrame,
    pair_ids: set[str],
    options: AnnotationOptions,
) -> pd.Series:
    reason = pd.Series(None, index=frame.index, dtype="object")

    def mark(rows: pd.Series, text: str) -> None:
        reason[rows.fillna(False).astype(bool) & reason.isna()] = text

    mark(frame["state"] == "open", "open")
    mark((frame["state"] == "completed") & frame["label"].isna(), "open")
    unresolved = frame["owner"].isna()
    # A label by pair id of somebody who holds no packet of a known pair is an assignment problem.
    for place in frame.index[unresolved & reason.isna() & (frame["annotator"] != UNNAMED)]:
        if frame["by_identity"][place]:
            text = (
                "not_assigned"
                if frame["known_pair"][place]
                else _pair_reason(frame["pair_id"][place], pair_ids)
            )
        else:
            text = _id_reason(frame["packet_id"][place])
        if text == "not_assigned" and pd.isna(frame["annotator"][place]):
            text = "annotator_not_named"
        reason[place] = text
    mark(frame["annotator"] == UNNAMED, "unknown_annotator")
    # A packet is one person's, so a sheet need not say who filled it in; if it says so, it has to agree.
    mark(frame["annotator_id"].notna() & (frame["annotator_id"] != frame["owner"]), "not_assigned")
    mark(frame["state"].isin(["skipped", "cancelled"]), "skipped")
    mark(frame["state"] == "empty", "empty_annotation")
    mark(~frame["label"].isin(schemas.VERDICTS), "unknown_label")
    mark(~frame["reason_codes"].map(known_codes).astype(bool), "unknown_reason_code")
    if options.labels.require_reason:
        bare = frame["attribute"].isna() & frame["label"].isin(schemas.DECISIVE) & (frame["codes"] == "[]")
        mark(bare, "reason_code_missing")
    mark(frame["attribute"].notna() & ~_is_asked(frame, packets), "unknown_attribute")
    mark(unreadable, "time_unreadable")
    issued = pd.to_datetime(frame["issued_at"], utc=True, format="ISO8601")
    mark(frame["moment"] < issued, "older_than_packet")
    handed = pd.to_datetime(frame["handed_over_at"], utc=True, format="ISO8601")
    mark(handed.notna() & (frame["moment"].isna() | (frame["moment"] > handed)), "handed_over")
    mark(_shuffled(frame, packets), "columns_shuffled")
    return reason


def _is_asked(frame: pd.DataFrame, packets: pd.DataFrame) -> pd.Series:
    """Return which rows answer an attribute that their packet asks for."""
    asked: set[tuple[str, str]] = set()
    for slot in attribute_slots(packets):
        asked |= set(packets[["packet_id", slot]].dropna().itertuples(index=False, name=None))
    answered = zip(frame["id"], frame["attribute"], strict=True)
    return pd.Series([pair in asked for pair in answered], index=frame.index, dtype=bool)


def _shuffled(frame: pd.DataFrame, packets: pd.DataFrame) -> pd.Series:
    """Return rows whose texts are not those of their packet: columns were sorted apart, or rows moved."""
    issued = packets.set_index("packet_id")
    wrong = pd.Series(False, index=frame.index)
    known = frame["id"].isin(issued.index)
    for column in ("question", "answer_a", "answer_b"):
        rows = frame[column].notna() & known
        if rows.any():
            wanted = pd.Series(
                issued[column].reindex(frame.loc[rows, "id"]).to_numpy(), index=frame.index[rows]
            )
            came = frame.loc[rows, column].map(to_storable)
            differs = _squeezed(came) != _squeezed(wanted)
            other = [
                place for place in differs[differs].index if not _same_but_damaged(came[place], wanted[place])
            ]
            wrong[other] = True
    return wrong


def _settle_repeats(frame: pd.DataFrame, rule: str) -> pd.DataFrame:
    """Mark repeated, superseded and conflicting labels of one packet (and attribute)."""
    fine = frame["reason"].isna()
    group = ["id", "attribute"]
    several = fine & frame[fine].duplicated(group, keep=False).reindex(frame.index, fill_value=False)
    if not several.any():
        return frame
    frame["place"] = range(len(frame))
    for _, rows in frame[several].groupby(group, dropna=False):
        ordered = rows.sort_values(["moment", "place"], na_position="first")
        if len(set(rows["label"])) == 1:
            frame.loc[ordered.index[:-1], "reason"] = "repeated"
        elif rule == "last" and rows["moment"].notna().all() and rows["moment"].nunique() == len(rows):
            frame.loc[ordered.index[:-1], "reason"] = "superseded"
        else:
            frame.loc[rows.index, "reason"] = "conflicting_labels"
    return frame


def _label_frame(accepted: pd.DataFrame, round_id: str) -> pd.DataFrame:
    # A label by shown answer is turned to candidate identity here, and nowhere else.
    turned = (accepted["order"] == "BA") & ~accepted["by_identity"]
    label = accepted["label"].where(~turned, accepted["label"].replace({"A": "B", "B": "A"}))
    comments = accepted["comment"].map(
        lambda text: to_storable(_ADDRESS.sub("[address removed]", text)), na_action="ignore"
    )
    frame = pd.DataFrame(
        {
            "pair_id": accepted["pair"],
            "attribute": accepted["attribute"],
            "annotator_id": accepted["owner"],
            "label": label,
            "reason_codes": accepted["codes"],
            "order": accepted["order"],
            "stage": accepted["stage"],
            "labelled_at": accepted["moment"].map(lambda t: t.isoformat(), na_action="ignore").astype("str"),
            "slot": accepted["slot"],
            "kind": accepted["made_by"],
            "round_id": round_id,
            "comment": comments,
        },
        columns=LABEL_COLUMNS,
    )
    frame = schemas.conform(frame, schemas.LABELS)
    frame = frame.astype({"slot": "Int64", "kind": "str", "round_id": "str", "comment": "str"})
    return frame.sort_values(
        ["pair_id", "slot", "attribute"], na_position="first", kind="stable"
    ).reset_index(drop=True)


def _refuse_wrong(set_aside: pd.DataFrame, options: ImportOptions) -> None:
    wrong = set_aside[~set_aside["reason"].isin(NOT_WRONG)]
    if wrong.empty or options.on_problem == "set_aside":
        return
    problems = [
        Problem(f"{row['file']}, row {row['row']}", str(row["reason"]), _WANTED[str(row["reason"])])
        for row in wrong.to_dict("records")
    ]
    raise SourceError(
        f"{len(problems)} label rows cannot be accepted; nothing was imported.",
        problems,
        "correct the rows, or declare annotation.labels.on_problem: set_aside to import the others",
    )


_WANTED = {
    "unknown_annotator": "an annotator of the round (see annotation.labels.identities)",
    "annotator_not_named": "a column annotator, or `annotator` declared for the file",
    "id_missing": "the packet's id",
    "id_damaged_by_spreadsheet": "the id as it was issued (a spreadsheet made a number or a date of it)",
    "id_mistyped": "the id as it was issued (its check letter does not fit)",
    "unknown_packet": "a packet of this round (the same secret, round_id and annotation.issued_plan)",
    "unknown_pair": "a pair of this round",
    "not_assigned": "a label of the person whom the packet was given to",
    "handed_over": "a label from before the packet was handed over",
    "empty_annotation": "a choice, or a skipped task",
    "unknown_label": "one of " + ", ".join(schemas.VERDICTS),
    "unknown_reason_code": "reason codes among " + ", ".join(REASON_TEXTS),
    "reason_code_missing": "at least one reason code",
    "unknown_attribute": "an attribute of the study",
    "overall_missing": "the overall preference, given before the attributes",
    "time_unreadable": "an ISO 8601 time such as 2026-03-01T12:00:00Z",
    "older_than_packet": "a time after the packet was given out",
    "columns_shuffled": "the question and answers of this packet in the same row",
    "conflicting_labels": "one label (or the rule `last`, with a time on each)",
}
