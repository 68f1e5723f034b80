"""From answers to verdicts: every planned judgment gets one row, whatever became of it.

A judgment is valid only if every call of it is; else its outcome is that of its first failed step. Only a
valid one carries a verdict, mapped back from the shown position to the candidate: A is always the pair's
first candidate. Equal replies are read once, so a million short answers take seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from judge_calibration.errors import OptionsError, Problem, TableError
from judge_calibration.judges.instrument import Instrument, resolve_instruments
from judge_calibration.judges.parsing.alphabet import Meaning
from judge_calibration.judges.parsing.forms import LikelihoodForm
from judge_calibration.judges.parsing.replies import Parsed, Reply, malformed
from judge_calibration.judges.protocols.base import Judgment
from judge_calibration.options.judging import JudgingOptions
from judge_calibration.schemas import READS, VERDICT_ROWS, conform, empty
from judge_calibration.text import canonical_json, from_storable

_ANSWER = ["call_id", "failure", "text", "finish_reason", "logprobs"]
_JUDGMENT = ["pair_id", "order", "temperature", "repetition"]


def read_answers(
    calls: pd.DataFrame, answers: pd.DataFrame, pairs: pd.DataFrame, options: JudgingOptions
) -> pd.DataFrame:
    """Return one verdict row for each planned judgment.

    Parameters
    ----------
    calls : pandas.DataFrame
        The table `calls`, as :func:`judge_calibration.judges.planning.plan_calls` made it.
    answers : pandas.DataFrame
        The table `answers`; a call without a row is ``missing``.
    pairs : pandas.DataFrame
        The table `pairs`: an object that was found inside a longer reply is no verdict if it stands word for
        word in one of the pair's texts (``malformed``, flag ``echoed_from_candidate``).
    options : JudgingOptions
        The parameters that the calls were planned with.

    Returns
    -------
    pandas.DataFrame
        The table `verdicts` (VERDICT_ROWS), in the order of the calls. Flags hold what was odd and, for
        failed judgments, the reason.

    Raises
    ------
    OptionsError
        If calls belong to instruments that these parameters do not make.
    TableError
        If a call has several answers.
    """
    parts = []
    for instrument, judge_id, rows in _by_instrument(calls, answers, options, probes=False):
        read = _read(instrument, rows, _texts_of(pairs))
        keys = read.keys.assign(
            judge_id=judge_id,
            instrument_id=instrument.instrument_id,
            protocol=instrument.protocol.name,
            constraint=instrument.constraint,
        )
        shown = _verdict_columns(read.judgments)
        take = read.codes * 2 + (read.keys["order"].to_numpy() == "BA")
        parts.append(pd.concat([keys, shown.take(take).reset_index(drop=True)], axis=1))
    if not parts:
        return empty(VERDICT_ROWS)
    verdicts = pd.concat(parts, ignore_index=True).sort_values("_first", kind="stable", ignore_index=True)
    return conform(verdicts.drop(columns="_first"), VERDICT_ROWS)


def read_attribute_answers(
    calls: pd.DataFrame, answers: pd.DataFrame, pairs: pd.DataFrame, options: JudgingOptions
) -> pd.DataFrame:
    """Return one read for each planned attribute call.

    Parameters
    ----------
    calls, answers, pairs : pandas.DataFrame
        As for :func:`read_answers`; `calls` as `plan_attribute_calls` made it.
    options : JudgingOptions
        The parameters that the calls were planned with.

    Returns
    -------
    pandas.DataFrame
        The table `reads`, with instrument_id, logprob_confidence and flags beside its columns. The direction
        is by candidate identity and null unless the outcome is valid.

    Raises
    ------
    OptionsError
        If a judge reads with more than one cell or repetition: a read is one judgment.
    """
    cells = calls.groupby("judge_id", dropna=False)[["instrument_id", "temperature", "repetition"]]
    problems = [
        Problem(f"judges, {judge_id}", f"{n} cells and repetitions", "one, since a read is one judgment")
        for judge_id, group in cells
        if (n := len(group.drop_duplicates())) > 1
    ]
    if problems:
        raise OptionsError(
            "Attributes are read once.", problems, "leave one constraint, temperature, repetition"
        )
    parts = []
    for instrument, judge_id, rows in _by_instrument(calls, answers, options, probes=True):
        read = _read(instrument, rows, _texts_of(pairs))
        keys = read.keys.assign(judge_id=judge_id, instrument_id=instrument.instrument_id)
        shown = _read_columns(read.judgments)
        take = read.codes * 2 + (read.keys["order"].to_numpy() == "BA")
        parts.append(pd.concat([keys, shown.take(take).reset_index(drop=True)], axis=1))
    if not parts:
        return empty(READS)
    reads = pd.concat(parts, ignore_index=True).sort_values("_first", kind="stable", ignore_index=True)
    return conform(reads.drop(columns=["_first", "temperature", "repetition"]), READS)


def estimate_label_bias(
    calls: pd.DataFrame, answers: pd.DataFrame, options: JudgingOptions, probes: bool = False
) -> pd.DataFrame:
    """Return each shown label's mean log-probability, to be declared as `label_bias` if one wants it off.

    Over pairs that are shown in both orders no shown label should be favoured; a difference of means is the
    judge's liking for a label. Nothing is taken off unless the parameters declare it.

    Parameters
    ----------
    calls, answers : pandas.DataFrame
        As for :func:`read_answers`.
    options : JudgingOptions
        The parameters that the calls were planned with.
    probes : bool
        Whether they are attribute reads.

    Returns
    -------
    pandas.DataFrame
        A row for each judge_id, instrument_id and label: mean_logprob (natural log, less the mean over the
        labels; after whatever bias is declared already) and n. Instruments that read no log-probabilities
        have no row.
    """
    rows = []
    for instrument, judge_id, answered in _by_instrument(calls, answers, options, probes):
        form = instrument.protocol.steps[-1].form
        if not isinstance(form, LikelihoodForm):
            continue
        read = _read(instrument, answered, {})
        listed = [
            one.scores["label_logprobs"]
            for one in (read.judgments[code] for code in read.codes)
            if one.scores is not None
        ]
        for label, meaning in form.alphabet.labels.items():
            values = [one[meaning] for one in listed if meaning in one]
            if values:
                rows.append((judge_id, instrument.instrument_id, label, float(np.mean(values)), len(values)))
    frame = pd.DataFrame(rows, columns=["judge_id", "instrument_id", "label", "mean_logprob", "n"])
    centre = frame.groupby(["judge_id", "instrument_id"])["mean_logprob"].transform("mean")
    return frame.assign(mean_logprob=frame["mean_logprob"] - centre)


@dataclass(frozen=True)
class _Read:
    """The judgments of one instrument: their keys, and for each the index of a distinct judgment."""

    keys: pd.DataFrame
    codes: np.ndarray
    judgments: Sequence[Judgment]


def _by_instrument(
    calls: pd.DataFrame, answers: pd.DataFrame, options: JudgingOptions, probes: bool
) -> list[tuple[Instrument, str, pd.DataFrame]]:
    """Return each judge's calls of each instrument with their answers."""
    if not len(calls):
        return []
    instruments = {
        (one.judge.judge_id, one.instrument_id): one for one in resolve_instruments(options, probes)
    }
    if not answers["call_id"].is_unique:
        repeated = answers.loc[answers["call_id"].duplicated(), "call_id"].unique()[:5]
        raise TableError(
            "Calls have several answers.",
            [Problem("answers, column call_id", str(call_id), "one row each") for call_id in repeated],
            "make the answers anew from the call store",
        )
    planned = calls.drop(columns="request").reset_index(drop=True).assign(_first=np.arange(len(calls)))
    rows = planned.merge(answers[_ANSWER], on="call_id", how="left", indicator="_arrived")
    rows["failure"] = rows["failure"].where(rows["_arrived"] != "left_only", "missing")
    groups = []
    problems = []
    for key, group in rows.groupby(["judge_id", "instrument_id"], sort=False):
        judge_id, instrument_id = map(str, cast("tuple[str, str]", key))
        instrument = instruments.get((judge_id, instrument_id))
        if instrument is None:
            problems.append(
                Problem(f"calls of {judge_id}", f"instrument {instrument_id[:12]}", "a known one")
            )
            continue
        groups.append((instrument, judge_id, group.reset_index(drop=True)))
    if problems:
        raise OptionsError(
            "Calls were planned with other parameters than they are now read with.",
            problems,
            "plan the calls anew with the parameters at hand",
        )
    return groups


def _texts_of(pairs: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    columns = (pairs["pair_id"], pairs["question"], pairs["response_a"], pairs["response_b"])
    return {pair_id: texts for pair_id, *texts in zip(*columns, strict=True)}  # type: ignore[misc]


def _read(instrument: Instrument, rows: pd.DataFrame, texts: Mapping[str, tuple[str, ...]]) -> _Read:
    """Read every reply once, and combine each judgment's replies."""
    protocol = instrument.protocol
    steps = {step.name: position for position, step in enumerate(protocol.steps)}
    # A probe's step column names the attribute; it has one step.
    position = np.zeros(len(rows), int) if protocol.probe else rows["step"].map(steps).to_numpy(int)
    parsed, codes = _parse(instrument, rows, position)
    codes = _without_echoes(rows, parsed, codes, texts)
    if len(protocol.steps) == 1:
        judgments = [protocol.judge({protocol.steps[0].name: one}) for one in parsed]
        columns = [*_JUDGMENT, "_first", *(["step"] if protocol.probe else [])]
        keys = rows[columns].rename(columns={"step": "attribute"})
        return _Read(keys, codes, judgments)
    judgment = rows.groupby(_JUDGMENT, dropna=False, sort=False).ngroup().to_numpy()
    absent = len(parsed)
    table = np.full((judgment.max() + 1, len(protocol.steps)), absent)
    table[judgment, position] = codes
    parsed = [*parsed, Parsed("missing", reason="not_planned")]
    distinct, which = np.unique(table, axis=0, return_inverse=True)
    names = [step.name for step in protocol.steps]
    judgments = [
        protocol.judge({name: parsed[code] for name, code in zip(names, row, strict=True)})
        for row in distinct
    ]
    keys = rows.loc[~pd.Series(judgment).duplicated(), [*_JUDGMENT, "_first"]].reset_index(drop=True)
    return _Read(keys, which.reshape(-1), judgments)


def _parse(
    instrument: Instrument, rows: pd.DataFrame, position: np.ndarray
) -> tuple[list[Parsed], np.ndarray]:
    """Return the distinct parsed replies and, for each row, the index of its own."""
    columns = ["failure", "text", "finish_reason", "logprobs"]
    keyed = rows[columns].assign(_position=position)
    codes = keyed.groupby([*columns, "_position"], dropna=False, sort=False).ngroup().to_numpy()
    firsts = keyed[~pd.Series(codes).duplicated().to_numpy()]
    steps = instrument.protocol.steps
    parsed = []
    for failure, text, finish, logprobs, step in firsts.itertuples(index=False):
        if isinstance(failure, str):
            parsed.append(Parsed(failure))
            continue
        reply = Reply(
            from_storable(text) if isinstance(text, str) else None, _or_none(finish), _or_none(logprobs)
        )
        parsed.append(steps[step].form.read(reply))
    return parsed, codes


def _or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _without_echoes(
    rows: pd.DataFrame, parsed: list[Parsed], codes: np.ndarray, texts: Mapping[str, tuple[str, ...]]
) -> np.ndarray:
    """Turn objects that were only quoted from the pair into malformed replies (appended to `parsed`)."""
    found = np.array([one.found is not None for one in parsed], dtype=bool)
    suspects = np.flatnonzero(found[codes])
    if not len(suspects):
        return codes
    codes = codes.copy()
    echo = len(parsed)
    pair_ids = rows["pair_id"].to_numpy()
    for row in suspects:
        source = parsed[codes[row]].found or ""
        if any(source in from_storable(text) for text in texts.get(pair_ids[row], ())):
            codes[row] = echo
    parsed.append(malformed("echoed_from_candidate"))
    return codes


_LABELS = {Meaning.TIE: "TIE", Meaning.ABSTAIN: "ABSTAIN", Meaning.NONE: "NONE"}


def _identity(meaning: Meaning | None, order: str, by_identity: bool) -> str | None:
    """Return a meaning as a label by candidate identity."""
    if meaning is None:
        return None
    if meaning in _LABELS:
        return _LABELS[meaning]
    first = meaning is Meaning.FIRST
    return "A" if first == (by_identity or order == "AB") else "B"


def _mapped(value: Any, order: str, by_identity: bool) -> Any:
    """Return nested scores with every meaning, as key or value, turned to its label."""
    if isinstance(value, Meaning):
        return _identity(value, order, by_identity)
    if isinstance(value, Mapping):
        return {
            _mapped(key, order, by_identity): _mapped(item, order, by_identity) for key, item in value.items()
        }
    return value


def _verdict_columns(judgments: Sequence[Judgment]) -> pd.DataFrame:
    """Return two rows a judgment, as shown in the order AB and in BA."""
    rows = []
    for one in judgments:
        shown = None
        if one.winner in (Meaning.FIRST, Meaning.SECOND) and not one.by_identity:
            shown = "first" if one.winner is Meaning.FIRST else "second"
        for order in ("AB", "BA"):
            scores = (
                None if one.scores is None else canonical_json(_mapped(one.scores, order, one.by_identity))
            )
            rows.append(
                (
                    one.outcome,
                    _identity(one.winner, order, one.by_identity),
                    shown,
                    scores,
                    one.confidence,
                    one.logprob_confidence,
                    canonical_json(list(one.reason_codes)) if one.reason_codes else None,
                    canonical_json(list(one.flags)) if one.flags else None,
                    one.path,
                )
            )
    names = VERDICT_ROWS.column_names[VERDICT_ROWS.column_names.index("outcome") :]
    return pd.DataFrame(rows, columns=names)


def _read_columns(judgments: Sequence[Judgment]) -> pd.DataFrame:
    """Return two rows a read, as shown in the order AB and in BA."""
    rows = [
        (
            _identity(one.winner, order, one.by_identity),
            one.confidence,
            one.magnitude,
            one.outcome,
            one.logprob_confidence,
            canonical_json(list(one.flags)) if one.flags else None,
        )
        for one in judgments
        for order in ("AB", "BA")
    ]
    columns = ["direction", "confidence", "magnitude", "outcome", "logprob_confidence", "flags"]
    return pd.DataFrame(rows, columns=columns)
