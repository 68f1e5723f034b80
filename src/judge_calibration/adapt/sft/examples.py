"""Training examples: the prompts that the judge is asked later, with the verdict that would be right.

They are rendered by the planning of calls itself, in both orders, and turned to tokens by the model's own
runtime. So what is trained on is what is asked, to the token.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pandas as pd

from judge_calibration.errors import JudgeCalibrationError, OptionsError, Problem
from judge_calibration.judges.planning import plan_calls
from judge_calibration.options.judging import JudgeSpec, JudgingOptions, SourceAccess
from judge_calibration.options.sft import TrainingRun
from judge_calibration.sources.identity import question_cluster


class TrainingDataError(JudgeCalibrationError):
    """There is nothing, or nothing usable, to train on."""


@dataclass(frozen=True)
class Prompt:
    """One pair as it is shown in one order, and the label that is right there.

    Attributes
    ----------
    pair_id : str
    order : str
        AB or BA.
    messages : tuple of mapping
        The chat messages of the request.
    verdict : str
        A if the candidate shown first is the better one, else B.
    """

    pair_id: str
    order: str
    messages: tuple[Mapping[str, str], ...]
    verdict: str


@dataclass(frozen=True)
class Example:
    """A prompt as tokens, and the token that is right after it."""

    pair_id: str
    order: str
    tokens: tuple[int, ...]
    target: int


class Tokens(Protocol):
    """What turns messages into text and text into tokens."""

    def text_of(self, messages: list[dict[str, str]]) -> str:
        """Return the messages as the chat template writes them."""

    def tokens_of(self, text: str) -> list[int]:
        """Return the tokens of a text."""


def choose_pairs(pairs: pd.DataFrame, subsets: pd.DataFrame, run: TrainingRun) -> pd.DataFrame:
    """Return the training pairs of one run, in the order of the shared ranking.

    Parameters
    ----------
    pairs : pandas.DataFrame
        The table `pairs`.
    subsets : pandas.DataFrame
        As :func:`~judge_calibration.adapt.subsets.training_subsets` ranks them.
    run : TrainingRun

    Raises
    ------
    OptionsError
        If the run names a source or ranking that the subsets lack.
    TrainingDataError
        If no pair is left, or all have the same reference.
    """
    ranked = subsets[subsets["resample"] == run.resample]
    if run.source is not None:
        ranked = ranked[ranked["source"] == run.source]
    if ranked.empty:
        known = ", ".join(sorted(map(str, subsets["source"].unique()))) or "none"
        highest = int(subsets["resample"].max()) if len(subsets) else 0
        raise OptionsError(
            "A training run has no pairs.",
            [
                Problem(
                    "adaptation.sft.runs",
                    f"source {run.source}, resample {run.resample}",
                    f"a source with labelled training pairs ({known}) and a resample from 0 to {highest}",
                )
            ],
            "correct the run, or import pairs of that source",
        )
    columns = pairs.set_index("pair_id")
    found = ranked.sort_values(["source", "rank"], kind="stable")
    if run.manipulations:
        kinds = columns.loc[found["pair_id"], "manipulation"].to_numpy()
        found = found[pd.Series(kinds, index=found.index).isin(run.manipulations)]
    if run.budget != "full":
        found = found.groupby("source", sort=False).head(run.budget)
    chosen = columns.loc[found["pair_id"]].reset_index()
    # The ranking holds decisive training pairs only; a table that was changed since is refused.
    wrong = chosen[(chosen["split"] != "train") | ~chosen["reference_label"].isin(("A", "B"))]
    if len(wrong):
        raise TrainingDataError(
            f"{len(wrong)} of the pairs to be trained on are no labelled training pairs, such as "
            f"{wrong['pair_id'].iloc[0]} (split {wrong['split'].iloc[0]}).",
            "make the training subsets again from these pairs",
        )
    label = run.source or "all sources"
    if chosen.empty:
        raise TrainingDataError(
            f"No training pair of {label} has a manipulation of {', '.join(run.manipulations)}.",
            "correct adaptation.sft.runs",
        )
    # One class alone is no fault here: every pair is trained on in both orders, so both labels are seen.
    return chosen


def shared_with_held_out(pairs: pd.DataFrame) -> frozenset[str]:
    """Return the training pairs that show what a held-out pair of any source shows as well.

    The split goes by source and base task, so one question under two names may be on both sides. It counts as
    the same where it differs in case, spaces or Unicode form only; pairs without a question by what their
    judges are shown.

    Parameters
    ----------
    pairs : pandas.DataFrame
        With pair_id, split, question, content_hash.

    Returns
    -------
    frozenset of str
        Their pair_id.
    """
    asked = pairs["question"].fillna("")
    questions = asked.map(question_cluster).where(asked.str.strip() != "")
    held_out = pairs["split"] == "test"
    both = pd.Series(False, index=pairs.index)
    for shown in (questions, pairs["content_hash"]):
        both |= shown.notna() & shown.isin(shown[held_out].dropna())
    return frozenset(pairs.loc[both & (pairs["split"] == "train"), "pair_id"])


def render(
    pairs: pd.DataFrame, judge: JudgeSpec, marker_salt: str, source_access: SourceAccess = "packet"
) -> list[Prompt]:
    """Return every pair in both orders, as the judge is asked about it.

    Parameters
    ----------
    pairs : pandas.DataFrame
        With decisive references.
    judge : JudgeSpec
        The judge; its orders, temperatures and repetitions do not matter here.
    """
    asked = judge.model_copy(update={"orders": ("AB", "BA"), "repetitions": 1})
    options = JudgingOptions(judges=(asked,), marker_salt=marker_salt, source_access=source_access)
    calls = plan_calls(pairs, options).drop_duplicates(["pair_id", "order"])
    reference = dict(zip(pairs["pair_id"], pairs["reference_label"], strict=True))
    prompts = []
    for pair_id, order, request in zip(calls["pair_id"], calls["order"], calls["request"], strict=True):
        first_is_better = (reference[pair_id] == "A") == (order == "AB")
        messages = tuple(json.loads(request)["messages"])
        prompts.append(Prompt(pair_id, order, messages, "A" if first_is_better else "B"))
    return prompts


class Tokenised(NamedTuple):
    """Examples that fit, and what was left out.

    Attributes
    ----------
    examples : list of Example
    over_cap : list of str
        Ids of the pairs with a prompt above the cap in either order; they are left out whole.
    longest : int
        Tokens of the longest prompt, left out or not.
    """

    examples: list[Example]
    over_cap: list[str]
    longest: int


def tokenise(prompts: Sequence[Prompt], tokens: Tokens, cap: int) -> Tokenised:
    """Turn prompts into tokens, and leave out whole pairs above the cap; nothing is ever cut.

    Parameters
    ----------
    cap : int
        Tokens that a prompt may have.

    Raises
    ------
    TrainingDataError
        If a verdict is more than one token, or every pair is above the cap.
    """
    targets = {label: _one_token(tokens, label) for label in sorted({one.verdict for one in prompts})}
    made = [
        Example(
            one.pair_id,
            one.order,
            tuple(tokens.tokens_of(tokens.text_of([dict(message) for message in one.messages]))),
            targets[one.verdict],
        )
        for one in prompts
    ]
    longest = max((len(one.tokens) for one in made), default=0)
    over = list(dict.fromkeys(one.pair_id for one in made if len(one.tokens) > cap))
    kept = [one for one in made if one.pair_id not in set(over)]
    if not kept:
        raise TrainingDataError(
            f"All {len(over)} training pairs have prompts above {cap} tokens; the longest has {longest}.",
            "raise token_cap, or train on shorter pairs",
        )
    return Tokenised(kept, over, longest)


def _one_token(tokens: Tokens, label: str) -> int:
    found = tokens.tokens_of(label)
    if len(found) != 1:
        raise TrainingDataError(
            f"The verdict '{label}' is {len(found)} tokens to this model; one is wanted.",
            "use another model",
        )
    return found[0]


def shared_beginning(examples: Iterable[Example]) -> int:
    """Return how many tokens all prompts begin with alike; at least one token of each is left to itself.

    Examples
    --------
    >>> shared_beginning([Example("p", "AB", (1, 2, 3), 9), Example("p", "BA", (1, 2, 4, 5), 8)])
    2
    """
    prompts = [one.tokens for one in examples]
    shortest = min((len(prompt) for prompt in prompts), default=0)
    length = 0
    while length < shortest - 1 and len({prompt[length] for prompt in prompts}) == 1:
        length += 1
    return length


def as_rows(examples: Sequence[Example]) -> list[list[Any]]:
    """Return examples as plain lists, for a hash of what was trained on."""
    return [[one.pair_id, one.order, list(one.tokens), one.target] for one in examples]
