"""What the parameters of adaptation have to agree with, said before any judge is asked.

A name that nothing has would otherwise be told after hours of calls, or not at all: a misspelt source draws
no pair, and no pair looks like an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from judge_calibration.errors import OptionsError, Problem
from judge_calibration.judges.protocols.registry import build_protocol, load_own_prompts
from judge_calibration.options.adaptation import AdaptationOptions, RubricOptions
from judge_calibration.options.faults import suggestion
from judge_calibration.options.judging import JudgeSpec, JudgingOptions
from judge_calibration.schemas import MANIPULATIONS

_STAY = "correct the parameters of adaptation"
_MOST_NAMES = 20


def check_adaptation(options: AdaptationOptions, judging: JudgingOptions) -> list[dict[str, Any]]:
    """Name everything in the parameters that would stop adaptation later on, and return the rubrics' bases.

    It needs parameters only, so it runs before the first call.

    Returns
    -------
    list of dict
        Each judge that gets rubrics, with the one cell that is adapted (fields of JudgeSpec). Empty where no
        rubric is asked for.

    Raises
    ------
    OptionsError
        With every problem: judges, writers, cells, files and choices of training pairs that are not there.
    """
    problems = _resamples(options)
    bases: list[JudgeSpec] = []
    if options.rubrics is not None:
        problems += _names_and_files(options.rubrics, judging)
        bases, unfit = _bases(options.rubrics, judging)
        problems += unfit
        problems += _one_judge_an_id(options, bases)
    if problems:
        raise OptionsError(
            "Nothing can be adapted as the parameters say; nothing was asked.", problems, _STAY
        )
    return [base.model_dump(mode="json") for base in bases]


def check_names(pairs: pd.DataFrame, options: AdaptationOptions) -> None:
    """Name every source and controlled change in the parameters that no pair of this run has.

    A kind of change that the project knows is no mistake where no pair has it: that is a gap of this run.

    Raises
    ------
    OptionsError
        With every such name, and the names that there are.
    """
    sources = sorted(set(pairs["source"].dropna()))
    there = sorted(set(pairs["manipulation"].dropna()))
    kinds = sorted({*there, *MANIPULATIONS})
    problems: list[Problem] = []
    for block, draw in (("held_out", options.held_out), ("controlled", options.controlled)):
        if draw is not None:
            place = f"adaptation.{block}"
            problems += _unknown(f"{place}.sources", draw.sources, sources, "a source of the pairs", sources)
            wanted = "a controlled change of the pairs"
            problems += _unknown(f"{place}.manipulations", draw.manipulations, kinds, wanted, there)
    if options.rubrics is not None:
        named = [one.source for one in options.rubrics.edited]
        where = "adaptation.rubrics.edited, source"
        problems += _unknown(where, named, sources, "a source of the pairs", sources)
    if options.sft is not None:
        named = [run.source for run in options.sft.runs if run.source is not None]
        problems += _unknown("adaptation.sft.runs, source", named, sources, "a source of the pairs", sources)
    if problems:
        raise OptionsError("The parameters name what no pair of this run has.", problems, _STAY)


def _unknown(
    where: str, names: Iterable[str], known: Sequence[str], wanted: str, there: Sequence[str]
) -> list[Problem]:
    listed = ", ".join(there[:_MOST_NAMES]) or "this run has none"
    more = f", and {len(there) - _MOST_NAMES} more" if len(there) > _MOST_NAMES else ""
    return [
        Problem(where, f"{name}{suggestion(name, known)}", f"{wanted}: {listed}{more}")
        for name in dict.fromkeys(names)
        if name not in known
    ]


def _resamples(options: AdaptationOptions) -> list[Problem]:
    there = options.resamples
    problems = []
    if options.rubrics is not None and options.rubrics.resamples > there:
        found = str(options.rubrics.resamples)
        problems.append(
            Problem("adaptation.rubrics.resamples", found, f"at most adaptation.resamples ({there})")
        )
    for run in options.sft.runs if options.sft is not None else ():
        if run.resample >= there:
            where = f"adaptation.sft.runs, {run.source or 'all sources'}, resample"
            problems.append(Problem(where, str(run.resample), f"less than adaptation.resamples ({there})"))
    return problems


def _names_and_files(chosen: RubricOptions, judging: JudgingOptions) -> list[Problem]:
    known = [judge.judge_id for judge in judging.judges]
    problems = _unknown("adaptation.rubrics.judges", chosen.judges, known, "a judge of judging", known)
    if chosen.writer not in ("weights", "own", *known):
        problems += _unknown(
            "adaptation.rubrics.writer", [chosen.writer], known, "weights, own or a judge of judging", known
        )
    where = "adaptation.rubrics.edited"
    for edited in chosen.edited:
        if not Path(edited.file).is_file():
            problems.append(Problem(f"{where}, file", edited.file, "a text file that is there"))
        wanted = "a judge of adaptation.rubrics.judges"
        problems += _unknown(f"{where}, judge_id", [edited.judge_id], chosen.judges, wanted, chosen.judges)
        if edited.budget is not None and edited.budget not in chosen.budgets:
            there = ", ".join(map(str, chosen.budgets))
            found = f"{edited.budget}, for {edited.judge_id} and {edited.source}"
            problems.append(
                Problem(f"{where}, budget", found, f"a budget of adaptation.rubrics.budgets: {there}")
            )
    return problems


def _bases(chosen: RubricOptions, judging: JudgingOptions) -> tuple[list[JudgeSpec], list[Problem]]:
    """Return the judges with the cell that is adapted, and why others have none."""
    by_name = {judge.judge_id: judge for judge in judging.judges}
    bases, problems = [], []
    try:
        own = load_own_prompts(judging)
    except OptionsError as error:
        return [], list(error.problems)
    for name in chosen.judges:
        if name not in by_name:
            continue  # named already
        where = f"adaptation.rubrics, judge {name}"
        base = with_one_cell(by_name[name], chosen)
        if base is None:
            problems.append(
                Problem(where, _cell(chosen), f"a cell that the judge has: {_cells(by_name[name])}")
            )
            continue
        try:
            protocol = build_protocol(base.protocols[0], judging, own, f"judges, {name}, protocols")
        except OptionsError as error:
            problems += error.problems
            continue
        if any(step.system is not None for step in protocol.steps):
            wanted = "direct or another protocol whose steps have no system prompts of their own"
            problems.append(Problem(where, f"protocol {protocol.name}", wanted))
            continue
        bases.append(base)
    return bases, problems


def with_one_cell(judge: JudgeSpec, chosen: RubricOptions) -> JudgeSpec | None:
    """Return the judge with the one cell that is adapted; None where it does not have it."""
    for use in judge.protocols:
        if use.name != chosen.protocol:
            continue
        constraint = chosen.constraint or use.constraints[0]
        temperatures = use.temperatures or judge.temperatures
        temperature = temperatures[0] if chosen.temperature is None else chosen.temperature
        if constraint not in use.constraints or temperature not in temperatures:
            continue
        update = {
            "constraints": (constraint,),
            "temperatures": (temperature,),
            "repetitions": chosen.repetitions,
        }
        return judge.model_copy(update={"protocols": (use.model_copy(update=update),)})
    return None


def _cell(chosen: RubricOptions) -> str:
    rest = (("constraint", chosen.constraint), ("temperature", chosen.temperature))
    return ", ".join([f"protocol {chosen.protocol}", *(f"{k} {v}" for k, v in rest if v is not None)])


def _cells(judge: JudgeSpec) -> str:
    return "; ".join(
        f"{use.name} with constraint {' or '.join(use.constraints)} and temperature "
        + " or ".join(map(_number, use.temperatures or judge.temperatures))
        for use in judge.protocols
    )


def _one_judge_an_id(options: AdaptationOptions, bases: Sequence[JudgeSpec]) -> list[Problem]:
    """Tell a judge that is to be trained in one form and to get rubrics in another: a table has one base."""
    if options.sft is None:
        return []
    trained = options.sft.judge
    return [
        Problem(
            f"adaptation.sft.judge, {trained.judge_id}",
            f"not the judge of that name in judging, with the cell that gets rubrics (they differ in "
            f"{', '.join(_differences(trained, base))})",
            f"the same judge, with protocols: [{_written(base)}], or another judge_id",
        )
        for base in bases
        if base.judge_id == trained.judge_id and base != trained
    ]


def _written(base: JudgeSpec) -> str:
    """Return the one use of a base as a person writes it in the parameters."""
    use = base.protocols[0]
    settings = [f"name: {use.name}", f"constraints: [{use.constraints[0]}]"]
    settings.append(f"temperatures: [{', '.join(_number(t) for t in use.temperatures or ())}]")
    return "{" + ", ".join([*settings, f"repetitions: {use.repetitions}"]) + "}"


def _number(temperature: float | None) -> str:
    return "null" if temperature is None else f"{temperature:g}"


def _differences(one: JudgeSpec, other: JudgeSpec) -> list[str]:
    return [name for name in JudgeSpec.model_fields if getattr(one, name) != getattr(other, name)]
