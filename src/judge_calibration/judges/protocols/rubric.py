"""Rubric paradigms: scored criteria in one call (geval), a criterion a call (flask), an answer a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge_calibration.judges.parsing.alphabet import FORCED, Alphabet, Meaning
from judge_calibration.judges.parsing.fields import Fields, LabelField, ScoreField, TextField
from judge_calibration.judges.parsing.forms import JsonForm
from judge_calibration.judges.parsing.replies import Parsed
from judge_calibration.judges.prompts import load_prompts
from judge_calibration.judges.protocols.base import (
    Judgment,
    Protocol,
    Step,
    flags_of,
    judgment_of,
    weakest_path,
)
from judge_calibration.judges.protocols.pairwise import system_prompt
from judge_calibration.options.judging import Criterion

_RATIONALE = TextField("rationale", "your reasons in at most 120 words")
_WINNER = LabelField("winner", FORCED)

CRITERIA_SETS: dict[str, tuple[Criterion, ...]] = {
    "correctness_first": (
        Criterion(
            name="accuracy",
            description="The facts, calculations, code and conclusions are right; an error outweighs polish.",
        ),
        Criterion(
            name="completeness", description="Every part of the question is dealt with, conditions included."
        ),
        Criterion(
            name="reasoning", description="The steps follow from one another and support what is concluded."
        ),
        Criterion(name="clarity", description="The person who asked can understand it and use it directly."),
    ),
    "instruction_first": (
        Criterion(
            name="adherence",
            description=(
                "Every stated or implied constraint is kept: form, scope, view, tone, length, language."
            ),
        ),
        Criterion(
            name="relevance", description="It stays with what was asked and adds nothing uncalled for."
        ),
        Criterion(name="completeness", description="All that was asked for is there."),
        Criterion(name="accuracy", description="What it says is true and consistent with itself."),
    ),
}
"""The sets that come along: for questions with a right answer, and for instructions to be followed."""


@dataclass(frozen=True)
class _Scored(Protocol):
    """The winner field decides; scores that say otherwise, or nothing, are counted as a conflict."""

    def combine(self, parsed: Mapping[str, Parsed]) -> Judgment:
        """Return the winner that was stated, with the scores beside it."""
        one = parsed["verdict"]
        scores = _scores(one)
        conflict = _implied(scores) is not one.values["winner"]
        stated = judgment_of(one, ("score_winner_conflict",) if conflict else ())
        return Judgment("valid", stated.winner, scores=scores, flags=stated.flags, path=stated.path)


def geval(criteria: Sequence[Criterion], variant: str = "overall") -> Protocol:
    """Return geval: all criteria in one call, with an overall score an answer or one for each criterion."""
    fields: list[ScoreField] = []
    if variant == "overall":
        fields = [ScoreField(f"score_{side}", f"the score of answer {side.upper()}") for side in "ab"]
    else:
        fields = [
            ScoreField(f"{criterion.name}_{side}", f"{criterion.name} of answer {side.upper()}")
            for criterion in criteria
            for side in "ab"
        ]
    step = Step(
        "verdict", load_prompts("rubric")["geval"], JsonForm((_RATIONALE, *fields, _WINNER)), max_tokens=768
    )
    rubric = {"criteria": _described(criteria), "variant": variant, "verdict": "winner_field"}
    listed = "\n".join(f"{i}. {one.name}: {one.description}" for i, one in enumerate(criteria, start=1))
    system = system_prompt("rubric", "geval_system", {"criteria": listed})
    return _Scored("geval", FORCED, system, (step,), rubric)


@dataclass(frozen=True)
class _Vote(Protocol):
    """Majority of the criteria's winner fields; an even split is a tie that the aggregation made."""

    def combine(self, parsed: Mapping[str, Parsed]) -> Judgment:
        """Return the majority of the criteria."""
        winners = {name: one.values["winner"] for name, one in parsed.items()}
        scores = {name: _scores(one) for name, one in parsed.items()}
        votes = Counter(winners.values())
        first, second = votes[Meaning.FIRST], votes[Meaning.SECOND]
        flags = list(flags_of(parsed))
        if any(_implied(scores[name]) is not winners[name] for name in parsed):
            flags.append("score_winner_conflict")
        winner = Meaning.TIE
        if first == second:
            flags.append("aggregated_tie")
        else:
            winner = Meaning.FIRST if first > second else Meaning.SECOND
        return Judgment(
            "valid",
            winner,
            scores={"votes": winners, "scores": scores},
            flags=tuple(flags),
            path=weakest_path(parsed),
        )


def flask(criteria: Sequence[Criterion]) -> Protocol:
    """Return flask: one call a criterion, and the majority of their winners."""
    fields: Fields = (
        _RATIONALE,
        ScoreField("score_a", "the score of answer A on the criterion"),
        ScoreField("score_b", "the score of answer B on the criterion"),
        _WINNER,
    )
    steps = tuple(
        Step(
            criterion.name,
            load_prompts("rubric")["flask"],
            JsonForm(fields),
            max_tokens=512,
            texts=(("criterion", f"{criterion.name}: {criterion.description}"),),
        )
        for criterion in criteria
    )
    rubric = {"criteria": _described(criteria), "verdict": "majority_of_winner_fields", "even_split": "tie"}
    return _Vote("flask", FORCED, system_prompt("rubric", "flask_system"), steps, rubric)


@dataclass(frozen=True)
class _Difference(Protocol):
    """The higher score wins; equal scores are a tie. The pair's order plays no part."""

    def combine(self, parsed: Mapping[str, Parsed]) -> Judgment:
        """Return the answer with the higher score."""
        first, second = (parsed[name].values["score"] for name in ("answer_a", "answer_b"))
        winner = Meaning.TIE
        if first != second:
            winner = Meaning.FIRST if first > second else Meaning.SECOND
        return Judgment(
            "valid",
            winner,
            by_identity=True,
            scores={Meaning.FIRST: {"overall": first}, Meaning.SECOND: {"overall": second}},
            flags=(*flags_of(parsed), "order_free"),
            path=weakest_path(parsed),
        )


def pointwise() -> Protocol:
    """Return pointwise: each answer is scored alone, and the pair's verdict follows, ties kept.

    No call shows an order, so both orders of a pair share the two answers of a repetition and agree by
    construction; such verdicts carry the flag ``order_free``.
    """
    form = JsonForm(
        (TextField("rationale", "your reasons in at most 60 words"), ScoreField("score", "the score", 1, 10))
    )
    user = load_prompts("rubric")["pointwise"]
    steps = (
        Step("answer_a", user, form, shows="answer_a", max_tokens=384),
        Step("answer_b", user, form, shows="answer_b", max_tokens=384),
    )
    alphabet = Alphabet(tie="TIE")
    return _Difference(
        "pointwise", alphabet, system_prompt("rubric", "pointwise_system"), steps, {"equal_scores": "tie"}
    )


def _described(criteria: Sequence[Criterion]) -> list[dict[str, str]]:
    return [{"name": one.name, "description": one.description} for one in criteria]


def _scores(parsed: Parsed) -> dict[Meaning, dict[str, int]]:
    """Return criterion to score for each shown position, from keys that end in ``_a`` and ``_b``."""
    sides = {Meaning.FIRST: "_a", Meaning.SECOND: "_b"}
    return {
        side: {
            ("overall" if key == f"score{suffix}" else key.removesuffix(suffix)): value
            for key, value in parsed.values.items()
            if key.endswith(suffix) and isinstance(value, int)
        }
        for side, suffix in sides.items()
    }


def _implied(scores: Mapping[Meaning, Mapping[str, int]]) -> Meaning:
    """Return the position with the higher sum of scores; a tie if the sums are equal."""
    first, second = (sum(scores[side].values()) for side in (Meaning.FIRST, Meaning.SECOND))
    if first == second:
        return Meaning.TIE
    return Meaning.FIRST if first > second else Meaning.SECOND
