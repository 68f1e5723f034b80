"""One self-contained page: works from a file, asks no network for anything, escapes every text."""

from __future__ import annotations

import base64
import gzip
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from judge_calibration.report.answers import Answer
from judge_calibration.report.blocks import (
    Block,
    FigureBlock,
    MapBlock,
    Section,
    TableBlock,
    Terms,
    tables_of,
)
from judge_calibration.report.glossary import GLOSSARY, terms_of

if TYPE_CHECKING:
    import jinja2


def packaged(name: str) -> str:
    """Return a file of the folder `templates` as text."""
    return resources.files("judge_calibration.report").joinpath("templates", name).read_text(encoding="utf-8")


def templates() -> jinja2.Environment:
    """Return the page templates: every text is escaped, a name that is not given is an error."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(packaged),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _terms(block: Block) -> tuple[Any, ...]:
    return block.terms if isinstance(block, Terms) else ()


def _unique_labels(blocks: Sequence[TableBlock | MapBlock]) -> dict[str, str]:
    """Return how a screen reader calls each table and map, by id: its title, numbered if repeated."""
    seen: Counter[str] = Counter()
    labels = {}
    for block in blocks:
        seen[block.title] += 1
        times = seen[block.title]
        labels[block.id] = block.title if times == 1 else f"{block.title} ({times})"
    return labels


def _plotly_library() -> str:
    """Return plotly's script, gzipped (with a fixed date, for equal bytes) and in base64."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode("utf-8"), 9, mtime=0)).decode("ascii")


def render_page(
    title: str,
    summary: str,
    answers: Sequence[Answer],
    sections: Sequence[Section],
    banners: Sequence[str] = (),
    question: str = "How far can each judge be trusted?",
) -> str:
    """Return the page as HTML text.

    Parameters
    ----------
    title, summary : str
        Heading and the paragraph below it.
    answers : sequence of Answer
        One a cell, shown before anything else.
    sections : sequence of Section
        What follows, in order.
    banners : sequence of str
        Warnings that hold for the whole page, e.g. "SIMULATED".
    question : str
        What the answers are to: the heading above them.
    """
    downloads = {
        table.download_id: table.packed
        for section in sections
        for block in section.blocks
        for table in tables_of(block)
    }
    # Links to definitions only where the page has them.
    defined = {term.id for section in sections for block in section.blocks for term in _terms(block)}
    terms = {
        section.id: [GLOSSARY[name] for name in section.terms or terms_of(section.id) if name in defined]
        for section in sections
    }
    regions = [
        part
        for section in sections
        for block in section.blocks
        for part in ((block,) if isinstance(block, MapBlock) else tables_of(block))
    ]
    has_figures = any(isinstance(block, FigureBlock) for section in sections for block in section.blocks)
    return (
        templates()
        .get_template("page.html.j2")
        .render(
            title=title,
            summary=summary,
            answers=answers,
            sections=sections,
            banners=banners,
            question=question,
            style=packaged("page.css"),
            script=packaged("page.js"),
            downloads=downloads,
            terms=terms,
            labels=_unique_labels(regions),
            library=_plotly_library() if has_figures else "",
        )
    )
