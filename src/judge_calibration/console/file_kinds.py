"""What a file is that holds no rows to read: told by its first bytes, never by its name alone."""

from __future__ import annotations

import csv
import json
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

_MAGIC = (
    (b"%PDF", "a PDF document", "export what it holds as CSV, JSON lines or Parquet"),
    (b"\x89PNG", "a picture (PNG)", "name a file with rows: CSV, TSV, JSON, JSON lines or Parquet"),
    (b"\xff\xd8\xff", "a picture (JPEG)", "name a file with rows: CSV, TSV, JSON, JSON lines or Parquet"),
    (b"SQLite format 3\x00", "an SQLite database", "export the table with the pairs as CSV"),
    (b"GGUF", "the weights of a model (GGUF)", "name it as the model of a judge: docs/embedded-judge.md"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it and name the file inside"),
    (b"Rar!", "a RAR archive", "unpack it and name the file inside"),
    (b"\xd0\xcf\x11\xe0", "an old Office document (xls, doc)", "save the sheet as CSV (UTF-8)"),
    (b"ARROW1", "an Arrow file", "write it as Parquet: pyarrow.feather.read_table, then pq.write_table"),
)
_DOCUMENTS = (
    (
        {"nodes", "outputs", "inputs"},
        "the manifest of a run",
        "see the run: kedro runs; check it: kedro audit RUN",
    ),
    ({"cards"}, "the judge cards of a run", "read it as it is; the report shows the same numbers"),
    ({"outcome", "judge", "humans"}, "a decision of the gate", "read it as it is; its page lies beside it"),
    (
        {"cells", "frozen", "current"},
        "a comparison of the sentinel",
        "read it as it is; its page lies beside it",
    ),
    ({"cells", "nbformat"}, "a notebook", "name the file that it reads"),
)


class Kind(NamedTuple):
    """What a file is, and what to do with it."""

    what: str
    step: str


def kind_of(path: Path) -> Kind | None:
    """Return what a file is, if it holds no rows that a layout could describe; None if it may hold some.

    Parameters
    ----------
    path : pathlib.Path
        A file or a folder.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "x.csv"
    >>> _ = place.write_bytes(b"")
    >>> kind_of(place).what
    'empty: 0 bytes'
    """
    if path.is_dir():
        return _folder(path)
    with path.open("rb") as file:
        start = file.read(4096)
    if not start:
        return Kind("empty: 0 bytes", "fetch or write it again")
    for magic, what, step in _MAGIC:
        if start.startswith(magic):
            return Kind(what, step)
    if start.startswith(b"PK"):
        return _archive(path)
    text = start.decode("utf-8", "replace").lstrip("\ufeff \r\n\t")
    lowered = text[:300].lower()
    if lowered.startswith(("<!doctype html", "<html")):
        ours = "content-security-policy" in text.lower() and "default-src 'none'" in text
        what = "a page of ours (a report, a gate or an audit queue)" if ours else "a web page"
        return Kind(what, "open it in a browser; its numbers lie beside it as Parquet and CSV")
    if path.suffix == ".sha256":
        return Kind("the checksum of another file", "check a whole run: kedro audit RUN")
    if path.suffix in (".yml", ".yaml"):
        return Kind(_yaml(text), "name the file with the rows: kedro doctor FILE --layout LAYOUT.yml")
    return _document(path) if path.suffix == ".json" else None


def _folder(path: Path) -> Kind:
    inside = sorted(entry.name for entry in path.iterdir())
    if not inside:
        return Kind("an empty folder", "name a file")
    kinds = sorted({Path(name).suffix for name in inside if Path(name).suffix})
    step = f"name a file, or several at once: kedro doctor '{path}/*{kinds[0] if kinds else ''}'"
    if (path / "manifest.json").is_file():
        return Kind("the folder of a run", f"check it: kedro audit {path.name}")
    if (path / f"{path.name}.parquet").is_file() or path.name.endswith(".parquet"):
        return Kind("the folder of a dataset, one folder a run inside", "name the .parquet file of a run")
    shown = ", ".join(inside[:5]) + (f" and {len(inside) - 5} more" if len(inside) > 5 else "")
    return Kind(f"a folder with {shown}", step)


def _archive(path: Path) -> Kind | None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            locked = any(entry.flag_bits & 1 for entry in archive.infolist())
            broken = None if locked else archive.testzip()
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error):
        return Kind("a broken or cut zip archive", "fetch or write it again")
    except NotImplementedError as unknown:  # zipfile's word for a method of compression that it lacks
        return Kind(f"a zip archive that Python cannot unpack ({unknown})", "unpack it with another program")
    if locked:
        return Kind("a zip archive that is locked with a password", "unpack it, and name the file inside")
    if broken is not None:
        return Kind(f"a damaged zip archive ({broken} does not match its checksum)", "fetch it again")
    if any(name.startswith("xl/") for name in names):
        return _labels_of_ours(path)
    if any(name.startswith("word/") for name in names):
        return Kind("a Word document", "export what it holds as CSV")
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return Kind(f"a zip archive with {shown}", "unpack it and name the file inside")


def _labels_of_ours(path: Path) -> Kind | None:
    """Tell a workbook of our own labelling rounds from one whose rows a layout may describe."""
    from openpyxl import load_workbook

    try:
        titles = load_workbook(path, read_only=True).sheetnames
    except (KeyError, ValueError, zipfile.BadZipFile):
        return Kind("a workbook that cannot be read", "save it again as .xlsx, or as CSV (UTF-8)")
    if titles == ["labels", "rubric"]:
        return Kind("a workbook of labels of ours", "name it under annotation.labels.files as it is")
    return None


def _yaml(text: str) -> str:
    if "fields:" in text and "kind:" in text:
        return "a description of a layout"
    if "candidates" in text or "mutations" in text:
        return "a task of the pair bank"
    return "a file of parameters or another YAML document"


def _document(path: Path) -> Kind | None:
    if path.stat().st_size > 5_000_000:
        return None
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except ValueError:
        return None
    if not isinstance(content, dict):
        return None
    for keys, what, step in _DOCUMENTS:
        if keys <= set(content):
            return Kind(what, step)
    return None


def delimiter_of(path: Path) -> str | None:
    r"""Return the delimiter of a CSV file whose header has no comma; None if it has one, or is one column.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "x.csv"
    >>> _ = place.write_text("question;response_a;response_b\nq;a, really;b\n")
    >>> delimiter_of(place)
    ';'
    """
    if path.suffix.lower() != ".csv":
        return None
    start = path.read_bytes()[:65536]
    encoding = "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    lines = start.decode(encoding, "replace").splitlines()
    if not lines:
        return None
    counts = {mark: len(next(csv.reader([lines[0]], delimiter=mark))) for mark in (",", ";", "\t", "|")}
    best = max(counts, key=lambda mark: counts[mark])
    return best if best != "," and counts[","] < counts[best] else None
