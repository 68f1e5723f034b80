"""A word that everything carries which an environment makes, so that no copy of a part of it loses it."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from kedro.io import CatalogProtocol

COLUMN = "mark"
"""Column of tables, and key of documents, that holds the word."""


def marked(data: Any, word: str) -> Any:
    """Return a table, document, text, page or figure that carries the word.

    Parameters
    ----------
    data : DataFrame, dict, list, str or plotly figure
        What is saved. It is not changed.
    word : str
        For example SIMULATED.

    Returns
    -------
    object
        Tables with a column ``mark``, documents (and lists of them) with a key ``mark``, figures with the
        word in the title and across the plot, texts and pages with the word in front, unless it is in them.

    Examples
    --------
    >>> marked(pd.DataFrame({"C": [0.5]}), "SIMULATED").values.tolist()
    [[0.5, 'SIMULATED']]
    >>> marked({"C": 0.5}, "SIMULATED"), marked([{"C": 0.5}], "SIMULATED")
    ({'C': 0.5, 'mark': 'SIMULATED'}, [{'C': 0.5, 'mark': 'SIMULATED'}])
    >>> marked({"cell-1": {"C": 0.5}}, "SIMULATED")
    {'cell-1': {'C': 0.5, 'mark': 'SIMULATED'}}
    >>> marked("<body><p>C</p></body>", "SIMULATED")
    '<body><p><strong>SIMULATED</strong></p><p>C</p></body>'
    """
    if isinstance(data, pd.DataFrame):
        return data.assign(**{COLUMN: pd.Series(word, index=data.index, dtype="str")})
    if isinstance(data, dict):
        if data and all(isinstance(item, dict) for item in data.values()):
            # A register by id: the word goes into each entry, not beside them as if it were one.
            return {name: {**item, COLUMN: word} for name, item in data.items()}
        return {**data, COLUMN: word}
    if isinstance(data, list):
        return [{**item, COLUMN: word} if isinstance(item, dict) else item for item in data]
    if isinstance(data, str):
        return data if word in data else _marked_text(data, word)
    return _marked_figure(data, word) if hasattr(data, "add_annotation") else data


def _marked_text(text: str, word: str) -> str:
    start = text.find("<body")
    if start < 0:
        return f"{word}\n\n{text}"
    end = text.index(">", start) + 1
    return f"{text[:end]}<p><strong>{html.escape(word)}</strong></p>{text[end:]}"


def _marked_figure(figure: Any, word: str) -> Any:
    out = type(figure)(figure)
    title = out.layout.title.text
    out.update_layout(title_text=f"{word}: {title}" if title else word)
    return out.add_annotation(
        text=word,
        xref="paper",
        yref="paper",
        x=0.5,
        y=0.5,
        showarrow=False,
        textangle=-20,
        font={"size": 48, "color": "rgba(160, 0, 0, 0.18)"},
    )


def mark_catalog(catalog: CatalogProtocol, word: str) -> None:
    """Let every dataset of a catalog that writes checked files add the word to what it saves.

    Files of folders are left as they are, but for pages and READMEs: they go to other programs, and whoever
    makes them marks them.
    """
    from judge_calibration.datasets.checksummed import Checksummed

    for name in list(catalog):
        dataset = catalog.get(name)
        if isinstance(dataset, Checksummed):
            dataset.mark = word
