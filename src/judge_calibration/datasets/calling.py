"""What asking needs beside tables: where the call store is, and the judges' keys."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from kedro.io.core import AbstractDataset, DatasetError


class CallStore(AbstractDataset[Any, Path]):
    """The folder of the call store. Loading gives its path; answers are kept there by asking alone.

    Parameters
    ----------
    path : str
        The folder; relative ones are taken from the project's root, wherever a command is started.
    metadata : dict, optional
        For kedro-viz.

    Examples
    --------
    .. code-block:: yaml

        call_store:
          type: judge_calibration.datasets.CallStore
          path: data/calls

    >>> CallStore(path="/data/calls").load().name
    'calls'
    """

    def __init__(self, *, path: str | os.PathLike[str], metadata: dict[str, Any] | None = None) -> None:
        self._path = Path(path)
        self.metadata = metadata

    def load(self) -> Path:
        """Return the folder; it need not be there yet."""
        return self._path

    def save(self, data: Any) -> NoReturn:
        """Refuse: only asking writes to the store."""
        raise DatasetError(f"{self._path} is the call store: it is written by asking, never as a dataset")

    def _describe(self) -> dict[str, Any]:
        return {"path": self._path}

    def _exists(self) -> bool:
        return True


class Keys(AbstractDataset[Any, dict[str, "str | None"]]):
    """The judges' keys, by the name that a judge's ``key_variable`` gives. None is a key that is not set.

    A key is not looked at before the first call that needs it, and is never shown.

    Parameters
    ----------
    keys : mapping
        Name to ``{credentials: <entry of credentials.yml>}``.
    metadata : dict, optional
        For kedro-viz.

    Examples
    --------
    .. code-block:: yaml

        judge_keys:
          type: judge_calibration.datasets.Keys
          keys:
            OPENAI_API_KEY: {credentials: OPENAI_API_KEY}

    >>> keys = Keys(keys={"OPENAI_API_KEY": {"credentials": "sk-secret"}})
    >>> keys.load()["OPENAI_API_KEY"], "sk-secret" in str(keys)
    ('sk-secret', False)
    """

    def __init__(
        self,
        *,
        keys: Mapping[str, Mapping[str, str | None]] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self._keys = {name: entry.get("credentials") for name, entry in (keys or {}).items()}
        self.metadata = metadata

    def load(self) -> dict[str, str | None]:
        """Return the keys."""
        return dict(self._keys)

    def save(self, data: Any) -> NoReturn:
        """Refuse: keys are never written."""
        raise DatasetError("keys are read from credentials, never written")

    def _describe(self) -> dict[str, Any]:
        return {"names": sorted(self._keys)}

    def _exists(self) -> bool:
        return True
