"""The audit queue of a decision: a table, a page with raw requests and replies, and the pairs blinded."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from judge_calibration import schemas
from judge_calibration.options.reporting import AuditOptions
from judge_calibration.report.audit_page import Before, audit_page
from judge_calibration.runs.manifest import Run
from judge_calibration.runs.results import path_in, read_json, read_table
from judge_calibration.session.decisions import FOLDER, keep_page, keep_tables

SECRET_VARIABLE = "JUDGE_CALIBRATION_ANNOTATION_SECRET"  # noqa: S105  # its name, no secret
"""Environment variable with the secret that keys packet ids and pseudonyms; without it the practice key."""


class Asked(NamedTuple):
    """What the audit page shows of a run beside its verdicts; all empty for verdicts from logs."""

    calls: pd.DataFrame
    answers: pd.DataFrame


def asked_in(run: Run, root: Path) -> Asked:
    """Return the calls and answers of a run."""
    tables = [
        read_table(run, name, root)
        if path_in(run, name, root) is not None
        else schemas.empty(schemas.TABLES[name])
        for name in ("calls", "answers")
    ]
    return Asked(*tables)


def labels_in(run: Run, root: Path) -> pd.DataFrame:
    """Return the labels that a run made or read; none is no fault."""
    there = path_in(run, "labels", root) is not None
    return read_table(run, "labels", root) if there else schemas.empty(schemas.LABELS)


def is_simulated(run: Run, root: Path) -> bool:
    """Say whether a judge of the run is a script that stands for a model."""
    from judge_calibration.report.full_report import simulated_judges

    return simulated_judges(read_json(run, "instruments", root))


def keep_audit(
    data: Path,
    name: str,
    version: str,
    queue: pd.DataFrame,
    pairs: pd.DataFrame,
    verdicts: pd.DataFrame,
    asked: Asked,
    labels: pd.DataFrame,
    options: AuditOptions,
    title: str,
    simulated: bool = False,
    before: Before | None = None,
) -> dict[str, Path]:
    """Write the queue of a decision as the pipeline `reporting` writes that of a run.

    Parameters
    ----------
    data : pathlib.Path
        The data folder.
    name, version : str
        Beginning of every artifact's name (``gate_audit``), and the decision's id.
    queue : pandas.DataFrame
        metrics.audit_queue.AUDIT_COLUMNS.
    pairs, verdicts, labels : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`, for the page and the packets.
    asked : Asked
        Raw requests and replies.
    options : AuditOptions
    title : str
        Of the page.
    simulated : bool
        Marks everything SIMULATED.
    before : Before, optional
        What the same judgments were in an earlier run.

    Returns
    -------
    dict of str to pathlib.Path
        ``<name>`` (table and CSV) and ``<name>_page`` always; ``<name>_key`` (un-blinds) and
        ``<name>_packets`` (a folder to hand out) where a queued pair has its texts.
    """
    from judge_calibration.datasets import Files
    from judge_calibration.datasets.secret import Secret
    from judge_calibration.labelling.identity import RoundKey
    from judge_calibration.report.audit_packets import audit_files, audit_key

    page = audit_page(
        queue, verdicts, pairs, *asked, labels, options.judgments_per_item, simulated, title, name, before
    )
    written = keep_tables(data, version, {name: queue}, simulated=simulated)
    written[f"{name}_page"] = keep_page(data, name, version, page)
    key = audit_key(queue, pairs, RoundKey(Secret(variable=SECRET_VARIABLE).load() or None, name))
    if key.empty:
        return written
    # The key is for the analysis alone: no CSV that is opened by mistake.
    written |= keep_tables(data, version, {f"{name}_key": key}, csv=False, simulated=simulated)
    folder = data / FOLDER / f"{name}_packets" / version / f"{name}_packets"
    packets: dict[str, Any] = dict(audit_files(pairs, key, simulated))
    Files(filepath=folder.as_posix()).save(packets)
    written[f"{name}_packets"] = folder
    return written
