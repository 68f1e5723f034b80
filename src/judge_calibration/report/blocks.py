"""What a page is built from: sections that hold figures, tables, prose, or say what is missing."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def packed_csv(frame: pd.DataFrame) -> str:
    """Return the frame as CSV, gzipped (equal frames give equal bytes) and in base64.

    No text cell begins in a way that a spreadsheet would run as a formula.
    """
    safe = frame.copy()
    for name in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[name].dtype):
            safe[name] = safe[name].map(_without_formula)
    content = safe.to_csv(index=False, lineterminator="\n").encode("utf-8")
    return base64.b64encode(gzip.compress(content, 6, mtime=0)).decode("ascii")


def _without_formula(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value


@dataclass(frozen=True)
class Prose:
    """Paragraphs of plain text."""

    paragraphs: tuple[str, ...]
    kind: str = field(default="prose", init=False)


@dataclass(frozen=True)
class TableBlock:
    """A table for people, with the exact numbers to download.

    Attributes
    ----------
    id : str
        Unique on the page.
    title, note : str
        Caption, and the rule in a line.
    shown : pandas.DataFrame
        Text cells, as a person reads them; the first column names the row.
    exact : pandas.DataFrame
        What the download holds.
    simulated : bool
        Marks the table SIMULATED.
    """

    id: str
    title: str
    note: str
    shown: pd.DataFrame
    exact: pd.DataFrame
    simulated: bool = False
    kind: str = field(default="table", init=False)

    @cached_property
    def packed(self) -> str:
        """What the download holds, packed."""
        return packed_csv(self.exact)

    @property
    def download_id(self) -> str:
        """Names the download on the page; tables with the same numbers share one."""
        return "csv-" + hashlib.sha256(self.packed.encode("ascii")).hexdigest()[:16]

    @property
    def rows(self) -> list[list[str]]:
        """The cells, row by row."""
        return [[str(value) for value in row] for row in self.shown.itertuples(index=False)]


@dataclass(frozen=True)
class FigureBlock:
    """A figure with its rule, its n and its numbers.

    Attributes
    ----------
    figure : str
        The figure as plotly JSON.
    alternative : str
        What the figure shows, for those who do not see it.
    simulated : bool
        Marks the figure SIMULATED.
    """

    id: str
    title: str
    note: str
    alternative: str
    figure: str
    table: TableBlock
    simulated: bool = False
    kind: str = field(default="figure", init=False)


@dataclass(frozen=True)
class MapCell:
    """One cell of a map: what it says, in words first and in a tone second."""

    text: str
    tone: str


@dataclass(frozen=True)
class MapBlock:
    """A map of slices: a row a slice, a column a criterion, each cell worded and toned.

    Attributes
    ----------
    title, note : str
        Whose map it is; the rule in a line.
    columns : tuple of str
        Heads of the columns after the first.
    lines : tuple of (str, tuple of MapCell)
        Slice, and what is said of it.
    table : TableBlock
        The numbers behind it, to download.
    open : bool
        Whether it is unfolded at first.
    """

    id: str
    title: str
    note: str
    columns: tuple[str, ...]
    lines: tuple[tuple[str, tuple[MapCell, ...]], ...]
    table: TableBlock
    open: bool = True
    simulated: bool = False
    kind: str = field(default="map", init=False)


@dataclass(frozen=True)
class Terms:
    """Definitions, each with an anchor that figures and tables link to."""

    terms: tuple[Any, ...]
    kind: str = field(default="terms", init=False)


@dataclass(frozen=True)
class FileLink:
    """Another page that lies beside this one, by its file name."""

    text: str
    href: str
    kind: str = field(default="link", init=False)


@dataclass(frozen=True)
class Missing:
    """What a section lacks and the command that would bring it."""

    what: str
    command: str
    kind: str = field(default="missing", init=False)


Block = Prose | TableBlock | FigureBlock | MapBlock | Terms | FileLink | Missing


def tables_of(block: Block) -> tuple[TableBlock, ...]:
    """Return the tables whose numbers a block offers."""
    if isinstance(block, TableBlock):
        return (block,)
    return (block.table,) if isinstance(block, (FigureBlock, MapBlock)) else ()


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes
    ----------
    terms : tuple of str
        Ids of the definitions that its figures and tables link to; those of the glossary by default.
    """

    id: str
    title: str
    lead: str
    blocks: Sequence[Block]
    terms: tuple[str, ...] = ()


def marked(section: Section, simulated: bool) -> Section:
    """Return the section with every figure, table and map marked SIMULATED, if it is."""
    if not simulated:
        return section
    return replace(section, blocks=[marked_block(block) for block in section.blocks])


def marked_block(block: Block) -> Block:
    """Return the block marked SIMULATED, with the table behind it; prose and links have no mark."""
    if isinstance(block, TableBlock):
        return replace(block, simulated=True)
    if isinstance(block, (FigureBlock, MapBlock)):
        return replace(block, simulated=True, table=replace(block.table, simulated=True))
    return block
