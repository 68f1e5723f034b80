"""Asking a plan: each planned call once, through the store, with the engine that the parameters name.

:func:`ask_calls` takes and gives frames. :func:`ask_blocks` takes the plan piece by piece and leaves the
answers in the store: for plans that do not fit into memory.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pandas as pd

from judge_calibration import schemas
from judge_calibration.errors import OptionsError, Problem
from judge_calibration.judges.budget import Cost, check_prices
from judge_calibration.judges.engines.local import SUBSTITUTES, LocalEngine, Summary, fill_in, stored_cost
from judge_calibration.judges.engines.setup import AskSetup, Block
from judge_calibration.judges.failures import Attempt
from judge_calibration.judges.lock import StoreLockedError, is_held, owned_lock
from judge_calibration.judges.store import (
    StoredAnswer,
    StoreError,
    StoreReader,
    leftover_shards,
    shard_name,
)
from judge_calibration.judges.transports.base import PlannedCall
from judge_calibration.options.asking import AskingOptions, TransportOptions
from judge_calibration.text import canonical_json, from_storable

logger = logging.getLogger(__name__)

ATTEMPT_COLUMNS = Attempt._fields


class _Judge(Protocol):
    @property
    def judge_id(self) -> str: ...
    @property
    def transport(self) -> TransportOptions: ...


class HasJudges(Protocol):
    """Parameters that name judges and how they are asked, such as ``JudgingOptions``."""

    @property
    def judges(self) -> Sequence[_Judge]:
        """The judges."""
        ...

    @property
    def asking(self) -> AskingOptions:
        """How the run asks."""
        ...


def planned_calls(calls: pd.DataFrame) -> list[PlannedCall]:
    """Return each distinct call of a plan once; whatever another one builds upon comes first.

    Parameters
    ----------
    calls : pandas.DataFrame
        The table ``calls``: a call that several pairs share has a row for each.

    Raises
    ------
    OptionsError
        If a call builds upon one that is not planned, or upon itself.
    """
    distinct = calls.drop_duplicates("call_id")
    columns = ("call_id", "judge_id", "request", "pair_id", "order", "protocol", "step")
    planned = [
        PlannedCall(*row) for row in zip(*(distinct[name].astype(str) for name in columns), strict=True)
    ]
    depths = _depths(planned)
    return sorted(planned, key=lambda call: depths[call.call_id])


def _depths(planned: Sequence[PlannedCall]) -> dict[str, int]:
    """How many calls have to be answered one after the other before each call can be asked."""
    needs = {
        call.call_id: tuple((json.loads(call.request).get("substitutions") or {}).values())
        if SUBSTITUTES in call.request
        else ()
        for call in planned
    }
    depths = {call_id: 0 for call_id, needed in needs.items() if not needed}
    left = {call_id: needed for call_id, needed in needs.items() if needed}
    while left:
        ready = {name for name, needed in left.items() if all(other in depths for other in needed)}
        if not ready:
            problems = [
                Problem(f"call {name}", f"builds upon {sorted(set(needed) - set(depths))}", "planned calls")
                for name, needed in left.items()
            ]
            raise OptionsError("Some calls build upon calls that are not planned.", problems, "plan them too")
        for name in ready:
            depths[name] = 1 + max(depths[other] for other in left.pop(name))
    return depths


def blocks_of(planned: Sequence[PlannedCall], size: int) -> Iterator[Block]:
    """Cut a plan into the blocks that make the shards of the store."""
    for start in range(0, len(planned), size):
        part = tuple(planned[start : start + size])
        yield Block(shard_name(call.call_id for call in part), part)


def made_up_run_id() -> str:
    """Return a name for a run that has none: the time, as Kedro writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H.%M.%S.%f")[:-3] + "Z"


def ask_blocks(blocks: Iterable[Block], setup: AskSetup, total: int | None = None) -> Summary:
    """Ask a plan block by block; the answers are in the store afterwards.

    Parameters
    ----------
    blocks : iterable of Block
        An iterator is read as the work goes on, so that memory stays flat. With a cap on the budget it is
        read twice, and has to be a list.
    setup : AskSetup
    total : int, optional
        Planned calls, for the progress bar.

    Raises
    ------
    StoreLockedError
        If another run writes to the store.
    JudgeCalibrationError
        Whatever ended the run early. All answers that arrived are in the store.
    """
    check_prices(
        setup.options.budget,
        [(judge_id, options.budget, options.price) for judge_id, options in setup.judges.items()],
    )
    try:
        setup.folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StoreError(
            f"The call store {setup.folder} cannot be made: {problem.strerror}.",
            "make the folder writable, or name another store",
        ) from problem
    with owned_lock(setup.folder / "lock", setup.run_id) as dead:
        if dead is not None:
            logger.warning("The call store was left by %s, which is no longer alive; going on.", dead)
        _look_through(setup)
        spent: list[tuple[str, Cost]] = []
        if _is_capped(setup):
            blocks = list(blocks)
            spent = list(_spent(blocks, setup))
        if setup.options.engine == "dask":
            from judge_calibration.judges.engines.dask_engine import DaskEngine

            summary = DaskEngine(setup, total).run(blocks, spent)
        else:
            summary = LocalEngine(setup, total).run(blocks, spent)
        for shard in leftover_shards(setup.folder):
            if not is_held(shard.lock):
                shard.seal()
        for lock in (setup.folder / "open").glob("*.lock"):
            if not is_held(lock):
                lock.unlink(missing_ok=True)
    return summary


def _look_through(setup: AskSetup) -> None:
    """Look at what an earlier run left: nothing is asked while any of it is damaged, or still being written.

    Workers of a Dask cluster outlive the run that sent them and end their block; a run on the same cluster
    waits for them block by block.
    """
    for shard in leftover_shards(setup.folder):
        if not is_held(shard.lock):
            shard.check()
        elif setup.options.engine != "dask":
            raise StoreLockedError(
                f"The shard {shard.name} of the call store {setup.folder} is still being written by a worker "
                "of an earlier run.",
                "wait until it ends, or stop the cluster",
            )
    for part in (setup.folder / "sealed").glob("*.part"):
        part.unlink(missing_ok=True)


def _is_capped(setup: AskSetup) -> bool:
    budgets = [setup.options.budget, *(options.budget for options in setup.judges.values())]
    return any(caps.tokens is not None or caps.money is not None for caps in budgets)


def _spent(blocks: Iterable[Block], setup: AskSetup) -> Iterator[tuple[str, Cost]]:
    """What the answers that the store has cost, by judge and block."""
    reader = StoreReader(setup.folder)
    for block in blocks:
        judge_of = {call.call_id: call.judge_id for call in block.calls}
        by_judge: dict[str, list[StoredAnswer]] = {}
        for answer in reader.answers(judge_of, block.name).values():
            by_judge.setdefault(judge_of[answer.call_id], []).append(answer)
        for judge_id, answers in by_judge.items():
            yield judge_id, stored_cost(answers, setup.judges[judge_id])


def ask_calls(
    calls: pd.DataFrame,
    options: HasJudges,
    store_folder: Path | str,
    run_id: str | None = None,
    keys: Mapping[str, str | None] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ask every planned call that the store has no answer to, and return all answers.

    Parameters
    ----------
    calls : pandas.DataFrame
        The table ``calls``.
    options : JudgingOptions or alike
        Its judges' transports, and how the run asks.
    store_folder : path
        The call store.
    run_id : str, optional
        Named to whoever finds the store locked, and kept with each attempt.
    keys : mapping of str to str or None, optional
        Keys by the name of their variable; what is not here is taken from the environment.

    Returns
    -------
    answers : pandas.DataFrame
        The table ``answers``, one row a distinct call, in the order of call_id. `request` is the request as
        it was sent: other calls' answers are filled in.
    attempts : pandas.DataFrame
        Every attempt at these calls that the store knows of, those of earlier runs included.

    Raises
    ------
    OptionsError
        If a call names a judge that the options lack.
    JudgeCalibrationError
        Whatever ended the run early. All answers that arrived are in the store.
    """
    folder = Path(store_folder)
    planned = planned_calls(calls)
    judges = {judge.judge_id: judge.transport for judge in options.judges}
    unknown = sorted({call.judge_id for call in planned} - set(judges))
    if unknown:
        problems = [Problem(f"judge {name}", "calls, and no such judge", "a judge") for name in unknown]
        raise OptionsError("Calls are planned for judges that are not declared.", problems, "declare them")
    if not options.asking.offline and planned:
        setup = AskSetup(
            {name: judges[name] for name in sorted({call.judge_id for call in planned})},
            options.asking,
            folder,
            run_id or made_up_run_id(),
            dict(keys or {}),
        )
        blocks = list(blocks_of(_beginnings_together(planned, judges), options.asking.shard_calls))
        summary = ask_blocks(blocks, setup, len(planned))
        _say(summary)
    return collect(planned, folder)


def _beginnings_together(
    planned: Sequence[PlannedCall], judges: Mapping[str, TransportOptions]
) -> list[PlannedCall]:
    """Put the calls of judges that reuse beginnings into the order of their prompts; the rest stays.

    A request's JSON has its keys sorted: what an instrument's calls do not share begins with the messages.
    """
    reusing = {name for name, options in judges.items() if not options.embedded.repeatable}
    ordered = list(planned)
    # Only among calls that build upon no other: what they build upon has to come first.
    free = [
        number
        for number, call in enumerate(planned)
        if call.judge_id in reusing and SUBSTITUTES not in call.request
    ]
    by_prompt = sorted(free, key=lambda number: (planned[number].judge_id, planned[number].request))
    for place, number in zip(free, by_prompt, strict=True):
        ordered[place] = planned[number]
    return ordered


def _say(summary: Summary) -> None:
    outcomes = ", ".join(f"{count:,} {name}" for name, count in sorted(summary.outcomes.items()))
    logger.info(
        "%s calls planned: %s answered before, %s asked now%s.",
        f"{summary.planned:,}",
        f"{summary.from_store:,}",
        f"{summary.asked:,}",
        f" ({outcomes})" if outcomes else "",
    )


def collect(planned: Sequence[PlannedCall], folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what the store has for a plan: the tables ``answers`` and ``attempts``. Nothing is asked."""
    reader = StoreReader(folder)
    ids = [call.call_id for call in planned]
    answers = reader.answers(ids)
    attempts = reader.attempts(ids)
    failures = {row["call_id"]: row["failure"] for row in attempts if row["failure"]}
    rows = []
    for call in sorted(planned, key=lambda call: call.call_id):
        request = call.request
        if SUBSTITUTES in request:
            request = _as_sent(request, answers)
        answer = answers.get(call.call_id)
        if answer is not None:
            row = {name: getattr(answer, name) for name in schemas.ANSWERS.column_names if name != "request"}
        else:
            row = {"call_id": call.call_id, "failure": failures.get(call.call_id, "missing")}
        rows.append({**row, "request": request})
    frame = pd.DataFrame(rows, columns=schemas.ANSWERS.column_names)
    return schemas.conform(frame, schemas.ANSWERS), _attempts_frame(attempts)


def _as_sent(request: str, answers: Mapping[str, StoredAnswer]) -> str:
    planned = json.loads(request)
    texts = {}
    for marker, call_id in planned["substitutions"].items():
        answer = answers.get(call_id)
        if answer is None or answer.failure is not None or not answer.text:
            return request
        texts[marker] = from_storable(answer.text)
    return canonical_json(fill_in(planned, texts))


def _attempts_frame(attempts: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    frame = pd.DataFrame(attempts, columns=list(ATTEMPT_COLUMNS))
    for name in ATTEMPT_COLUMNS:
        frame[name] = frame[name].astype("Int64" if name in ("number", "status") else "str")
    return frame


def key_variables(options: HasJudges) -> list[str]:
    """Return the names of the environment variables that the judges' keys come from."""
    named = {judge.transport.key_variable for judge in options.judges}
    return sorted(name for name in named if name is not None)


def keys_of_environment(options: HasJudges) -> dict[str, str | None]:
    """Return the judges' keys by the name of their variable, None for those that are not set."""
    return {name: os.environ.get(name) for name in key_variables(options)}
