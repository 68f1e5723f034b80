"""Label rows checked against the plan: what is accepted, and what is refused with row and reason.

Nothing is repaired by guessing. A row is refused for the first of these reasons that holds:

``unknown_annotator``, ``annotator_not_named``, ``id_missing``, ``id_damaged_by_spreadsheet``,
``id_mistyped``, ``unknown_packet``, ``unknown_pair``, ``annotator_contradicted`` (the row names another
person than is declared for its file), ``several_people`` (a file declared for one person names several whom
nobody knows), ``changed_by_another`` (somebody else changed the annotation), ``begun_from_another`` (it was
begun from a model's prediction or from somebody else's annotation), ``not_assigned`` (the packet is another
person's), ``not_of_this_file`` (the packet is another person's than the file is named after),
``handed_over``, ``empty_annotation``, ``unknown_label``, ``unknown_reason_code``, ``reason_code_missing``,
``unknown_attribute``, ``overall_missing``, ``time_unreadable``, ``older_than_packet``, ``columns_shuffled``
(the texts beside the label are not this packet's), ``conflicting_labels`` (two different labels of one person
for one pair).

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
from judge_calibration.labelling.identity import (
    LETTERS,
    RoundKey,
    has_packet_form,
    is_packet_id,
    is_pseudonym,
)
from judge_calibration.labelling.label_rows import empty_rows
from judge_calibration.labelling.label_studio import read_export
from judge_calibration.labelling.packets import attribute_slots
from judge_calibration.labelling.refusals import ADDRESS, explain, people_named, shortened
from judge_calibration.labelling.rubric import REASON_TEXTS
from judge_calibration.labelling.spreadsheets import decode, read_label_sheet
from judge_calibration.options.annotation import AnnotationOptions, ImportOptions, LabelFileOptions
from judge_calibration.text import canonical_json, to_storable

NOT_WRONG = ("open", "skipped", "repeated", "superseded")
REFUSED_COLUMNS = [
    "file",
    "row",
    "annotator_id",
    "packet_id",
    "attribute",
    "label",
    "reason",
    "column",
    "found",
    "wanted",
]
"""Columns of the rows that are set aside.

``file`` and ``row`` say where, ``column`` the column (or the field of an export) that is to blame, ``found``
what stands there and ``wanted`` what would have been accepted; these three are null where nothing is wrong.
"""
LABEL_COLUMNS = [*schemas.LABELS.column_names, "slot", "kind", "round_id", "comment"]
UNNAMED = "?"

_EXCEL_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")
_EXCEL_DIGITS = 15
_ID_LETTERS = 16
_EXCEL_DATE = re.compile(
    r"\d{1,4}[-/.][A-Za-z]{3}([-/.]\d{2,4})?|[A-Za-z]{3}[-/. ]\d{2,4}|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*"
)
_NOT_ASCII_WORD = re.compile(r"[^A-Za-z0-9]+")
# So many equal letters and digits in a row are no accident.
_TELLING = 20


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
        Label rows; ``annotator`` and ``said_by`` are code names or pseudonyms; of somebody unknown, ``?``
        and a masked name: who that is, is not kept.

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
        # A pseudonym is no name: the packets' own table calls people so.
        own = folded in codes or is_pseudonym(folded)
        return known.get(folded) or (folded if own else f"{UNNAMED}{_masked(name)}")

    for column in ("annotator", "said_by", "changed_by"):
        mapping = {name: code_of(name) for name in rows[column].dropna().unique()}
        rows[column] = rows[column].map(mapping).astype("str")
    return rows


def _masked(name: str) -> str:
    """Return enough of an unknown name to find it in the file, and too little to keep it.

    Examples
    --------
    >>> _masked("annotator_9"), _masked("17"), _masked("Ann Example"), _masked("ann@example.org")
    ('annotator_9', '17', 'A... (11 characters)', 'a... (15 characters)')
    """
    text = name.strip()
    telling = re.fullmatch(r"\d{1,6}|[a-z]+[_-]\d{1,4}", text)
    return text if telling else f"{text[:1]}... ({len(text)} characters)"


def file_label(path: str) -> str:
    """Return how a file is called in an artifact: its path as given, of an absolute one only the name.

    Examples
    --------
    >>> file_label("labels/a.csv"), file_label("/home/somebody/a.csv")
    ('labels/a.csv', 'a.csv')
    """
    return Path(path).name if Path(path).is_absolute() else path


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
        digest = hashlib.sha256(Path(file.path).read_bytes()).hexdigest()
        records.append((file_label(file.path), file.made_by, digest, int(counts.get(file.path, 0))))
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
        elif pd.isna(pair_id) or pd.isna(code) or code.startswith(UNNAMED):
            continue
        else:
            stages = ("primary", "adjudication")
            packets = [key.packet_id(pair_id, _pseudonym(code, key), stage) for stage in stages]
        for packet in packets:
            before = out.get(packet)
            if packet not in out or (before is not None and (when is None or when < before)):
                out[packet] = when
    return out


def _pseudonym(name: str, key: RoundKey) -> str:
    """Return the pseudonym of somebody who is called by a code name or by the pseudonym itself."""
    return name if is_pseudonym(name) else key.pseudonym(name)


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
    # Letters in groups, but too few, with other dashes or with signs around: autocorrection, a cut cell, a
    # formula made of the id.
    bare = re.sub(r"[\W_]+", "", text)
    return 8 <= len(bare) <= _ID_LETTERS and all(letter in LETTERS for letter in bare)


def _pair_reason(text: object, pair_ids: set[str]) -> str:
    if text is None or pd.isna(text):  # type: ignore[call-overload]
        return "id_missing"
    shown = str(text).strip()
    damaged = _EXCEL_NUMBER.fullmatch(shown) or _EXCEL_DATE.fullmatch(shown) or shown.startswith("#")
    if damaged and (re.search(r"[eE.,/]", shown) or any(_lost_digits(shown, known) for known in pair_ids)):
        return "id_damaged_by_spreadsheet"
    return "id_damaged_by_spreadsheet" if _EXCEL_DATE.fullmatch(shown) else "unknown_pair"


def _lost_digits(shown: str, known: str) -> bool:
    if known == shown or not known.isdigit() or not shown.isdigit():
        return False
    # Spreadsheets keep fifteen digits of a number; what follows becomes zeros or noise.
    cut = len(known) == len(shown) > _EXCEL_DIGITS and known[:_EXCEL_DIGITS] == shown[:_EXCEL_DIGITS]
    return cut or known.lstrip("0") == shown.lstrip("0")


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
    people = {code: key.pseudonym(code) for code in options.codes}
    people |= {pseudonym: pseudonym for pseudonym in people.values()}
    frame["annotator_id"] = frame["annotator"].map(people)
    frame["said_id"] = frame["said_by"].map(people)
    frame["changed_id"] = frame["changed_by"].map(people)
    frame["id"] = frame["packet_id"].map(clean_id, na_action="ignore")
    frame = _with_key(frame, unblinding)
    frame = _with_file_people(frame, options, key)
    moments, unreadable = _times(frame["labelled_at"])
    frame["moment"] = moments
    frame["label_given"] = frame["label"]
    frame["label"] = frame["label"].str.strip().str.upper()
    codes = {text: _reason_codes(text) for text in frame["reason_codes"].unique()}
    frame["codes"] = frame["reason_codes"].map({text: found[0] for text, found in codes.items()})
    frame["moved_text"] = _moved_text(frame, packets)
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
    preferred = set(frame.loc[frame["reason"].isna() & frame["attribute"].isna(), "id"])
    asked = frame.index[frame["reason"].isna() & frame["attribute"].notna()]
    frame.loc[[row for row in asked if frame["id"][row] not in preferred], "reason"] = "overall_missing"
    labels = _label_frame(frame[frame["reason"].isna()], key.round_id)
    set_aside = _set_aside(frame[frame["reason"].notna()], options.labels)
    return Imported(schemas.check(labels, schemas.LABELS, "labels"), set_aside)


def _with_file_people(frame: pd.DataFrame, options: AnnotationOptions, key: RoundKey) -> pd.DataFrame:
    """Return the rows with whom their file is named after, and whether the packet is somebody else's."""
    named = {path: people_named(path, options.codes, key) for path in frame["file"].dropna().unique()}
    frame["named"] = frame["file"].map({path: ", ".join(codes) or None for path, codes in named.items()})
    frame["foreign"] = False
    for path, codes in named.items():
        if codes:
            own = {key.pseudonym(code) for code in codes}
            there = frame["file"] == path
            frame.loc[there, "foreign"] = frame.loc[there, "owner"].notna() & ~frame["owner"][there].isin(own)
    return frame


def _with_key(frame: pd.DataFrame, unblinding: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with what the key says of their packet (``owner``, ``pair``, ``order``, ...)."""
    # Labels by pair id find their packet by pair and annotator: a person holds one packet of a pair.
    held = unblinding.drop_duplicates(["pair_id", "annotator_id"], keep="last")
    by_pair = held.set_index(["pair_id", "annotator_id"])["packet_id"]
    asked = pd.MultiIndex.from_frame(frame[["pair_id", "annotator_id"]].fillna("").astype("str"))
    found = pd.Series(by_pair.reindex(asked).to_numpy(), index=frame.index)
    by_identity = frame["packet_id"].isna() & frame["pair_id"].notna()
    frame["by_identity"] = by_identity
    pairs = set(unblinding["pair_id"])
    frame["known_pair"] = [pair in pairs for pair in frame["pair_id"]]
    # Of a file without a single id the column would be one of numbers, which join with no text.
    frame["id"] = frame["id"].where(~by_identity, found).astype("str")
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
    stranger = frame["annotator"].notna() & frame["annotator_id"].isna()
    for place in frame.index[unresolved & reason.isna() & ~stranger]:
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
    mark(stranger, "unknown_annotator")
    declared = frame["declared"].notna() & frame["said_id"].notna()
    mark(declared & (frame["said_id"] != frame["annotator_id"]), "annotator_contradicted")
    mark(_several_unknown(frame), "several_people")
    # A label as somebody else left it is nobody's own judgement.
    own = frame["changed_id"].notna() & (frame["changed_id"] == frame["annotator_id"])
    mark(frame["changed_by"].notna() & ~own, "changed_by_another")
    mark(frame["begun_from"].notna(), "begun_from_another")
    # A packet is one person's, so a sheet need not say who filled it in; if it says so, it has to agree.
    mark(frame["annotator_id"].notna() & (frame["annotator_id"] != frame["owner"]), "not_assigned")
    mark(frame["foreign"], "not_of_this_file")
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
    mark(frame["moved_text"].notna(), "columns_shuffled")
    return reason


def _several_unknown(frame: pd.DataFrame) -> pd.Series:
    """Return the rows of strangers in a file that is declared for one person but names several people.

    One name that nobody knows may well be that person's (a number in Label Studio); two cannot be.
    """
    unknown = frame["declared"].notna() & frame["said_by"].notna() & frame["said_id"].isna()
    names = frame[frame["declared"].notna()].groupby("file")["said_by"].nunique()
    return unknown & (frame["file"].map(names).fillna(0) > 1)


def _is_asked(frame: pd.DataFrame, packets: pd.DataFrame) -> pd.Series:
    """Return which rows answer an attribute that their packet asks for."""
    asked: set[tuple[str, str]] = set()
    for slot in attribute_slots(packets):
        asked |= set(packets[["packet_id", slot]].dropna().itertuples(index=False, name=None))
    answered = zip(frame["id"], frame["attribute"], strict=True)
    return pd.Series([pair in asked for pair in answered], index=frame.index, dtype=bool)


def _moved_text(frame: pd.DataFrame, packets: pd.DataFrame) -> pd.Series:
    """Return the column whose text is not the packet's: columns were sorted apart, or rows moved."""
    issued = packets.set_index("packet_id")
    moved = pd.Series(None, index=frame.index, dtype="object")
    if not frame[["question", "answer_a", "answer_b"]].notna().to_numpy().any():
        return moved
    packet_ids = set(issued.index)
    known = pd.Series([packet in packet_ids for packet in frame["id"]], index=frame.index)
    for column in ("question", "answer_a", "answer_b"):
        rows = frame[column].notna() & known
        if rows.any():
            wanted = pd.Series(
                issued[column].reindex(frame.loc[rows, "id"]).to_numpy(), index=frame.index[rows]
            )
            came = frame.loc[rows, column]
            came = came[(came != wanted).to_numpy()].map(to_storable)
            unlike = came[(came != wanted[came.index]).to_numpy()]
            differs = _squeezed(unlike) != _squeezed(wanted[unlike.index])
            other = [
                place for place in differs[differs].index if not _same_but_damaged(came[place], wanted[place])
            ]
            moved[moved.index.isin(other) & moved.isna()] = column
    return moved


def _settle_repeats(frame: pd.DataFrame, rule: str) -> pd.DataFrame:
    """Mark repeated, superseded and conflicting labels of one packet (and attribute)."""
    fine = frame[frame["reason"].isna()]
    frame["other_labels"] = None
    several = fine[fine.duplicated(["id", "attribute"], keep=False)].copy()
    if several.empty:
        return frame
    several["cell"] = several.groupby(["id", "attribute"], dropna=False).ngroup()
    several["place_in_files"] = range(len(several))
    by_cell = several.groupby("cell")
    alike = by_cell["label"].transform("nunique") == 1
    # An order in time needs a time on each, and no two the same.
    ordered = by_cell["moment"].transform("nunique") == by_cell["moment"].transform("size")
    in_time = several.sort_values(["cell", "moment", "place_in_files"], na_position="first")
    last = several.index.isin(in_time[~in_time.duplicated("cell", keep="last")].index)
    frame.loc[several.index[alike & ~last], "reason"] = "repeated"
    superseding = ~alike & ordered & (rule == "last")
    frame.loc[several.index[superseding & ~last], "reason"] = "superseded"
    conflicting = several[~alike & ~superseding]
    frame.loc[conflicting.index, "reason"] = "conflicting_labels"
    where = conflicting["file"].map(file_label) + ", " + _place(conflicting)
    said = "'" + conflicting["label"].astype("str") + "' in " + where
    for _, rows in conflicting.groupby("cell"):
        for place in rows.index:
            others = rows.index[(rows["label"] != rows["label"][place]).to_numpy()]
            frame.loc[place, "other_labels"] = "; ".join(said[others[:3]])
    return frame


def _place(frame: pd.DataFrame) -> pd.Series:
    """Return where each row stands in its file, in words."""
    return frame["place"].where(frame["place"].notna(), "row " + frame["row"].astype("str"))


def _label_frame(accepted: pd.DataFrame, round_id: str) -> pd.DataFrame:
    # A label by shown answer is turned to candidate identity here, and nowhere else.
    turned = (accepted["order"] == "BA") & ~accepted["by_identity"]
    label = accepted["label"].where(~turned, accepted["label"].replace({"A": "B", "B": "A"}))
    comments = accepted["comment"].map(
        lambda text: to_storable(ADDRESS.sub("[address removed]", text)), na_action="ignore"
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


def join_imported(labels: pd.DataFrame, imported: pd.DataFrame) -> pd.DataFrame:
    """Return the labels of the round and, after them, those of other people's files.

    Parameters
    ----------
    labels : pandas.DataFrame
        Accepted labels of the own round (LABEL_COLUMNS).
    imported : pandas.DataFrame
        Labels of files, under pseudonyms, with their `kind`.

    Returns
    -------
    pandas.DataFrame
        LABEL_COLUMNS. Imported labels have no round (``round_id`` and ``slot`` are null).
    """
    if imported.empty:
        return labels
    kinds = dict.fromkeys(["kind", "round_id", "comment"], "str")
    others = imported.reindex(columns=LABEL_COLUMNS).astype(kinds | {"slot": "Int64"})
    others = schemas.conform(others, schemas.LABELS)
    joined = pd.concat([labels, others], ignore_index=True) if len(labels) else others.reset_index(drop=True)
    return schemas.check(joined, schemas.LABELS, "labels")


def of_round(labels: pd.DataFrame) -> pd.DataFrame:
    """Return the labels of the own round, without those of other people's files."""
    return labels[labels["round_id"].notna()]


def _set_aside(frame: pd.DataFrame, options: ImportOptions) -> pd.DataFrame:
    """Return the rows that are no labels, with what is wrong; refuse them all if that is declared."""
    frame = frame.reset_index(drop=True)
    wrong = ~frame["reason"].isin(NOT_WRONG)
    told = {place: explain(row) for place, row in enumerate(frame.to_dict("records")) if wrong[place]}
    places = _place(frame)
    if told and options.on_problem == "refuse":
        problems = [
            Problem(
                f"{frame['file'][place]}, {places[place]}, column {column}", f"{found} ({reason})", wanted
            )
            for place, (column, found, wanted) in told.items()
            for reason in [frame["reason"][place]]
        ]
        raise SourceError(
            f"{len(problems)} label row{'s' * (len(problems) > 1)} cannot be accepted; nothing was imported.",
            problems,
            "correct the rows, or declare annotation.labels.on_problem: set_aside to import the others",
        )
    frame["file"] = frame["file"].map(file_label, na_action="ignore")
    frame["label"] = frame["label"].map(lambda text: shortened(text)[1:-1], na_action="ignore")
    frame["packet_id"] = frame["packet_id"].map(lambda text: shortened(text)[1:-1], na_action="ignore")
    for number, column in enumerate(("column", "found", "wanted")):
        frame[column] = [told[place][number] if place in told else None for place in range(len(frame))]
    return frame[REFUSED_COLUMNS].astype(dict.fromkeys([c for c in REFUSED_COLUMNS if c != "row"], "str"))
