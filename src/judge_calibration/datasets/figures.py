"""Plotly figures as JSON, which kedro-viz draws."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from kedro_datasets.plotly import JSONDataset

from judge_calibration.datasets.checksummed import ChecksummedFile
from judge_calibration.datasets.documents import json_text


class PlotlyFigure(ChecksummedFile, JSONDataset):
    """A plotly figure as JSON with sorted keys: the same figure gives the same bytes.

    Examples
    --------
    .. code-block:: yaml

        figure_ceiling:
          type: judge_calibration.datasets.PlotlyFigure
          filepath: data/08_reporting/figure_ceiling.json
          versioned: true
    """

    def _write(self, data: Any, file: BinaryIO) -> None:
        # The standard engine: the fast one (orjson) writes the same figure differently where it is installed.
        file.write(json_text(json.loads(data.to_json(engine="json"))).encode("utf-8"))
