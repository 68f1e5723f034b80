"""The files of a round: for each annotator a spreadsheet, a workbook and Label Studio's tasks."""

from __future__ import annotations

import json

import pandas as pd

from judge_calibration.labelling.label_studio import labelling_config, tasks
from judge_calibration.labelling.packets import SIMULATED, attribute_slots
from judge_calibration.labelling.spreadsheets import packets_as_csv, packets_as_xlsx

_READ_ME = """{mark}Round of labelling
===================

One folder holds what the annotators label first, `adjudication` what the third ones settle. Give each person
only the files under his or her own name, in one of three forms:

  <annotator>.csv         a spreadsheet; fill in the column label
  <annotator>.xlsx        the same as a workbook, with a drop-down and the rubric
  <annotator>.tasks.json  Label Studio: one project a person, with label_studio.xml as its labelling interface
{study}
Files: {files}
"""
_STUDY = """
The folder `study` holds pairs of which attributes are asked after the overall preference; its interface in
Label Studio is label_studio_study.xml.
"""


def round_files(packets: pd.DataFrame, queue: pd.DataFrame) -> dict[str, str | bytes]:
    """Return every file of the round by its relative path.

    Parameters
    ----------
    packets : pandas.DataFrame
        Primary packets (packets.PACKET_COLUMNS). Those that ask for attributes, where others do not, come in
        files of their own.
    queue : pandas.DataFrame
        Packets that wait for an adjudicator.

    Returns
    -------
    dict of str to str or bytes
        ``primary/<annotator>.csv`` and so on, ``study/...``, ``adjudication/...``, ``label_studio.xml``,
        ``README.txt``.
    """
    slots = attribute_slots(packets)
    asking = packets[slots].notna().any(axis=1) if slots else pd.Series(False, index=packets.index)
    mixed = bool(asking.any() and not asking.all())
    plain = [name for name in packets.columns if not name.startswith("attribute_")]
    folders = [("primary", packets[~asking][plain] if mixed else packets)]
    if mixed:
        folders.append(("study", packets[asking]))
    simulated = "mark" in packets.columns
    out: dict[str, str | bytes] = {}
    for folder, frame in (*folders, ("adjudication", queue)):
        for annotator, own in frame.groupby("annotator_id", sort=True):
            stem = f"{folder}/{annotator}"
            out[f"{stem}.csv"] = packets_as_csv(own)
            out[f"{stem}.xlsx"] = packets_as_xlsx(own)
            out[f"{stem}.tasks.json"] = json.dumps(tasks(own), ensure_ascii=False, indent=1) + "\n"
    out["label_studio.xml"] = labelling_config(0 if mixed else len(slots), simulated)
    if mixed:
        out["label_studio_study.xml"] = labelling_config(len(slots), simulated)
    mark = f"{SIMULATED}\n\n" if simulated else ""
    out["README.txt"] = _READ_ME.format(mark=mark, study=_STUDY if mixed else "", files=len(out))
    return out
