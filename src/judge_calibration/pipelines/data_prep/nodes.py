"""The steps from files to `pairs`, `judged_pairs` and `logged_verdicts`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import pandas as pd

from judge_calibration.adapt.split import apply_frozen_split, assign_split
from judge_calibration.bank import BankError, build_pairs, check_design, load_bank
from judge_calibration.errors import Problem, SourceError, TableError
from judge_calibration.labelling.identity import RoundKey
from judge_calibration.options.data_prep import DataPrepOptions
from judge_calibration.schemas import LABELS, PAIRS, check, conform, empty
from judge_calibration.sources import SourceFile, read_labels, read_logs, read_pairs, read_split
from judge_calibration.sources.draw import draw_pairs

Result = TypeVar("Result")
_CHECK_COLUMNS = ["check", "domain", "difficulty", "manipulation", "found", "low", "high", "passed"]


class ImportedFiles(NamedTuple):
    """What `import_files` gives, in the order of the node's outputs; labels still under people's names."""

    imported_pairs: pd.DataFrame
    logged_pairs: pd.DataFrame
    logged_verdicts: pd.DataFrame
    imported_labels: pd.DataFrame
    source_files: pd.DataFrame


def build_bank(texts: Mapping[str, str], options: DataPrepOptions) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make the pairs of the authored bank and check its design.

    Parameters
    ----------
    texts : mapping
        The bank's files: text by path below its folder.
    options : DataPrepOptions
        `use_bank`, `private_sentinel`.

    Returns
    -------
    bank_pairs : pandas.DataFrame
        The table `pairs`; without a row where the bank is not used.
    bank_design_check : pandas.DataFrame
        What was checked and found: check, domain, difficulty, manipulation, found, low, high, passed.
    """
    if not options.use_bank:
        return empty(PAIRS), pd.DataFrame(columns=_CHECK_COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        # The bank is read from the texts that the catalog gave, so that lineage and checksum cover it.
        for name, text in texts.items():
            path = Path(folder, "pair_bank", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8"))
        try:
            bank = load_bank(Path(folder, "pair_bank"), options.private_sentinel)
        except BankError as error:
            step = "correct the files named above, then run: python -m judge_calibration.bank FOLDER"
            raise BankError(error.message, error.problems, step) from error
    pairs = build_pairs(bank)
    return pairs, check_design(bank, pairs).table.reset_index(drop=True)


def import_files(options: DataPrepOptions) -> ImportedFiles:
    """Read every file of pairs, every log and every file of labels that the parameters name, or none.

    Raises
    ------
    SourceError
        With the problems of all files together.
    """
    problems: list[Problem] = []
    steps: list[str] = []
    read = _collect(read_pairs, options.pair_files, problems, steps)
    logs = _collect(read_logs, options.log_files, problems, steps)
    labels = _collect(read_labels, options.label_files, problems, steps)
    if read is None or logs is None or labels is None:
        raise SourceError("Nothing was imported: files cannot be read as described.", problems, steps[0])
    tables = (read.source_files, logs.source_files, labels.source_files)
    files = [frame for frame in tables if len(frame)]
    table = pd.concat(files, ignore_index=True) if files else read.source_files
    return ImportedFiles(read.pairs, logs.pairs, logs.verdicts, labels.labels, table)


def join_pairs(
    bank_pairs: pd.DataFrame,
    imported_pairs: pd.DataFrame,
    logged_pairs: pd.DataFrame,
    options: DataPrepOptions,
) -> pd.DataFrame:
    """Join the pairs of the bank, of files and of logs, and set their split.

    A pair of a log that the bank or a file describes too, under the same id, is taken from there: logs
    mostly lack the texts. Where both give a reference label, it has to be the same.

    Returns
    -------
    pandas.DataFrame
        The table `pairs`; about `train_share` of each source's clusters are in split `train`. The sides of
        a frozen split are kept; clusters that it does not name are assigned by hash.

    Raises
    ------
    TableError
        Where an id names two pairs, or a log and a file contradict each other.
    """
    known = pd.concat([frame for frame in (bank_pairs, imported_pairs) if len(frame)] or [bank_pairs])
    _check_labels(known, logged_pairs)
    new = logged_pairs[~logged_pairs["pair_id"].isin(known["pair_id"])]
    parts = [frame for frame in (known, new) if len(frame)]
    pairs = conform(pd.concat(parts or [known], ignore_index=True), PAIRS)
    if options.frozen_split is None:
        pairs["split"] = assign_split(pairs, options.train_share)
    else:
        pairs["split"] = apply_frozen_split(pairs, read_split(options.frozen_split))
    return check(pairs, PAIRS)


def hide_annotators(labels_as_read: pd.DataFrame, pairs: pd.DataFrame, secret: str) -> pd.DataFrame:
    """Put pseudonyms in place of the names in other people's label files.

    Parameters
    ----------
    labels_as_read : pandas.DataFrame
        Labels under whatever names their files have; kept in memory only.
    pairs : pandas.DataFrame
        The pairs that the labels are about.
    secret : str
        Keys the pseudonyms; empty: the published practice key.

    Returns
    -------
    pandas.DataFrame
        The same labels with the column `kind`. One name in two sources is two people.

    Raises
    ------
    TableError
        Where labels are about pairs that nobody described.
    """
    labels = labels_as_read
    if "kind" not in labels.columns:
        labels = labels.assign(kind=pd.Series(dtype="str"))
    source = labels["pair_id"].map(pairs.set_index("pair_id")["source"])
    unknown = labels.loc[source.isna(), "pair_id"].drop_duplicates()
    if len(unknown):
        raise TableError(
            f"Labels are about {len(unknown)} pairs that no file, log or bank describes.",
            [Problem("data_prep.label_files, column pair_id", repr(u), "a pair of `pairs`") for u in unknown],
            "name the file of the pairs under data_prep.pair_files too, or take these labels out",
        )
    key = RoundKey(secret or None, "imported")
    people = {
        who: key.pseudonym("\n".join(who)) for who in set(zip(source, labels["annotator_id"], strict=True))
    }
    hidden = [people[who] for who in zip(source, labels["annotator_id"], strict=True)]
    return check(labels.assign(annotator_id=pd.Series(hidden, index=labels.index, dtype="str")), LABELS)


def draw_judged_pairs(pairs: pd.DataFrame, options: DataPrepOptions) -> pd.DataFrame:
    """Draw the pairs that the judges are asked about: by hash, spread over the strata, never by length."""
    draw = options.judged
    wanted = pairs
    if draw.sources:
        wanted = wanted[wanted["source"].isin(draw.sources)]
    if draw.splits:
        wanted = wanted[wanted["split"].isin(draw.splits)]
    if draw.manipulations:
        kinds = wanted["manipulation"]
        wanted = wanted[kinds.isna() | kinds.isin(draw.manipulations)]
    if draw.only_sentinel:
        wanted = wanted[wanted["sentinel"].astype(bool)]
    return draw_pairs(wanted, draw.size, draw.salt)


def _collect(
    read: Callable[[tuple[SourceFile, ...]], Result],
    files: tuple[SourceFile, ...],
    problems: list[Problem],
    steps: list[str],
) -> Result | None:
    try:
        return read(files)
    except SourceError as error:
        problems.extend(error.problems)
        steps.append(error.next_step)
        return None


def _check_labels(known: pd.DataFrame, logged: pd.DataFrame) -> None:
    both = known.merge(logged, on="pair_id", suffixes=("", "_logged"))
    labelled = both[both["reference_label"].notna() & both["reference_label_logged"].notna()]
    wrong = labelled[labelled["reference_label"] != labelled["reference_label_logged"]]
    if len(wrong):
        raise TableError(
            "A log and a file of pairs give the same pair different reference labels.",
            [
                Problem(f"pair {pair_id}", f"{logged} in the log", str(label))
                for pair_id, label, logged in zip(
                    wrong["pair_id"], wrong["reference_label"], wrong["reference_label_logged"], strict=True
                )
            ],
            "correct one of them, or leave the log's label out: `set: {fields: {reference_label: null}}`",
        )
