"""Where pairs and logs come from, how pairs are split, and which of them are judged."""

from __future__ import annotations

from pydantic import Field

from judge_calibration.options.base import Options
from judge_calibration.options.layout import SourceFile


class DrawOptions(Options):
    """The subset of pairs that is judged, drawn by hash over domain x difficulty x manipulation."""

    size: int | None = Field(
        default=12, ge=0, description="number of pairs; null judges every pair that has texts, 0 none"
    )
    salt: str = "quick set 1"
    """Another salt draws another subset. Length plays no part, and neither does the order of the rows."""
    sources: tuple[str, ...] = Field(default=(), description="only pairs of these sources; empty: all")
    splits: tuple[str, ...] = Field(default=(), description="only pairs of these splits; empty: both")
    manipulations: tuple[str, ...] = Field(
        default=(), description="of pairs with a controlled change only those with one of these; empty: all"
    )
    only_sentinel: bool = Field(default=False, description="only the protected pairs (environment sentinel)")


class DataPrepOptions(Options):
    """Parameters of the pipeline `data_prep`."""

    use_bank: bool = Field(default=True, description="whether the authored pair bank is part of `pairs`")
    private_sentinel: str | None = Field(
        default=None, description="folder of task files whose pairs are sentinels and are never published"
    )
    pair_files: tuple[SourceFile, ...] = ()
    log_files: tuple[SourceFile, ...] = ()
    label_files: tuple[SourceFile, ...] = ()
    """Labels by people from public or own files (layouts of kind labels), not this project's own rounds."""
    frozen_split: str | None = Field(
        default=None,
        description="CSV or Parquet with source, base_id, split (the artifact `splits`); it wins",
    )
    train_share: float = Field(default=0.75, gt=0, lt=1)
    judged: DrawOptions = DrawOptions()
