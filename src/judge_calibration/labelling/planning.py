"""Who labels which pair: two primaries and a different adjudicator, balanced, competent, re-assignable.

The plan names pairs and annotators; the key names packets. Neither holds both the packets' order and the
pairs in a way that an annotator could use: the key is the one artifact that un-blinds.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import pandas as pd

from judge_calibration.errors import Problem, SourceError, TableError
from judge_calibration.labelling.drawing import FRAME_COLUMNS, Draw, draw_pairs, frame_of_draw
from judge_calibration.labelling.identity import RoundKey
from judge_calibration.options.annotation import (
    AnnotationOptions,
    AnnotatorOptions,
    HandOverOptions,
    parse_time,
)

PLAN_COLUMNS = [
    "round_id",
    "pair_id",
    "base_id",
    "stratum",
    "inclusion_probability",
    "stage",
    "slot",
    "annotator_id",
    "status",
    "replaces",
    "issued_at",
    "reason",
    "key_kind",
    "content_hash",
]
"""Columns of the plan.

``stage`` primary or adjudication; ``slot`` 1, 2, ... within the pair; ``status``: ``issued`` (the packet
is out), ``reserved`` (an adjudicator who is asked only if the primaries differ), ``handed_over`` (taken
back), ``unassigned`` (nobody can take it: see ``reason``); ``replaces`` whose packet it was;
``content_hash`` that of the pair when its packet was made.
"""

KEY_COLUMNS = [
    "packet_id",
    "round_id",
    "pair_id",
    "annotator_id",
    "stage",
    "slot",
    "order",
    "sequence",
    "status",
    "issued_at",
    "handed_over_at",
]
"""Columns of the un-blinding key; ``order`` AB or BA: which candidate is shown as answer A."""


STUDY = "study"
"""Stratum of pairs that are in the plan because a study chose them."""


class RoundPlan(NamedTuple):
    """A planned round.

    Attributes
    ----------
    plan : pandas.DataFrame
        One row a pair and slot (PLAN_COLUMNS); a handed-over slot has a row for each holder.
    key : pandas.DataFrame
        One row a packet (KEY_COLUMNS).
    design : pandas.DataFrame
        What each critical slice wanted and got (drawing.DESIGN_COLUMNS).
    """

    plan: pd.DataFrame
    key: pd.DataFrame
    design: pd.DataFrame


@dataclass
class _Slot:
    pair_id: str
    base_id: str
    slice: str
    domain: str | None
    language: str | None
    stakes: str
    stratum: str
    probability: float
    content_hash: str
    stage: str
    number: int
    code: str | None = None
    status: str = "issued"
    replaces: str | None = None
    issued_at: str = ""
    handed_over_at: str | None = None
    reason: str | None = None
    batch: int = 0


@dataclass
class _Load:
    """What has been given to whom so far."""

    total: Counter[str] = field(default_factory=Counter)
    stage: Counter[tuple[str, str]] = field(default_factory=Counter)
    slice: Counter[tuple[str, str]] = field(default_factory=Counter)
    base: Counter[tuple[str, str]] = field(default_factory=Counter)
    together: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, slot: _Slot, code: str, others: set[str], sign: int = 1) -> None:
        self.total[code] += sign
        self.stage[code, slot.stage] += sign
        self.slice[code, slot.slice] += sign
        self.base[code, slot.base_id] += sign
        for other in others:
            self.together[min(code, other), max(code, other)] += sign


def _may_label(annotator: AnnotatorOptions, slot: _Slot) -> bool:
    if not (annotator.labels if slot.stage == "primary" else annotator.adjudicates):
        return False
    if annotator.domains is not None and slot.domain not in annotator.domains:
        return False
    if (
        annotator.languages is not None
        and slot.language is not None
        and slot.language not in annotator.languages
    ):
        return False
    return slot.stakes in annotator.stakes


def _choose(
    slot: _Slot,
    holders: set[str],
    annotators: dict[str, AnnotatorOptions],
    lots: dict[str, int],
    load: _Load,
    key: RoundKey,
) -> str | None:
    """Return the annotator with the least to do of those who may label this slot, or None."""
    best: tuple[tuple[float, int], str] | None = None
    turn = int.from_bytes(key.digest("assign", slot.pair_id, slot.stage, str(slot.number))[:8], "big")
    for code, annotator in annotators.items():
        if code in holders or not _may_label(annotator, slot):
            continue
        if annotator.capacity is not None and load.total[code] >= annotator.capacity:
            continue
        # A person who sees several pairs of one base task comes to know the answer that they share, so
        # repeats of the base task weigh most; then the load in this role, and in this slice.
        cost = (
            load.stage[code, slot.stage]
            + load.slice[code, slot.slice]
            + 3.0 * load.base[code, slot.base_id]
            + 0.25 * sum(load.together[min(code, other), max(code, other)] for other in holders)
        )
        # One hash a slot, mixed with one a person: as good as a hash for both, and faster.
        tie_break = ((turn ^ lots[code]) * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        if best is None or (cost, tie_break) < best[0]:
            best = ((cost, tie_break), code)
    return best[1] if best else None


def _text_or_none(value: object) -> str | None:
    return None if value is None or pd.isna(value) else str(value)  # type: ignore[call-overload]


def _first_slots(drawn: pd.DataFrame, options: AnnotationOptions, key: RoundKey) -> list[_Slot]:
    slots = []
    for row in drawn.to_dict("records"):
        for number in range(1, options.primaries + (1 if options.study.alone else 2)):
            stage = "primary" if number <= options.primaries else "adjudication"
            slots.append(
                _Slot(
                    pair_id=row["pair_id"],
                    base_id=row["base_id"],
                    slice=_text_or_none(row["manipulation"]) or row["stratum"],
                    domain=_text_or_none(row["domain"]),
                    language=_text_or_none(row["language"]),
                    stakes=row["stakes"],
                    stratum=row["stratum"],
                    probability=row["inclusion_probability"],
                    content_hash=row["content_hash"],
                    stage=stage,
                    number=number,
                    issued_at=parse_time(options.issued_at).isoformat(),
                    status="issued" if stage == "primary" else "reserved",
                )
            )
    slots.sort(key=lambda slot: (slot.number, key.uniform("turn", slot.pair_id)))
    return slots


def _issued_slots(
    issued: pd.DataFrame, pairs: pd.DataFrame, options: AnnotationOptions, key: RoundKey
) -> list[_Slot]:
    """Return the slots as they were first handed out, with the same people."""
    first = issued[issued["replaces"].isna()]
    hashes = pairs.set_index("pair_id")["content_hash"]
    people = {key.pseudonym(code): code for code in options.codes}
    problems = []
    for pair_id, content in first.drop_duplicates("pair_id")[["pair_id", "content_hash"]].itertuples(
        index=False
    ):
        if hashes.get(pair_id) != content:
            found = "other texts than were handed out" if pair_id in hashes else "no such pair any more"
            problems.append(Problem(f"pair {pair_id}", found, "the pair as its packet shows it"))
    for pseudonym in sorted(set(first["annotator_id"].dropna()) - set(people)):
        problems.append(
            Problem(f"annotator {pseudonym}", "nobody of annotation.annotators", "the same code names")
        )
    if problems or set(first["round_id"]) - {key.round_id}:
        raise TableError(
            f"The issued plan does not fit the round '{key.round_id}': {len(problems)} problems.",
            problems,
            "set the secret, round_id, annotators and pairs that the packets were made with, or plan anew "
            "(annotation.issued_plan: null) and hand out new packets",
        )
    chosen = pairs[pairs["pair_id"].isin(first["pair_id"])].reset_index(drop=True)
    facts = first.drop_duplicates("pair_id").set_index("pair_id")
    chosen["stratum"] = chosen["pair_id"].map(facts["stratum"])
    chosen["inclusion_probability"] = chosen["pair_id"].map(facts["inclusion_probability"])
    held = {(row["pair_id"], int(row["slot"])): row for row in first.to_dict("records")}
    slots = [s for s in _first_slots(chosen, options, key) if (s.pair_id, s.number) in held]
    for slot in slots:
        row = held[slot.pair_id, slot.number]
        slot.issued_at = row["issued_at"]
        if pd.isna(row["annotator_id"]):
            slot.status, slot.reason = "unassigned", row["reason"]
        else:
            slot.code = people[row["annotator_id"]]
    return slots


def _fill(
    slots: list[_Slot], taken: list[_Slot], options: AnnotationOptions, key: RoundKey, gone: set[str]
) -> None:
    annotators = {a.code: a for a in options.annotators if a.code not in gone}
    lots = {code: int.from_bytes(key.digest("lot", code)[:8], "big") for code in annotators}
    load = _Load()
    holders: dict[str, set[str]] = defaultdict(set)
    for slot in taken:
        if slot.code is None:
            continue
        # Whoever has seen a pair once never gets it again, even if the packet was handed over unlabelled.
        holders[slot.pair_id].add(slot.code)
        if slot.status != "handed_over":
            load.add(slot, slot.code, holders[slot.pair_id] - {slot.code})
    for slot in slots:
        code = _choose(slot, holders[slot.pair_id], annotators, lots, load, key)
        if code is None:
            slot.status, slot.reason = "unassigned", "no_competent_annotator_free"
            continue
        slot.code = code
        load.add(slot, code, holders[slot.pair_id])
        holders[slot.pair_id].add(code)


def _hand_over(
    slots: list[_Slot],
    hand_over: HandOverOptions,
    given: dict[str, datetime | None],
    batch: int,
    options: AnnotationOptions,
    key: RoundKey,
    gone: set[str],
) -> list[_Slot]:
    """Take the unlabelled slots of one annotator back; return their successors, already assigned."""
    moment = parse_time(hand_over.at)

    def has_label(slot: _Slot) -> bool:
        packet = key.packet_id(slot.pair_id, key.pseudonym(slot.code or ""), slot.stage)
        if packet not in given:
            return False
        when = given[packet]
        return when is None or when <= moment

    held = [s for s in slots if s.code == hand_over.annotator and s.status in ("issued", "reserved")]
    held = [s for s in held if not has_label(s)]
    held.sort(key=lambda slot: key.uniform("hand-over", slot.pair_id, slot.stage))
    taken_back = held if hand_over.count is None else held[: hand_over.count]
    successors = []
    for slot in taken_back:
        successor = _Slot(**{**slot.__dict__})
        successor.code, successor.replaces, successor.batch = None, hand_over.annotator, batch
        successor.issued_at = moment.isoformat()
        slot.status, slot.handed_over_at = "handed_over", moment.isoformat()
        successors.append(successor)
    _fill(successors, slots, options, key, gone)
    return successors


def _orders(slots: list[_Slot], key: RoundKey) -> list[str]:
    """Return AB or BA for each slot: blocks of two within annotator and slice, a coin for each block."""
    groups: dict[tuple[str | None, str, str, int], list[int]] = defaultdict(list)
    for place, slot in enumerate(slots):
        groups[slot.code, slot.slice, slot.stage, slot.batch].append(place)
    orders = [""] * len(slots)
    for (code, slice_, stage, batch), places in groups.items():
        places.sort(key=lambda place: key.uniform("order", slots[place].pair_id, str(code), stage))
        for turn in range(0, len(places), 2):
            coin = key.uniform("coin", str(code), slice_, stage, str(batch), str(turn)) < 0.5
            for step, place in enumerate(places[turn : turn + 2]):
                orders[place] = "AB" if coin == (step == 0) else "BA"
    return orders


def _sequences(slots: list[_Slot], key: RoundKey) -> list[int]:
    """Return each slot's place in its annotator's list: random, pairs of one base task far apart."""
    lists: dict[tuple[str | None, str, int], list[int]] = defaultdict(list)
    for place, slot in enumerate(slots):
        lists[slot.code, slot.stage, slot.batch].append(place)
    sequence = [0] * len(slots)
    for (code, stage, batch), places in sorted(lists.items(), key=lambda item: (str(item[0][0]), item[0][2])):
        bases: dict[str, list[int]] = defaultdict(list)
        for place in places:
            bases[slots[place].base_id].append(place)
        position = {}
        for base, members in bases.items():
            members.sort(key=lambda place: key.uniform("spread", slots[place].pair_id, str(code), stage))
            start = key.uniform("start", base, str(code), stage)
            for step, place in enumerate(members):
                position[place] = (step + start) / len(members)
        # Lists of different stages and hand-overs have number ranges of their own: old numbers never move.
        first = (batch * 2 + (stage == "adjudication")) * 100_000 + 1
        for number, place in enumerate(sorted(places, key=lambda place: position[place]), start=first):
            sequence[place] = number
    return sequence


def plan_round(
    pairs: pd.DataFrame,
    options: AnnotationOptions,
    key: RoundKey,
    given: dict[str, datetime | None] | None = None,
    cases: pd.DataFrame | None = None,
    issued: pd.DataFrame | None = None,
) -> RoundPlan:
    """Plan a round: the draw, who labels what, in which order, under which packet id.

    Parameters
    ----------
    pairs : pandas.DataFrame
        The canonical pairs.
    options : AnnotationOptions
        Draw, annotators with their declared competence, hand-overs.
    key : RoundKey
        Gives ids and every random choice: the same inputs give the same plan on every machine.
    given : dict of str to datetime or None, optional
        Packets that have a label, with its time. Only hand-overs look at it: a labelled packet is never
        taken back.
    cases : pandas.DataFrame, optional
        Cases of a human attribute study (study.CASE_COLUMNS), which take the place of the draw or join it.
    issued : pandas.DataFrame, optional
        The plan whose packets were handed out (PLAN_COLUMNS): its pairs and people stand, whatever pairs or
        annotators were added since; hand-overs are applied to it.

    Returns
    -------
    RoundPlan
        A slot that nobody competent has room for is ``unassigned``, never given to somebody else.

    Raises
    ------
    TableError
        If a pair of the issued plan is gone or has changed, or its people are not of this round.
    """
    # Logs may come without their texts; such pairs can be analysed, but nobody can look at them.
    shown = pairs.dropna(subset=["question", "response_a", "response_b"])
    draw = draw_pairs(shown, options.draw, options.primaries)
    if options.study.enabled:
        # Cases are chosen and not drawn: they have no inclusion probability.
        chosen = shown["pair_id"].isin([] if cases is None else cases["pair_id"])
        own = shown[chosen].assign(stratum=STUDY, inclusion_probability=math.nan)
        if options.study.alone:
            draw = Draw(own.reset_index(drop=True), draw.design.head(0))
        else:
            more = own[~own["pair_id"].isin(draw.pairs["pair_id"])]
            draw = draw._replace(pairs=pd.concat([draw.pairs, more], ignore_index=True))
    if issued is None:
        slots = _first_slots(draw.pairs, options, key)
        _fill(slots, [], options, key, set())
    else:
        slots = _issued_slots(issued, shown, options, key)
    gone: set[str] = set()
    for batch, hand_over in enumerate(options.hand_overs, start=1):
        gone.add(hand_over.annotator)
        slots += _hand_over(slots, hand_over, given or {}, batch, options, key, gone)
        if hand_over.count is not None:
            gone.discard(hand_over.annotator)
    return RoundPlan(_plan_frame(slots, key), _key_frame(slots, key), draw.design)


def labelling_frame(pairs: pd.DataFrame, plan: pd.DataFrame, options: AnnotationOptions) -> pd.DataFrame:
    """Return every pair that the round could have drawn, with its chance: what weighting labels needs.

    Parameters
    ----------
    pairs : pandas.DataFrame
        The canonical pairs.
    plan : pandas.DataFrame
        The round's plan (PLAN_COLUMNS).
    options : AnnotationOptions
        The draw.

    Returns
    -------
    pandas.DataFrame
        drawing.FRAME_COLUMNS and ``undefined``. Chances are NaN where they are unknown: ``chosen_cases`` (a
        study's cases are chosen and not drawn), or ``pairs_changed_since_the_draw`` (an issued plan stands,
        and today's pairs and parameters would not have drawn it with the same chances).
    """
    shown = pairs.dropna(subset=["question", "response_a", "response_b"])
    frame = frame_of_draw(shown, options.draw, options.primaries)
    drawn = plan if options.study.alone else plan[plan["stratum"] != STUDY]
    planned = drawn.drop_duplicates("pair_id").set_index("pair_id")["inclusion_probability"]
    again = frame[frame["drawn"]].set_index("pair_id")["inclusion_probability"]
    frame["drawn"] = frame["pair_id"].isin(planned.index)
    reason = None
    if options.study.alone:
        reason = "chosen_cases"
    elif set(again.index) != set(planned.index) or (again - planned).abs().gt(1e-9).any():
        reason = "pairs_changed_since_the_draw"
    if reason is not None:
        frame["inclusion_probability"] = math.nan
    undefined = pd.Series([reason] * len(frame), index=frame.index, dtype="str")
    return frame[FRAME_COLUMNS].assign(undefined=undefined)


def read_issued_plan(path: str) -> pd.DataFrame:
    """Return the plan that an earlier run saved.

    Raises
    ------
    SourceError
        If there is no such file or it is no plan.
    """
    import pyarrow as pa

    try:
        plan = pd.read_parquet(path)
    except (OSError, pa.ArrowException) as error:
        raise SourceError(
            f"The issued plan {path} cannot be read.",
            [Problem(path, type(error).__name__, "annotation_plan.parquet of the run that made the packets")],
        ) from error
    missing = [column for column in PLAN_COLUMNS if column not in plan.columns]
    if missing:
        raise SourceError(
            f"{path} is no plan of a round.", [Problem(path, f"no columns {missing}", "a plan")]
        )
    return plan


def _plan_frame(slots: list[_Slot], key: RoundKey) -> pd.DataFrame:
    records = [
        {
            "round_id": key.round_id,
            "pair_id": slot.pair_id,
            "base_id": slot.base_id,
            "stratum": slot.stratum,
            "inclusion_probability": slot.probability,
            "stage": slot.stage,
            "slot": slot.number,
            "annotator_id": key.pseudonym(slot.code) if slot.code else None,
            "status": slot.status,
            "replaces": key.pseudonym(slot.replaces) if slot.replaces else None,
            "issued_at": slot.issued_at,
            "reason": slot.reason,
            "key_kind": key.kind,
            "content_hash": slot.content_hash,
        }
        for slot in slots
    ]
    frame = pd.DataFrame(records, columns=PLAN_COLUMNS)
    texts = [c for c in PLAN_COLUMNS if c not in ("slot", "inclusion_probability")]
    frame = frame.astype(dict.fromkeys(texts, "str") | {"slot": "Int64", "inclusion_probability": "float64"})
    return frame.sort_values(["pair_id", "slot", "issued_at"], kind="stable").reset_index(drop=True)


def _key_frame(slots: list[_Slot], key: RoundKey) -> pd.DataFrame:
    assigned = [slot for slot in slots if slot.code is not None]
    orders, sequences = _orders(assigned, key), _sequences(assigned, key)
    records = []
    for slot, order, sequence in zip(assigned, orders, sequences, strict=True):
        annotator = key.pseudonym(slot.code or "")
        records.append(
            {
                "packet_id": key.packet_id(slot.pair_id, annotator, slot.stage),
                "round_id": key.round_id,
                "pair_id": slot.pair_id,
                "annotator_id": annotator,
                "stage": slot.stage,
                "slot": slot.number,
                "order": order,
                "sequence": sequence,
                "status": slot.status,
                "issued_at": slot.issued_at,
                "handed_over_at": slot.handed_over_at,
            }
        )
    frame = pd.DataFrame(records, columns=KEY_COLUMNS)
    texts = [c for c in KEY_COLUMNS if c not in ("slot", "sequence")]
    frame = frame.astype(dict.fromkeys(texts, "str") | {"slot": "Int64", "sequence": "Int64"})
    # By packet id: the order of the rows tells nothing either.
    return frame.sort_values("packet_id", kind="stable").reset_index(drop=True)
