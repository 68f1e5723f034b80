"""Nodes of the pipeline `adaptation` that write rubrics, and ask adapted judges about held-out pairs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pydantic import ValidationError

from judge_calibration import schemas
from judge_calibration.adapt.before_after import BASE
from judge_calibration.adapt.held_out import of_source, with_controlled
from judge_calibration.adapt.reweighting import fit_reweighting
from judge_calibration.adapt.rubrics import Rubric, rubric_diagnostics, shortened, write_from_weights
from judge_calibration.errors import OptionsError, Problem
from judge_calibration.judges.asking import ask_calls
from judge_calibration.judges.call_plan import call_plan
from judge_calibration.judges.instrument import describe_instruments, resolve_instruments
from judge_calibration.judges.planning import plan_calls
from judge_calibration.judges.reading import read_answers
from judge_calibration.judges.writing import LabelledPair, WritingTask, plan_writing, read_writing
from judge_calibration.options.adaptation import AdaptationOptions, RubricOptions
from judge_calibration.options.asking import TransportOptions
from judge_calibration.options.judging import JudgeSpec, JudgingOptions
from judge_calibration.pipelines.adaptation.nodes import adapted_rows, labelled_reads
from judge_calibration.pipelines.judging.nodes import RUN_ID_VARIABLE
from judge_calibration.profiles.inventory import read_inventory
from judge_calibration.text import sha256_of

METHOD = "rubric"
_RULE = "Judge by this rubric:"
_README = (
    "The rubrics of this run, one a file. To judge with another text, copy the file, change it, and name it\n"
    "under adaptation.rubrics.edited (judge_id, source, file): it is another instrument.\n"
)
_STAY = "correct the parameters of adaptation"


class _Place(NamedTuple):
    """One rubric of the design: for whom, and from which training pairs."""

    judge: str
    source: str
    budget: str
    resample: int
    pairs: tuple[str, ...]


def plan_rubrics(
    pairs: pd.DataFrame,
    training_subsets: pd.DataFrame,
    rubric_bases: list[dict[str, Any]],
    options: AdaptationOptions,
    judging: JudgingOptions,
) -> pd.DataFrame:
    """Plan the calls in which models write rubrics; none where the writer is ``weights``."""
    chosen = options.rubrics
    if chosen is None or chosen.writer == "weights":
        return schemas.empty(schemas.CALLS)
    tasks = []
    for place in _places(training_subsets, rubric_bases, chosen):
        if place.pairs and _edited(chosen, place) is None:
            shown, _ = _shown(pairs, place, chosen)
            writer = place.judge if chosen.writer == "own" else chosen.writer
            tasks.append(WritingTask(_draft(place).name, writer, shown, chosen.most_words))
    return plan_writing(tasks, judging, chosen.write_tokens)


def ask_rubrics(
    rubric_calls: pd.DataFrame,
    call_store: Path,
    judge_keys: dict[str, str | None],
    judging: JudgingOptions,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ask the writers what the store has no answer to."""
    return _ask(rubric_calls, judging, call_store, judge_keys)


def write_rubrics(
    rubric_calls: pd.DataFrame,
    rubric_answers: pd.DataFrame,
    pairs: pd.DataFrame,
    training_subsets: pd.DataFrame,
    reads: pd.DataFrame,
    attribute_inventory: dict[str, Any],
    rubric_bases: list[dict[str, Any]],
    options: AdaptationOptions,
    judging: JudgingOptions,
) -> tuple[list[dict[str, Any]], dict[str, str | bytes], list[dict[str, Any]], pd.DataFrame]:
    """Write every rubric, make judges of the bases and the rubrics, and say what each rubric holds.

    Returns
    -------
    rubrics : list of dict
        The fields of :class:`judge_calibration.adapt.rubrics.Rubric`, with name and the text's SHA-256.
    rubric_texts : dict
        Each rubric as a file to read, and to edit for the parameter ``rubrics.edited``.
    rubric_judges : list of dict
        method, budget, resample, source, base and judge: the bases and the judges with a rubric.
    rubric_diagnostics : pandas.DataFrame
    """
    inventory = {a.name.replace(" ", "_").replace("-", "_"): a for a in read_inventory(attribute_inventory)}
    chosen = options.rubrics
    if chosen is None:
        return [], {"README.md": _README}, [], rubric_diagnostics([], {}, list(inventory))
    written = read_writing(rubric_calls, rubric_answers)
    rubrics: list[Rubric] = []
    weights: dict[tuple[str, str, str, int], dict[str, float]] = {}
    for place in _places(training_subsets, rubric_bases, chosen):
        fitted, reason, n = _weights(place, pairs, training_subsets, reads, options)
        if fitted:
            weights[place.judge, place.source, place.budget, place.resample] = fitted
        definitions = {name: attribute.definition for name, attribute in inventory.items()}
        rubrics.append(_write(place, chosen, pairs, fitted, reason, n, definitions, written))
    judges = {base["judge_id"]: JudgeSpec.model_validate(base) for base in rubric_bases}
    made: list[dict[str, Any]] = [
        _entry(BASE, None, None, "all", name, judge) for name, judge in judges.items()
    ]
    for rubric in rubrics:
        if rubric.undefined is None:
            base = judges[rubric.judge_id]
            adapted = _with_rubric(base, rubric, judging)
            made.append(_entry(METHOD, rubric.budget, rubric.resample, rubric.source, base.judge_id, adapted))
    records = [{**vars(rubric), "name": rubric.name, "sha256": sha256_of(rubric.text)} for rubric in rubrics]
    texts: dict[str, str | bytes] = {f"{one.file_name}.md": one.text + "\n" for one in rubrics if one.text}
    texts["README.md"] = _README
    return records, texts, made, rubric_diagnostics(rubrics, weights, list(inventory))


def _places(
    subsets: pd.DataFrame, bases: Sequence[Mapping[str, Any]], chosen: RubricOptions
) -> Iterator[_Place]:
    """Yield every rubric of the design.

    A source with fewer pairs than a budget has the same pairs at each larger one, and a rubric at each all
    the same: every budget has its row, and the tables say how many pairs it had.
    """
    for judge in (str(base["judge_id"]) for base in bases):
        for source, own in subsets.groupby("source", sort=True):
            for resample in range(chosen.resamples):
                ranked = own[own["resample"] == resample].sort_values("rank")
                for budget in chosen.budgets:
                    if budget == "full" and resample:
                        continue
                    part = ranked if budget == "full" else ranked[ranked["rank"] < int(budget)]
                    yield _Place(judge, str(source), str(budget), resample, tuple(part["pair_id"]))


def _draft(place: _Place, writer: str = "", text: str = "", n: int = 0, **rest: Any) -> Rubric:
    return Rubric(place.judge, place.source, place.budget, place.resample, writer, text, n, **rest)


def _edited(chosen: RubricOptions, place: _Place) -> str | None:
    for one in chosen.edited:
        if (one.judge_id, one.source) == (place.judge, place.source) and (
            one.budget is None or str(one.budget) == place.budget
        ):
            return one.file
    return None


def _shown(pairs: pd.DataFrame, place: _Place, chosen: RubricOptions) -> tuple[tuple[LabelledPair, ...], int]:
    """Return the training pairs that a writer is shown, shortened, and how many texts were cut.

    They are spread evenly over the ranking: the first ones alone would be the same at every budget.
    """
    known = pairs.set_index("pair_id")
    out, cut = [], 0
    places = np.linspace(0, len(place.pairs) - 1, min(len(place.pairs), chosen.shown_pairs))
    for position in places.round().astype(int):
        row = known.loc[place.pairs[position]]
        names = (
            ("response_a", "response_b") if row["reference_label"] == "A" else ("response_b", "response_a")
        )
        texts = [shortened(str(row[name]), chosen.shown_words) for name in ("question", *names)]
        cut += sum(was_cut for _, was_cut in texts)
        out.append(LabelledPair(*(text for text, _ in texts)))
    return tuple(out), cut


def _weights(
    place: _Place,
    pairs: pd.DataFrame,
    subsets: pd.DataFrame,
    reads: pd.DataFrame,
    options: AdaptationOptions,
) -> tuple[dict[str, float], str | None, int]:
    """Return the weights that predict the training labels from the judge's reads, or why there are none."""
    own = reads[(reads["judge_id"] == place.judge) & reads["pair_id"].isin(place.pairs)]
    panel = labelled_reads(own, pairs, pairs.head(0), subsets, adapted_rows([]))
    if panel is None:
        return {}, "no_reads", 0
    model = fit_reweighting(panel.stable[0], panel.reference, options.penalty, intercept=options.intercept)
    if model.fit is None:
        return {}, model.undefined, model.n_train
    values = dict(zip(panel.attributes, map(float, model.fit.coefficients), strict=True))
    return values, None, model.n_train


def _write(
    place: _Place,
    chosen: RubricOptions,
    pairs: pd.DataFrame,
    fitted: Mapping[str, float],
    reason: str | None,
    n: int,
    definitions: Mapping[str, str],
    written: Mapping[str, tuple[str, str]],
) -> Rubric:
    writer = place.judge if chosen.writer == "own" else chosen.writer
    if not place.pairs:
        return _draft(place, writer, undefined="no_training_pair")
    file = _edited(chosen, place)
    if file is not None:
        text = Path(file).read_text(encoding="utf-8").strip()
        draft = _draft(place, "person", text, len(place.pairs), file=file)
    elif chosen.writer == "weights":
        if reason is not None:
            return _draft(place, "weights", "", n, undefined=reason)
        draft = _draft(place, "weights", write_from_weights(fitted, definitions, chosen.attributes), n)
    else:
        shown, cut = _shown(pairs, place, chosen)
        outcome, text = written.get(_draft(place).name, ("missing", ""))
        counts = {"shown": len(shown), "cut": cut}
        if outcome != "valid":
            return _draft(place, writer, "", len(shown), undefined=f"writer_{outcome}", **counts)
        draft = _draft(place, writer, text, len(shown), **counts)
    if not draft.text.strip():
        return _draft(place, draft.writer, "", draft.n_train, file=file, undefined="nothing_to_say")
    if len(draft.text.split()) > chosen.most_words:
        return Rubric(**{**vars(draft), "undefined": "too_long"})
    return draft


def _with_rubric(base: JudgeSpec, rubric: Rubric, judging: JudgingOptions) -> JudgeSpec:
    """Return the judge with the rubric after its system prompt: instructions, not data."""
    instrument = resolve_instruments(judging.model_copy(update={"judges": (base,)}))[0]
    system = f"{instrument.system_prompt(instrument.protocol.steps[0])}\n{_RULE}\n{rubric.text}".lstrip("\n")
    use = base.protocols[0].model_copy(update={"system_prompt": system})
    return base.model_copy(update={"judge_id": rubric.name, "protocols": (use,)})


def _entry(
    method: str, budget: str | None, resample: int | None, source: str, base: str, judge: JudgeSpec
) -> dict[str, Any]:
    return {
        "method": method,
        "budget": budget,
        "resample": resample,
        "source": source,
        "base": base,
        "judge": judge.model_dump(mode="json"),
    }


class _Asked(NamedTuple):
    """Judges that are asked about the same pairs."""

    source: str
    options: JudgingOptions


def adapted_judges(
    sft_judges: Sequence[Mapping[str, Any]], rubric_judges: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return every judge that is asked, each once, with the judge_id of its base.

    An entry without ``base`` belongs to the base of its own list with the same model, or to the only one.

    Raises
    ------
    OptionsError
        If an adapted judge has no base, or two different judges have one id.
    """
    out: dict[str, dict[str, Any]] = {}
    problems = []
    for entries in (sft_judges, rubric_judges):
        bases = [entry["judge"] for entry in entries if entry["method"] == BASE]
        for entry in entries:
            judge = entry["judge"]
            name = judge["judge_id"]
            base = entry.get("base") or _base_of(entry, bases)
            if base is None:
                problems.append(Problem(f"adapted judge {name}", "no base", "a base of the same runtime"))
                continue
            known = out.get(name)
            if known is not None and known["judge"] != judge:
                problems.append(Problem(f"judge {name}", "two different judges", "an id each"))
            budget = entry.get("budget")
            found = {**entry, "base": base, "budget": None if budget is None else str(budget)}
            out.setdefault(name, found)
    if problems:
        raise OptionsError("Adapted judges cannot be asked as they are.", problems, _STAY)
    return list(out.values())


def _base_of(entry: Mapping[str, Any], bases: Sequence[Mapping[str, Any]]) -> str | None:
    if entry["method"] == BASE:
        return str(entry["judge"]["judge_id"])
    same = [base for base in bases if base["model"] == entry["judge"]["model"]] or list(bases)
    return str(same[0]["judge_id"]) if len(same) == 1 else None


def _by_source(entries: Sequence[Mapping[str, Any]], judging: JudgingOptions) -> list[_Asked]:
    """Return the judges by the source that they were adapted to; "all" for bases and joint ones."""
    groups: dict[str, list[JudgeSpec]] = {}
    problems = []
    for entry in entries:
        try:
            judge = JudgeSpec.model_validate(entry["judge"])
        except ValidationError as error:
            where = f"adapted judge {entry['judge'].get('judge_id')}"
            problems += [Problem(where, str(one["loc"]), str(one["msg"])) for one in error.errors()]
            continue
        groups.setdefault(str(entry["source"]), []).append(judge)
    if problems:
        raise OptionsError("Adapted judges cannot be read.", problems, _STAY)
    return [
        _Asked(source, judging.model_copy(update={"judges": tuple(judges)}))
        for source, judges in groups.items()
    ]


def plan_adapted(
    held_out_pairs: pd.DataFrame,
    controlled_pairs: pd.DataFrame,
    sft_judges: list[dict[str, Any]],
    rubric_judges: list[dict[str, Any]],
    judging: JudgingOptions,
) -> tuple[pd.DataFrame, dict[str, dict[str, Any]], pd.DataFrame]:
    """Plan the calls of base and adapted judges.

    Each judge is asked about the held-out pairs of its own source, and about the controlled pairs.
    """
    calls: list[pd.DataFrame] = []
    instruments: dict[str, dict[str, Any]] = {}
    transports: dict[str, TransportOptions] = {}
    for asked in _by_source(adapted_judges(sft_judges, rubric_judges), judging):
        own = with_controlled(of_source(held_out_pairs, asked.source), controlled_pairs)
        calls.append(plan_calls(own, asked.options))
        instruments |= describe_instruments(asked.options)
        transports |= {judge.judge_id: judge.transport for judge in asked.options.judges}
    known = [part for part in calls if len(part)]
    table = pd.concat(known, ignore_index=True) if known else schemas.empty(schemas.CALLS)
    return table, instruments, call_plan(table, transports)


def ask_adapted(
    adapted_calls: pd.DataFrame,
    sft_judges: list[dict[str, Any]],
    rubric_judges: list[dict[str, Any]],
    call_store: Path,
    judge_keys: dict[str, str | None],
    judging: JudgingOptions,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ask what the store has no answer to; a base that was judged before is not asked again."""
    judges = [JudgeSpec.model_validate(one["judge"]) for one in adapted_judges(sft_judges, rubric_judges)]
    options = judging.model_copy(update={"judges": tuple(judges)}) if judges else judging
    return _ask(adapted_calls, options, call_store, judge_keys)


def _ask(
    calls: pd.DataFrame, options: JudgingOptions, call_store: Path, keys: dict[str, str | None]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    store = Path(options.asking.store) if options.asking.store else call_store
    return ask_calls(calls, options, store, os.environ.get(RUN_ID_VARIABLE), keys)


def read_adapted(
    adapted_calls: pd.DataFrame,
    adapted_answers: pd.DataFrame,
    held_out_pairs: pd.DataFrame,
    controlled_pairs: pd.DataFrame,
    sft_judges: list[dict[str, Any]],
    rubric_judges: list[dict[str, Any]],
    judging: JudgingOptions,
) -> pd.DataFrame:
    """Read base and adapted judges' answers as verdicts, with what adapted each."""
    entries = adapted_judges(sft_judges, rubric_judges)
    if adapted_calls.empty or not entries:
        return adapted_rows([])
    judges = tuple(JudgeSpec.model_validate(one["judge"]) for one in entries)
    options = judging.model_copy(update={"judges": judges})
    asked = with_controlled(held_out_pairs, controlled_pairs)
    verdicts = read_answers(adapted_calls, adapted_answers, asked, options)
    about = pd.DataFrame(
        [
            {
                "judge_id": one["judge"]["judge_id"],
                "method": one["method"],
                "budget": one["budget"],
                "resample": one["resample"],
                "source": one["source"],
                "base_judge": one["base"],
            }
            for one in entries
        ]
    )
    return adapted_rows([verdicts.merge(about, on="judge_id", how="left")])


def join_adapted(asked_verdicts: pd.DataFrame, reweighted_verdicts: pd.DataFrame) -> pd.DataFrame:
    """Put asked and reweighted judges into one table; a base that is in both stands once."""
    asked = asked_verdicts["judge_id"].unique()
    again = (reweighted_verdicts["method"] == BASE) & reweighted_verdicts["judge_id"].isin(asked)
    return adapted_rows([asked_verdicts, reweighted_verdicts[~again]])
