"""What a run would ask, worked out in memory: the actual prompts, no model asked, nothing written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from judge_calibration.errors import RunError
from judge_calibration.runs import files
from judge_calibration.runs.manifest import read_all
from judge_calibration.session.parameters import check_files, check_parameters
from judge_calibration.session.project import data_folder

if TYPE_CHECKING:
    from judge_calibration.options.judging import JudgingOptions

PLANNED = {
    "judging": ("plan_judging", "calls"),
    "attributes": ("plan_reads", "attribute_calls"),
}
"""By pipeline: the node that plans its calls, and the dataset of calls that it makes."""

_ATTEMPTS = {"calls": "attempts", "attribute_calls": "attribute_attempts"}
_RUNS_LOOKED_AT = 20


class Planned(NamedTuple):
    """The calls of one pipeline.

    Attributes
    ----------
    pipeline : str
    calls : pandas.DataFrame
        The table ``calls``.
    options : JudgingOptions
        Who is asked, and how.
    store : pathlib.Path
        The call store that answers would be kept in.
    """

    pipeline: str
    calls: pd.DataFrame
    options: JudgingOptions
    store: Path


def plan_environment(
    root: Path, env: str | None, runtime: dict[str, Any], names: tuple[str, ...]
) -> list[Planned]:
    """Plan the calls of pipelines as a run of the environment would, from the files as they are now.

    Parameters
    ----------
    root : pathlib.Path
        The project.
    env : str or None
        The environment.
    runtime : dict
        Parameters that take the place of those in files.
    names : tuple of str
        Pipelines of `PLANNED`.

    Returns
    -------
    list of Planned
        One a pipeline.

    Raises
    ------
    OptionsError
        If parameters are not what they have to be.
    RunError
        If the project has no such pipeline.
    """
    from kedro.framework.project import pipelines, settings
    from kedro.framework.session import KedroSession
    from kedro.io import DataCatalog, MemoryDataset
    from kedro.runner import SequentialRunner

    class Kept(MemoryDataset):
        def _release(self) -> None:
            """Keep what the runner thinks that nobody needs any more."""

    # Kedro's own reading of a file that is no mapping ends in an error that names no file.
    check_files(root / settings.CONF_SOURCE, env)
    known = dict(pipelines)
    absent = [name for name in ("data_prep", *names) if name not in known]
    if absent:
        raise RunError(f"This project has no pipeline {', '.join(absent)}.", "list them: kedro registry list")
    wanted = known["data_prep"].to_outputs("judged_pairs")
    for name in names:
        wanted = wanted + known[name].only_nodes(PLANNED[name][0])
    session = KedroSession.create(project_path=root, env=env, runtime_params=runtime, save_on_close=False)
    with session:
        context = session.load_context()
        check_parameters(
            context.config_loader["parameters"], known, Path(context.config_loader.conf_source), context.env
        )
        found = context.catalog
        datasets: dict[str, Any] = {name: found.get(name) for name in wanted.inputs()}
        datasets |= {name: Kept() for name in wanted.all_outputs()}
        SequentialRunner().run(wanted, DataCatalog(datasets))
        data = data_folder(root, context.config_loader)
        return [_planned(name, datasets, found, data) for name in names]


def _planned(name: str, datasets: dict[str, Any], catalog: Any, data: Path) -> Planned:
    from judge_calibration.options.attributes import AttributesOptions
    from judge_calibration.options.judging import JudgingOptions

    value = catalog.load(f"params:{name}")
    plain = value.model_dump() if hasattr(value, "model_dump") else value
    options = (
        AttributesOptions.model_validate(plain).judging
        if name == "attributes"
        else JudgingOptions.model_validate(plain)
    )
    store = Path(options.asking.store) if options.asking.store else data / "calls"
    return Planned(name, datasets[PLANNED[name][1]].load(), options, store)


def seen_rates(runs: Path, root: Path, planned: Planned) -> dict[tuple[str, str], float]:
    """Return how fast the judges of a plan answered in the newest runs that asked them."""
    from judge_calibration.judges.call_time import calls_per_second

    name = PLANNED[planned.pipeline][1]
    wanted = set(zip(planned.calls["judge_id"], planned.calls["protocol"], strict=True))
    rates: dict[tuple[str, str], float] = {}
    for run in reversed(read_all(runs)[-_RUNS_LOOKED_AT:]):
        outputs = run.content.get("outputs", {})
        if wanted <= set(rates) or not {name, _ATTEMPTS[name]} <= set(outputs):
            continue
        paths = [root / outputs[item]["path"] for item in (name, _ATTEMPTS[name])]
        if not all(files.is_complete(path) for path in paths):
            continue
        calls = pd.read_parquet(paths[0], columns=["call_id", "judge_id", "protocol"])
        attempts = pd.read_parquet(paths[1], columns=["call_id", "started_at", "finished_at"])
        rates = calls_per_second(calls, attempts) | rates
    return rates
