"""Parameters for the commands that are no run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeVar

from judge_calibration.errors import OptionsError, Problem
from judge_calibration.options.base import Options
from judge_calibration.options.faults import faults_of
from judge_calibration.session.parameters import check_files

Model = TypeVar("Model", bound=Options)


def read_parameters(root: Path, env: str | None, runtime: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the parameters of an environment as Kedro reads them."""
    from kedro.framework.project import settings

    check_files(root / settings.CONF_SOURCE, env or os.environ.get("KEDRO_ENV"))
    loader = settings.CONFIG_LOADER_CLASS(
        conf_source=str(root / settings.CONF_SOURCE),
        env=env or os.environ.get("KEDRO_ENV"),
        runtime_params=runtime or {},
        **settings.CONFIG_LOADER_ARGS,
    )
    return dict(loader["parameters"])


def block_of(parameters: dict[str, Any], name: str, model: type[Model]) -> Model:
    """Return one block of parameters; what is absent has the model's defaults.

    Raises
    ------
    OptionsError
        With every fault of the block.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(parameters.get(name) or {})
    except ValidationError as error:
        problems = [
            Problem(".".join([f"parameter {name}", *fault.place]), fault.found, fault.wanted)
            for fault in faults_of(error, model)
        ]
        raise OptionsError(
            f"The parameters '{name}' are not what they have to be.",
            problems,
            f"correct conf/*/{name}/parameters.yml, or --params",
        ) from error
