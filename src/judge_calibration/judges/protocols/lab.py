"""The lab's three procedures: holistic (J1), decomposed (J2) and reference first (J3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge_calibration.judges.parsing.alphabet import LAB, Meaning
from judge_calibration.judges.parsing.fields import CodesField, Fields, LabelField, UnitField
from judge_calibration.judges.parsing.forms import JsonForm, TextForm
from judge_calibration.judges.parsing.replies import Parsed
from judge_calibration.judges.prompts import load_prompts
from judge_calibration.judges.protocols.base import Judgment, Protocol, Step, judgment_of
from judge_calibration.judges.protocols.pairwise import system_prompt

ASSESSMENTS = ("instruction_following", "correctness", "evidence_support", "completeness", "style")
REASON_CODES = (
    "correctness",
    "instruction_following",
    "citation_support",
    "completeness",
    "clarity",
    "style",
)

_VERDICT: Fields = (
    LabelField("winner", LAB),
    UnitField("confidence", "how sure you are of the winner"),
    CodesField("reason_codes", "what decided it", REASON_CODES),
)
_CAP = 256
_LIST = 'root ::= "1. " line ([1-9] ". " line){2,9}\nline ::= [^\\n]{8,120} "\\n"'


def holistic() -> Protocol:
    """Return J1: the pair, a short rubric, one verdict."""
    step = Step("verdict", load_prompts("lab")["compare"], JsonForm(_VERDICT), max_tokens=_CAP)
    return Protocol("holistic", LAB, system_prompt("lab", "holistic_system"), (step,))


@dataclass(frozen=True)
class _Decomposed(Protocol):
    """Separate assessments; the verdict follows from them by the declared hierarchy, in code."""

    def combine(self, parsed: Mapping[str, Parsed]) -> Judgment:
        """Return what the hierarchy makes of the assessments; the model's own winner is only compared."""
        one = parsed["verdict"]
        assessments = {name: one.values[name] for name in ASSESSMENTS}
        winner = by_hierarchy(assessments, self.rubric["hierarchy"])
        stated = judgment_of(one, ("hierarchy_conflict",) if winner is not one.values["winner"] else ())
        return Judgment(
            "valid",
            winner,
            scores={"assessments": assessments, "stated_winner": one.values["winner"]},
            confidence=stated.confidence,
            reason_codes=stated.reason_codes,
            flags=stated.flags,
            path=stated.path,
        )


def decomposed(hierarchy: Sequence[str] = ASSESSMENTS) -> Protocol:
    """Return J2: five assessments in one call, then the hierarchy."""
    fields: Fields = (
        *(LabelField(name, LAB, f"your assessment of {name}") for name in ASSESSMENTS),
        *_VERDICT,
    )
    step = Step("verdict", load_prompts("lab")["compare"], JsonForm(fields), max_tokens=_CAP)
    rubric = {"hierarchy": list(hierarchy), "an_abstention_reached": "abstains", "all_ties": "tie"}
    return _Decomposed("decomposed", LAB, system_prompt("lab", "decomposed_system"), (step,), rubric)


def by_hierarchy(assessments: Mapping[str, Meaning], hierarchy: Sequence[str]) -> Meaning:
    """Return the first assessment that is not a tie; a tie if all are.

    An abstention that is reached abstains: a lower point must not decide over a higher one that could not be
    assessed.

    Examples
    --------
    >>> by_hierarchy({"correctness": Meaning.TIE, "style": Meaning.SECOND}, ["correctness", "style"])
    <Meaning.SECOND: 'second'>
    """
    for name in hierarchy:
        if assessments[name] is not Meaning.TIE:
            return assessments[name]
    return Meaning.TIE


def reference_first() -> Protocol:
    """Return J3: a checklist made from the task alone, then the comparison against it.

    The checklist is asked for once for each task and source packet (and temperature); all orders,
    repetitions and pairs of the task share it.
    """
    prompts = load_prompts("lab")
    checklist = Step(
        "checklist",
        prompts["checklist"],
        TextForm(prompts["checklist_output"], _LIST),
        shows="task",
        repeated=False,
        max_tokens=512,
        system=system_prompt("lab", "checklist_system"),
    )
    verdict = Step(
        "verdict", prompts["compare_with_checklist"], JsonForm(_VERDICT), max_tokens=_CAP, after="checklist"
    )
    return Protocol(
        "reference_first", LAB, system_prompt("lab", "reference_first_system"), (checklist, verdict)
    )
