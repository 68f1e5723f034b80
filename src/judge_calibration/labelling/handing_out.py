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

Files: {files}
"""


def round_files(packets: pd.DataFrame, queue: pd.DataFrame) -> dict[str, str | bytes]:
    """Return every file of the round by its relative path.

    Parameters
    ----------
    packets : pandas.DataFrame
        Primary packets (packets.PACKET_COLUMNS).
    queue : pandas.DataFrame
        Packets that wait for an adjudicator.

    Returns
    -------
    dict of str to str or bytes
        ``primary/<annotator>.csv`` and so on, ``adjudication/...``, ``label_studio.xml``, ``README.txt``.
    """
    simulated = "mark" in packets.columns
    out: dict[str, str | bytes] = {}
    for folder, frame in (("primary", packets), ("adjudication", queue)):
        for annotator, own in frame.groupby("annotator_id", sort=True):
            stem = f"{folder}/{annotator}"
            out[f"{stem}.csv"] = packets_as_csv(own)
            out[f"{stem}.xlsx"] = packets_as_xlsx(own)
            out[f"{stem}.tasks.json"] = json.dumps(tasks(own), ensure_ascii=False, indent=1) + "\n"
    out["label_studio.xml"] = labelling_config(len(attribute_slots(packets)), simulated)
    mark = f"{SIMULATED}\n\n" if simulated else ""
    out["README.txt"] = _READ_ME.format(mark=mark, files=len(out))
    return out
