"""A secret from the environment: read when a node needs it, never stored, never shown."""

from __future__ import annotations

import os
from typing import Any, NoReturn

from kedro.io.core import AbstractDataset, DatasetError


class Secret(AbstractDataset[str, str]):
    """The value of an environment variable, or an empty text where it is not set.

    Parameters
    ----------
    variable : str
        Name of the variable. Only the name appears in the catalog, in messages and in manifests.
    metadata : dict, optional
        For kedro-viz.

    Examples
    --------
    .. code-block:: yaml

        annotation_secret:
          type: judge_calibration.datasets.secret.Secret
          variable: JUDGE_CALIBRATION_ANNOTATION_SECRET

    >>> Secret(variable="A_VARIABLE_THAT_NOBODY_SETS").load()
    ''
    """

    def __init__(self, *, variable: str, metadata: dict[str, Any] | None = None) -> None:
        self._variable = variable
        self.metadata = metadata

    def load(self) -> str:
        """Return the variable's value; '' where it is not set."""
        return os.environ.get(self._variable, "")

    def save(self, data: str) -> NoReturn:
        """Refuse: a secret is set by a person."""
        raise DatasetError(f"the secret {self._variable} is read from the environment, never written")

    def _describe(self) -> dict[str, Any]:
        return {"variable": self._variable}

    def _exists(self) -> bool:
        return True
