"""Where things are: the project, its package and its data folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from judge_calibration.errors import RunError
from judge_calibration.options.faults import suggestion
from judge_calibration.runs.versions import RUNS_FOLDER

DEFAULT_DATA = "data"


def environment_label(env: str | None) -> str:
    """Return the name under which an environment is recorded: ``base`` unless one was named.

    Examples
    --------
    >>> environment_label(None), environment_label("replay")
    ('base', 'replay')
    """
    return "base" if env in (None, "", "local") else str(env)


@dataclass(frozen=True)
class Project:
    """The folders of a project."""

    root: Path
    package: Path
    data: Path

    @property
    def runs(self) -> Path:
        """The folder of the run manifests."""
        return self.data / RUNS_FOLDER


def data_folder(root: Path, config_loader: object) -> Path:
    """Return the data folder that ``globals.yml`` names."""
    from kedro.config import MissingConfigException

    try:
        names = config_loader["globals"]  # type: ignore[index]
    except MissingConfigException:
        names = {}
    return root / str(names.get("data", DEFAULT_DATA))


def find_project(env: str | None = None) -> Project:
    """Return the project around the working folder.

    Raises
    ------
    RunError
        The working folder is not in a Kedro project, or there is no such environment.
    """
    from kedro.framework.project import PACKAGE_NAME, settings
    from kedro.utils import find_kedro_project

    env = env or os.environ.get("KEDRO_ENV")  # as Kedro's own sessions do
    root = find_kedro_project(Path.cwd())
    if root is None or PACKAGE_NAME is None:
        raise RunError(f"{Path.cwd()} is not in a Kedro project.", "change into the project's folder first")
    check_environment(root / settings.CONF_SOURCE, env)
    loader = settings.CONFIG_LOADER_CLASS(
        conf_source=str(root / settings.CONF_SOURCE), env=env, **settings.CONFIG_LOADER_ARGS
    )
    return Project(root, package_folder(), data_folder(root, loader))


def check_environment(conf: Path, env: str | None) -> None:
    """Refuse an environment that has no folder; what nobody configured would else run as `base`.

    Raises
    ------
    RunError
        With the environments that there are.
    """
    if not env or not conf.is_dir() or (conf / env).is_dir():
        return
    there = sorted(p.name for p in conf.iterdir() if p.is_dir() and p.name not in ("base", "local"))
    raise RunError(
        f"There is no environment {env!r}{suggestion(env, there)}: {conf.name}/{env} is absent.",
        f"choose from {', '.join(there)}, or leave --env out",
    )


def package_folder() -> Path:
    """Return the folder of the project's package."""
    from importlib.util import find_spec

    from kedro.framework.project import PACKAGE_NAME

    spec = find_spec(PACKAGE_NAME) if PACKAGE_NAME else None
    if spec is None or spec.origin is None:
        raise RunError("No Kedro project is configured.", "start Kedro in the project's folder")
    return Path(spec.origin).resolve().parent
