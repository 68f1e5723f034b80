"""A simulated panel with planted skill, so that every table can be seen filled without a person.

Nothing of it is a measurement: every label has kind ``simulated`` and every artifact carries the word
SIMULATED.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import timedelta

import pandas as pd

from judge_calibration.labelling.identity import RoundKey
from judge_calibration.labelling.label_rows import empty_rows, rows_frame
from judge_calibration.labelling.packets import attribute_slots
from judge_calibration.labelling.rubric import REASON_TEXTS
from judge_calibration.options.annotation import AnnotationOptions, SimulatedAnnotatorOptions, parse_time

_REASON_OF = {
    "citation": "citation_support",
    "correctness": "correctness",
    "polished_but_wrong": "correctness",
    "injection": "instruction_following",
    "length": "completeness",
    "style": "style",
}
FILE_NAME = "SIMULATED"


def _expected(pair: Mapping[Hashable, object]) -> str:
    for column in ("expected", "reference_label"):
        value = pair.get(column)
        if isinstance(value, str):
            return value
    return "TIE"


def _shown(label: str, order: str) -> str:
    return {"A": "B", "B": "A"}.get(label, label) if order == "BA" else label


def _say(
    person: SimulatedAnnotatorOptions, pair: Mapping[Hashable, object], order: str, done: int, draw: RoundKey
) -> str:
    """Return the label, by the answers as shown, that the simulated person gives."""

    def chance(of: str) -> float:
        return draw.uniform("simulated", of, person.code, str(pair["pair_id"]))

    if chance("abstains") < person.abstains:
        return "ABSTAIN"
    if chance("first") < person.first_bias:
        return "A"
    skill = min(max(person.skill + person.drift_per_100 * done / 100, 0.0), 1.0)
    truth = _expected(pair)
    # A pair that is hard for one is hard for all: half of the luck is the pair's own.
    hardness = draw.uniform("simulated", "pair", str(pair["pair_id"]))
    if (chance("skill") + hardness) / 2 < _threshold(skill):
        return _shown(truth, order)
    others = [label for label in ("A", "B", "TIE") if label != truth]
    return _shown(others[int(chance("slip") * len(others))], order)


def _threshold(skill: float) -> float:
    """Return t such that the mean of two independent uniform numbers is below t with probability `skill`."""
    return (skill / 2) ** 0.5 if skill <= 0.5 else 1 - ((1 - skill) / 2) ** 0.5


def simulate_rows(
    pairs: pd.DataFrame,
    unblinding: pd.DataFrame,
    options: AnnotationOptions,
    key: RoundKey,
    questions: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the label rows that the simulated panel gives; none where the simulation is off.

    Parameters
    ----------
    pairs, unblinding : pandas.DataFrame
        Pairs and the round's key. Only here may a "person" look at the expected label.
    options : AnnotationOptions
        The panel's planted skill and habits, how much of the round is done, its start.
    key : RoundKey
        Gives pseudonyms.
    questions : pandas.DataFrame, optional
        Attributes that are asked of each pair (study.ask_attributes).

    Returns
    -------
    pandas.DataFrame
        Label rows with made_by ``simulated``; adjudications only where the two primaries differ.
    """
    simulation = options.simulation
    if not simulation.enabled:
        return empty_rows()
    # The draws have a key of their own: a secret must not change what the demonstration shows.
    draw = RoundKey(f"simulated panel, seed {simulation.seed:>12}", options.round_id)
    people = {key.pseudonym(person.code): person for person in simulation.annotators}
    by_id = pairs.set_index("pair_id", drop=False)[
        ["pair_id", "expected", "reference_label", "manipulation"]
    ].to_dict("index")
    attributes: dict[str, list[str]] = {}
    if questions is not None and len(questions):
        named_by_pair = questions.set_index("pair_id")[attribute_slots(questions)]
        attributes = {
            str(pair): list(row)
            for pair, row in zip(named_by_pair.index, named_by_pair.to_numpy(), strict=True)
        }
    held = unblinding[unblinding["status"].isin(["issued", "reserved"])].sort_values(
        ["annotator_id", "sequence"]
    )
    records: list[dict[str, object]] = []
    said: dict[str, set[str]] = {}
    start = parse_time(options.issued_at)
    for stage in ("primary", "adjudication"):
        for annotator, rows in held[held["stage"] == stage].groupby("annotator_id", sort=True):
            person = people.get(str(annotator))
            if person is None:
                continue
            if stage == "adjudication":
                rows = rows[[len(said.get(pair, set())) > 1 for pair in rows["pair_id"]]]
            share = simulation.share_done
            if stage == "adjudication":
                share *= simulation.share_adjudicated
            for done, row in enumerate(rows.head(round(len(rows) * share)).to_dict("records")):
                pair = by_id[row["pair_id"]]
                label = _say(person, pair, row["order"], done, draw)
                identity = _shown(label, row["order"])
                if stage == "primary":
                    said.setdefault(row["pair_id"], set()).add(identity)
                days = 1 if stage == "primary" else 30
                moment = start + timedelta(days=days, minutes=simulation.minutes_per_pair * done)
                records.append(
                    {
                        "file": FILE_NAME,
                        "row": len(records) + 1,
                        "made_by": "simulated",
                        "annotator": person.code,
                        "packet_id": row["packet_id"],
                        "label": label,
                        "reason_codes": _reason(pair, label, draw, person.code),
                        "labelled_at": moment.isoformat(),
                        "state": "completed",
                    }
                )
                named = records[-1] | {"pair_id": row["pair_id"]}
                asked = attributes.get(row["pair_id"], [])
                records += _attribute_records(named, asked, row["order"], draw, person.skill)
    return rows_frame(records)


def _reason(pair: Mapping[Hashable, object], label: str, draw: RoundKey, code: str) -> str | None:
    if label not in ("A", "B"):
        return None
    if draw.uniform("simulated", "reason", code, str(pair["pair_id"])) < 0.75:
        return _REASON_OF.get(str(pair["manipulation"]), "clarity")
    names = list(REASON_TEXTS)
    return names[int(draw.uniform("simulated", "other reason", code, str(pair["pair_id"])) * len(names))]


def _attribute_records(
    record: dict[str, object], asked: list[str], order: str, draw: RoundKey, skill: float
) -> list[dict[str, object]]:
    """Return answers about attributes: each pair leans one way on each; people see it by their skill."""
    out = []
    for attribute in asked:
        pair_id, code = str(record["pair_id"]), str(record["annotator"])
        truth = "A" if draw.uniform("simulated", "leaning", attribute, pair_id) < 0.5 else "B"
        seen = draw.uniform("simulated", "attribute", attribute, code, pair_id) < skill
        label = truth if seen else ("B" if truth == "A" else "A")
        out.append(record | {"attribute": attribute, "label": _shown(label, order), "reason_codes": None})
    return [{**one, "pair_id": None} for one in out]
