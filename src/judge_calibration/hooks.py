"""What happens around a run: checks before it, its manifest from the start to whatever end it comes to.

The checksums are not made here but in the datasets' own save and load, where no other tool can go around
them; the manifest is built by reading the disk.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from kedro.framework.hooks import hook_impl

from judge_calibration.errors import InterruptedRunError, JudgeCalibrationError, RunError, StorageError

if TYPE_CHECKING:
    from kedro.framework.context import KedroContext
    from kedro.io import CatalogProtocol
    from kedro.pipeline import Pipeline
    from kedro.pipeline.node import Node

RUN_ID_VARIABLE = "JUDGE_CALIBRATION_RUN_ID"
"""Holds the run id while a run is going, for what is not told otherwise (the lock of the call store)."""

_logger = logging.getLogger(__name__)


class RunHooks:
    """Refuses what cannot work, and keeps the run manifest."""

    def __init__(self) -> None:
        self._context: KedroContext | None = None
        self._record: Any = None
        self._signals: _Termination | None = None
        self._nodes = 0
        self._count = itertools.count(1)

    @hook_impl
    def after_context_created(self, context: KedroContext) -> None:
        """Remember where the project is."""
        self._context = context

    @hook_impl
    def before_pipeline_run(
        self, run_params: dict[str, Any], pipeline: Pipeline, catalog: CatalogProtocol
    ) -> None:
        """Start the manifest, and refuse missing inputs before any work is done."""
        from judge_calibration.session.inputs import check_inputs
        from judge_calibration.session.recording import Record

        if self._context is None:
            raise RunError("A run needs a Kedro session.", "start it by: kedro run")
        refuse_parallel_runner(str(run_params.get("runner")))
        self._nodes, self._count = len(pipeline.nodes), itertools.count(1)
        self._record = Record.start(self._context, run_params, pipeline, catalog)
        os.environ[RUN_ID_VARIABLE] = run_params["run_id"]
        atexit.register(self._interrupted, "the process ended")
        self._signals = _Termination.watch()
        try:
            check_inputs(pipeline, catalog, run_params.get("env"))
            self._record.read_inputs()
        except (JudgeCalibrationError, OSError) as error:
            self._end("failed", error)
            raise

    @hook_impl
    def after_node_run(self, node: Node) -> None:
        """Tell a person how far the run is."""
        _logger.info("%d of %d  %s", next(self._count), self._nodes, node.name)

    @hook_impl
    def after_pipeline_run(self) -> None:
        """Write down what the run made."""
        self._end("finished")

    @hook_impl
    def on_pipeline_error(self, error: Exception) -> None:
        """Write down where the run failed or was stopped, and what it had made until then."""
        from judge_calibration.session.failures import chain

        stopped = any(isinstance(cause, InterruptedRunError) for cause in chain(error))
        self._end("interrupted" if stopped else "failed", error)

    @property
    def failed_at(self) -> str:
        """Where the last run failed: the node and, while loading or saving, the dataset."""
        failure = self._record.run.content["failure"] if self._record is not None else None
        return str(failure["where"]) if failure else ""

    @property
    def outputs(self) -> dict[str, Any]:
        """What the last run made, as its manifest lists it."""
        return dict(self._record.run.content["outputs"]) if self._record is not None else {}

    def interrupt(self, reason: str) -> Path | None:
        """Write down that a person or the system stopped the run; return the manifest's folder."""
        return self._interrupted(reason)

    @property
    def folder(self) -> Path | None:
        """The folder of the last run's manifest, if there was a run."""
        return self._record.run.folder if self._record is not None else None

    def _interrupted(self, reason: str) -> Path | None:
        if self._record is not None and self._record.is_open:
            self._end("interrupted", KeyboardInterrupt(reason))
        return self.folder

    def _end(self, status: str, error: BaseException | None = None) -> None:
        os.environ.pop(RUN_ID_VARIABLE, None)
        atexit.unregister(self._interrupted)
        if self._signals is not None:
            self._signals.restore()
            self._signals = None
        try:
            self._record.end(status, error)
        except StorageError as failure:
            # The first error is what a person has to know. A manifest that says "running" of a process that
            # is gone reads as "killed", and nothing of it is taken as the latest.
            if error is None:
                raise
            _logger.error("The manifest of this run could not be completed. %s", failure)


class SimulationHooks:
    """Marks whatever an environment with a simulated panel makes: tables, documents, figures and pages."""

    @hook_impl
    def after_catalog_created(self, catalog: CatalogProtocol, parameters: dict[str, Any]) -> None:
        """Give every dataset the word SIMULATED where the panel of annotators is simulated."""
        options = parameters.get("params:annotation")
        if options is not None and hasattr(options, "simulation") and options.simulation.enabled:
            from judge_calibration.datasets.marks import mark_catalog

            mark_catalog(catalog, "SIMULATED")


def refuse_parallel_runner(runner: str) -> None:
    """Refuse the runner whose processes would not see one another's files and locks.

    Raises
    ------
    RunError
        The runner is ParallelRunner.
    """
    if "ParallelRunner" in runner:
        raise RunError(
            "ParallelRunner is not supported: its processes would write checksums and the call store side by "
            "side. Nothing was run.",
            "run without --runner, or with --runner ThreadRunner; judging is concurrent by itself "
            "(parameter judging.asking.engine)",
        )


class _Termination:
    """Turns SIGTERM into what Ctrl-C does, so that the run can say that it was interrupted."""

    def __init__(self, previous: Any) -> None:
        self._previous = previous

    @classmethod
    def watch(cls) -> _Termination | None:
        if threading.current_thread() is not threading.main_thread():
            return None
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return None
        return cls(signal.signal(signal.SIGTERM, _as_ctrl_c))

    def restore(self) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._previous)


def _as_ctrl_c(signum: int, frame: FrameType | None) -> None:
    # asyncio hears Ctrl-C in ways of its own and lets calls in flight end in order, so that signal is sent.
    # A shell starts background jobs with Ctrl-C ignored; then there is nobody to hear it.
    if callable(signal.getsignal(signal.SIGINT)):
        signal.raise_signal(signal.SIGINT)
    else:
        raise KeyboardInterrupt("SIGTERM")
