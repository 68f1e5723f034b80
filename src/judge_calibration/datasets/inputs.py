"""Small authored inputs: read, never written, and identified by their bytes."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from kedro.io.core import AbstractDataset, DatasetError

from judge_calibration.runs.files import sha256_of_file


class Yaml(AbstractDataset[Any, Any]):
    """A YAML file that people write. It is read with the safe loader and never written.

    Parameters
    ----------
    filepath : str
        The file.
    metadata : dict, optional
        For kedro-viz.

    Examples
    --------
    .. code-block:: yaml

        attribute_inventory:
          type: judge_calibration.datasets.Yaml
          filepath: data/01_raw/attributes/inventory.yml
    """

    def __init__(self, *, filepath: str | os.PathLike[str], metadata: dict[str, Any] | None = None) -> None:
        self._filepath = PurePosixPath(str(filepath))
        self.metadata = metadata

    def load(self) -> Any:
        """Return what the file holds.

        Raises
        ------
        DatasetError
            It is absent or is not YAML; the message names the line.
        """
        import yaml

        path = Path(self._filepath)
        if not path.is_file():
            raise DatasetError(f"{path} is absent; wanted a YAML file that is part of the project")
        try:
            return yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise DatasetError(f"{path} is not YAML: {error}") from error

    def save(self, data: Any) -> NoReturn:
        """Refuse: inputs are written by people."""
        raise DatasetError(f"{self._filepath} is an input: it is read, never written")

    def input_sha256(self) -> str:
        """Return the SHA-256 of the file."""
        return sha256_of_file(Path(self._filepath))

    def _describe(self) -> dict[str, Any]:
        return {"filepath": self._filepath}

    def _exists(self) -> bool:
        return Path(self._filepath).is_file()
