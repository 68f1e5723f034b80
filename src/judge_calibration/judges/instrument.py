"""What an instrument is: everything that may change a judge's answers, in one mapping with one hash.

A judge is an instrument only with its protocol, prompt, decoding, constraint, parser, weights and serving;
change one of them and what was calibrated is something else. Temperature makes cells within an instrument,
and repetition and order are the design; time-outs, retries and concurrency change nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from judge_calibration.errors import OptionsError, Problem
from judge_calibration.judges.markers import MARKER_VERSION
from judge_calibration.judges.parsing.replies import PARSER_VERSION
from judge_calibration.judges.protocols.base import Protocol, Step
from judge_calibration.judges.protocols.registry import build_protocol, load_own_prompts
from judge_calibration.options.judging import Constraint, JudgeSpec, JudgingOptions, ProtocolUse
from judge_calibration.text import sha256_of

ENDPOINT = "chat"
"""The kind of endpoint that every judge is asked at; part of its identity."""
INSTRUMENT_VERSION = 1


@dataclass(frozen=True)
class Instrument:
    """One judge with one protocol under one constraint.

    Attributes
    ----------
    description : mapping
        All that is part of the identity.
    instrument_id : str
        SHA-256 of the description's canonical JSON, 64 hex digits.
    source_access : str
        ``packet`` if source packets are shown, else ``none``.
    """

    judge: JudgeSpec
    use: ProtocolUse
    constraint: Constraint
    protocol: Protocol
    source_access: str
    description: Mapping[str, Any]
    instrument_id: str

    @property
    def temperatures(self) -> tuple[float | None, ...]:
        """The instrument's cells."""
        return self.judge.temperatures if self.use.temperatures is None else self.use.temperatures

    @property
    def repetitions(self) -> int:
        """How often each pair is judged in each order."""
        return self.use.repetitions or self.judge.repetitions

    def system_prompt(self, step: Step) -> str:
        """The system prompt of a step; empty: none is sent."""
        if step.system is not None:
            return step.system
        for override in (self.use.system_prompt, self.judge.system_prompt):
            if override is not None:
                return override
        return self.protocol.system

    def max_tokens(self, step: Step) -> int | None:
        """The cap of a step's reply; None where the provider takes none."""
        if "max_tokens" in self.judge.not_settable:
            return None
        if step.form.describe()["form"] == "first_token_logprobs":
            return step.max_tokens
        return self.use.max_tokens or self.judge.max_tokens or step.max_tokens


def resolve_instruments(options: JudgingOptions, probes: bool = False) -> list[Instrument]:
    """Return every instrument that the parameters name, in their order.

    Parameters
    ----------
    options : JudgingOptions
        The parameters.
    probes : bool
        Whether the judges are to read attributes (pipeline `attributes`) or to give verdicts.

    Raises
    ------
    OptionsError
        With every protocol, prompt file, constraint and set that does not fit, and every instrument that is
        named twice.
    """
    own = load_own_prompts(options)
    problems: list[Problem] = []
    instruments: list[Instrument] = []
    for judge in options.judges:
        weights = weights_of(judge)
        for use in judge.protocols:
            where = f"judges, {judge.judge_id}, protocols"
            try:
                protocol = build_protocol(use, options, own, where)
            except OptionsError as error:
                problems += error.problems
                continue
            if protocol.probe != probes:
                wanted = "the probe `attribute`" if probes else "a protocol that gives verdicts"
                problems.append(Problem(where, use.name, wanted))
                continue
            for constraint in use.constraints:
                unfit = [step.name for step in protocol.steps if constraint not in step.form.constraints]
                if unfit:
                    possible = ", ".join(protocol.steps[-1].form.constraints)
                    problems.append(
                        Problem(f"{where}, {use.name}.constraints", constraint, f"one of {possible}")
                    )
                    continue
                instruments.append(_instrument(options, judge, use, constraint, protocol, weights))
    seen: set[tuple[str, str]] = set()
    for one in instruments:
        key = (one.judge.judge_id, one.instrument_id)
        if key in seen:
            problems.append(
                Problem(
                    f"judges, {one.judge.judge_id}, protocols",
                    f"{one.use.name} ({one.constraint}) twice",
                    "each instrument once; its temperatures and repetitions go into one entry",
                )
            )
        seen.add(key)
    if problems:
        raise OptionsError(
            f"The judges cannot be used as they are set ({len(problems)} problems).",
            problems,
            "correct the parameters of judging; docs/protocols.md lists what each protocol takes",
        )
    return instruments


def describe_instruments(options: JudgingOptions, probes: bool = False) -> dict[str, dict[str, Any]]:
    """Return the identity of every instrument by its id, with the judges that are it and why it may drift.

    Returns
    -------
    dict
        instrument_id to ``{"identity": ..., "judge_ids": [...], "not_frozen": [reasons]}``.
    """
    out: dict[str, dict[str, Any]] = {}
    for one in resolve_instruments(options, probes):
        entry = out.setdefault(
            one.instrument_id,
            {
                "identity": dict(one.description),
                "judge_ids": [],
                "not_frozen": not_frozen_by_name(one.description),
            },
        )
        entry["judge_ids"].append(one.judge.judge_id)
    return out


def _instrument(
    options: JudgingOptions,
    judge: JudgeSpec,
    use: ProtocolUse,
    constraint: Constraint,
    protocol: Protocol,
    weights: dict[str, Any] | None,
) -> Instrument:
    access = judge.source_access or options.source_access
    draft = Instrument(judge, use, constraint, protocol, access, {}, "")
    settable = [name for name in ("top_p", "reasoning_effort") if name not in judge.not_settable]
    description: dict[str, Any] = {
        **judge_identity(judge, options.marker_salt, weights),
        "system_prompt": {step.name: draft.system_prompt(step) for step in protocol.steps},
        **protocol.describe(),
        "decoding": {
            "max_tokens": {step.name: draft.max_tokens(step) for step in protocol.steps},
            "top_logprobs": {step.name: step.top_logprobs for step in protocol.steps},
            "constraint": constraint,
            **{name: getattr(judge, name) for name in settable},
        },
        "parser_version": PARSER_VERSION,
        "source_access": access,
    }
    if constraint == "grammar":
        description["decoding"]["grammar"] = {step.name: step.form.grammar() for step in protocol.steps}
    return Instrument(judge, use, constraint, protocol, access, description, sha256_of(description))


def judge_identity(judge: JudgeSpec, salt: str, weights: dict[str, Any] | None) -> dict[str, Any]:
    """Return what identifies a judge whatever it is asked: the model, how it is reached, and the markers."""
    provider, _, rest = judge.model.partition("/")
    return {
        "version": INSTRUMENT_VERSION,
        "model": judge.served_model or (rest or judge.model),
        "provider": judge.transport.provider or (provider if rest else None),
        "endpoint": ENDPOINT,
        "not_settable": sorted(judge.not_settable),
        "markers": {
            "version": MARKER_VERSION,
            # The salt itself stays out of every artifact: who knows it can forge a marker.
            "salt_sha256": hashlib.sha256(salt.encode("utf-8", "surrogatepass")).hexdigest(),
        },
        "weights": weights,
        "serving": judge.serving,
    }


def weights_of(judge: JudgeSpec) -> dict[str, Any] | None:
    """Return what is known of the weights: as declared, else (for the embedded model) as found out."""
    if judge.weights is not None:
        return judge.weights.model_dump()
    if judge.model.startswith("embedded/") and judge.transport.transport == "litellm":
        from judge_calibration.judges.embedded import describe

        return dict(describe(judge.model, judge.transport.embedded))
    return None


_PINNED = re.compile(
    r"(?:19|20)\d{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])"  # a date
    r"|[-@](?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?![0-9])"  # month and day, as in -0613
    r"|[-@](?:0[1-9]|1[0-2])-20\d{2}(?![0-9])"  # month and year
    r"|[-@:](?:v\d+:\d+|sha256[:-][0-9a-f]{12,64}|[0-9a-f]{40})(?![0-9a-f])"  # a revision
    r"|-\d{3}$"  # a numbered release, as in -002
)
_ALIAS = re.compile(r"(?:^|[-:@/])(?:latest|default|current|auto|free)$", re.IGNORECASE)


def not_frozen_by_name(description: Mapping[str, Any]) -> list[str]:
    """Return why a model's name alone does not pin what answers: an alias is free to change.

    Returns
    -------
    list of str
        ``alias`` (the name says so), ``no_snapshot_in_name`` (no date, revision or release number in it, and
        no hash of the weights), or nothing.

    Examples
    --------
    >>> not_frozen_by_name({"model": "gpt-4o", "weights": None})
    ['no_snapshot_in_name']
    >>> not_frozen_by_name({"model": "gpt-4-0613", "weights": None})
    []
    """
    weights = description.get("weights") or {}
    if weights.get("file_sha256"):
        return []
    name = str(description["model"])
    if _ALIAS.search(name):
        return ["alias"]
    return [] if _PINNED.search(name) else ["no_snapshot_in_name"]


def not_frozen_by_answers(
    calls: pd.DataFrame, answers: pd.DataFrame, instruments: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[str]]:
    """Return, by instrument_id, what the servers' own word says against a frozen model.

    Parameters
    ----------
    calls, answers : pandas.DataFrame
        The tables of those names.
    instruments : mapping
        As :func:`describe_instruments` gives them.

    Returns
    -------
    dict of str to list of str
        ``server_names_no_model``, ``several_models_served``, ``other_model_served``; instruments without a
        finding are left out.
    """
    arrived = answers.loc[answers["failure"].isna(), ["call_id", "served_model"]]
    served = calls[["call_id", "instrument_id"]].drop_duplicates().merge(arrived, on="call_id")
    out: dict[str, list[str]] = {}
    for instrument_id, group in served.groupby("instrument_id"):
        entry = instruments.get(str(instrument_id))
        names = {str(name) for name in group["served_model"].dropna()}
        reasons = []
        if group["served_model"].isna().any():
            reasons.append("server_names_no_model")
        if len(names) > 1:
            reasons.append("several_models_served")
        if entry is not None and any(not _same_model(name, entry["identity"]["model"]) for name in names):
            reasons.append("other_model_served")
        if reasons:
            out[str(instrument_id)] = reasons
    return out


def _same_model(served: str, declared: str) -> bool:
    return served == declared or served.rpartition("/")[2] == declared.rpartition("/")[2]
