"""Documents: JSON with sorted keys, plain text with its own line ends, and HTML pages."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from kedro_datasets._typing import HTMLPreview
from kedro_datasets.json import JSONDataset
from kedro_datasets.text import TextDataset

from judge_calibration.datasets.checksummed import ChecksummedFile
from judge_calibration.datasets.marks import COLUMN

_ITEMS = "marked_list"


def json_text(value: Any) -> str:
    """Return the value as JSON for people: sorted keys, two spaces, no NaN, a line feed at the end.

    Raises
    ------
    ValueError
        A number is NaN or infinite: JSON has no such numbers; use null and a reason.
    """
    return json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


class Json(ChecksummedFile, JSONDataset):
    """A JSON document with sorted keys.

    Examples
    --------
    .. code-block:: yaml

        judge_card:
          type: judge_calibration.datasets.Json
          filepath: data/08_reporting/judge_card.json
          versioned: true

    >>> import tempfile
    >>> document = Json(filepath=tempfile.mkdtemp() + "/d.json")
    >>> document.save({"b": 1, "a": None})
    >>> document.load()
    {'a': None, 'b': 1}
    """

    def _marked(self, data: Any, word: str) -> Any:
        if isinstance(data, list) and not any(isinstance(item, dict) for item in data):
            # No item can carry the word, an empty list least of all: the file does, and loads as the list.
            return {_ITEMS: data, COLUMN: word}
        return super()._marked(data, word)

    def _write(self, data: Any, file: BinaryIO) -> None:
        file.write(json_text(data).encode("utf-8"))

    def load(self) -> Any:
        """Return the document if the file is the one that was written."""
        data = json.loads(self.checked_path().read_text(encoding="utf-8"))
        return data[_ITEMS] if isinstance(data, dict) and set(data) == {_ITEMS, COLUMN} else data


class Text(ChecksummedFile, TextDataset):
    r"""A text in UTF-8; line ends and every other character are kept as they are.

    Examples
    --------
    >>> import tempfile
    >>> text = Text(filepath=tempfile.mkdtemp() + "/t.txt")
    >>> text.save("one\r\ntwo\n")
    >>> text.load()
    'one\r\ntwo\n'
    """

    def _write(self, data: str, file: BinaryIO) -> None:
        file.write(data.encode("utf-8"))

    def load(self) -> str:
        """Return the text if the file is the one that was written."""
        return self.checked_path().read_bytes().decode("utf-8")


class Html(Text):
    """A page. kedro-viz shows it as a page."""

    def preview(self) -> HTMLPreview:
        """Return the page for kedro-viz."""
        return HTMLPreview(self.load())
