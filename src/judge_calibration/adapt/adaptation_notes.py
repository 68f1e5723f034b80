"""What could not be adapted, why, and the command that would bring it: so that nothing is silently absent."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from judge_calibration.options.adaptation import AdaptationOptions

logger = logging.getLogger(__name__)

NOTE_COLUMNS = ("method", "judge_id", "source", "budget", "reason", "message", "command")

READ = "kedro run --env adapt"
TRAIN = ".venv-sft/bin/kedro run --env sft"
INSTALL = "make env-sft"
_MOST_WARNINGS = 20
_EMPTY = "controlled_empty"
_ANSWERS = {
    "no_training_pair": "no labelled training pair of this source has attribute reads",
    "one_class_only": "all labelled training pairs that were read have the same reference",
    "no_stable_direction": "no attribute has the same direction in both orders on any training pair",
    "no_test_pair": "no held-out pair of this source was read by this judge",
    "no_reads": "this judge read no attribute of a training pair, and the rubric's writer works from reads",
    "nothing_to_say": "the writer had nothing to say: every weight is 0, or its reply was empty",
    "too_long": "the rubric has more words than adaptation.rubrics.most_words and is not cut",
    "no_base_verdict": "this judge gave no verdicts on the held-out pairs: there is nothing to compare with",
}


def adaptation_notes(
    table: pd.DataFrame,
    split: pd.DataFrame,
    subsets: pd.DataFrame,
    held_out: pd.DataFrame,
    controlled: pd.DataFrame,
    readers: Sequence[str],
    rubrics: Sequence[Mapping[str, Any]],
    trained: bool,
    options: AdaptationOptions,
) -> pd.DataFrame:
    """List what is missing; each is logged once as a warning if something was tried and failed.

    Returns
    -------
    pandas.DataFrame
        NOTE_COLUMNS; method, judge_id, source and budget are missing where a note is about all of them.
    """
    rows: list[dict[str, Any]] = []

    def note(reason: str, message: str, command: str = "", **where: Any) -> None:
        rows.append({"reason": reason, "message": message, "command": command} | where)

    if not readers:
        message = "no judge read attributes in this run"
        if table["simulated"].astype(bool).any():
            message = "only SIMULATED judges read attributes in this run: what is reweighted here is of them"
        note("no_reads", message, READ, method="reweighting")
    if options.rubrics is None:
        note("not_asked_for", "no rubric was written: adaptation.rubrics is null here", READ, method="rubric")
    if not trained and options.sft is None:
        note("not_asked_for", "no judge was fine-tuned in this environment", TRAIN, method="sft")
    elif not trained:
        message = (
            "no judge was fine-tuned: torch is not installed here; run again with .venv-sft/bin/kedro after"
        )
        note("not_installed", message, INSTALL, method="sft")
    smallest = options.budgets[0] if options.budgets else 0
    sizes = subsets[subsets["resample"] == 0].groupby("source").size().to_dict()
    row: dict[Any, Any]
    for row in split.to_dict("records"):
        n = int(sizes.get(row["source"], 0))
        if not n:
            note(
                "no_training_pair",
                f"source {row['source']} has no labelled training pair (A or B) among the drawn ones",
                source=row["source"],
            )
        elif n < smallest:
            note(
                "fewer_than_the_smallest_budget",
                f"source {row['source']} has {n} labelled training pairs, fewer than the smallest budget of "
                f"{smallest}: every budget uses all {n}",
                source=row["source"],
            )
        decisive = held_out["reference_label"].isin(("A", "B")) & (held_out["source"] == row["source"])
        if n and not decisive.any():
            note(
                "no_test_pair",
                f"source {row['source']} has no labelled held-out pair, so no gain can be measured on it",
                source=row["source"],
            )
    for message in _uncontrolled(controlled, options):
        note(_EMPTY, message)
    real = table[~table["simulated"].astype(bool) & table["undefined"].notna()]
    for row in real.to_dict("records"):
        if row["undefined"] in _ANSWERS:
            note(
                row["undefined"],
                _ANSWERS[row["undefined"]],
                **{name: row[name] for name in ("method", "judge_id", "source", "budget")},
            )
    for one in rubrics:
        if one["undefined"] is not None:
            reason = str(one["undefined"])
            message = _ANSWERS.get(
                reason, f"the writing model gave no rubric ({reason.removeprefix('writer_')})"
            )
            note(reason, message, method="rubric", **{n: one[n] for n in ("judge_id", "source", "budget")})
    tried = readers or options.rubrics is not None
    # Controlled pairs that were asked for are told wherever they lack.
    told = [row for row in rows if (tried and row["reason"] != "not_asked_for") or row["reason"] == _EMPTY]
    _log(told)
    return pd.DataFrame(rows).reindex(columns=list(NOTE_COLUMNS)).astype("str")


def _uncontrolled(drawn: pd.DataFrame, options: AdaptationOptions) -> list[str]:
    """Say which controlled pairs were asked for and are not there."""
    if options.controlled is None:
        return []
    here = set(drawn["manipulation"].dropna())
    missing = [name for name in options.controlled.manipulations if name not in here]
    if len(drawn) and not missing:
        return []
    kind = f"a change of {' or '.join(missing)}" if missing else "a controlled change"
    return [
        f"no held-out pair with {kind} is there for adaptation.controlled, so nothing is said about what "
        "adapting does to such pairs; the bank has them (data_prep.use_bank: true)"
    ]


def _log(rows: Sequence[Mapping[str, Any]]) -> None:
    """Warn of each message once for a method and source, with the judges and budgets that it is about."""
    about: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for row in rows:
        key = (str(row.get("method") or ""), str(row.get("source") or ""), str(row["message"]))
        found = about.setdefault(key, {"judge_id": [], "budget": []})
        for name, values in found.items():
            if row.get(name) and str(row[name]) not in values:
                values.append(str(row[name]))
    told = list(about.items())
    for (method, source, message), found in told[:_MOST_WARNINGS]:
        names = [name for name in (method, source, ", ".join(found["judge_id"])) if name]
        if found["budget"]:
            names.append(f"{' and '.join(found['budget'])} labels")
        logger.warning("Adaptation, %s: %s.", "; ".join(names) or "all", message)
    if len(told) > _MOST_WARNINGS:
        logger.warning("Adaptation: %d more are in adaptation_notes.", len(told) - _MOST_WARNINGS)
