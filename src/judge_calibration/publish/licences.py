"""The licence of every published file: a known one, or the publication is refused.

Known are the SPDX list (from the library ``packaging``), expressions of its names, and ``LicenseRef-...``
names that a reviewer declares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from judge_calibration.errors import Problem
from judge_calibration.publish.review import Review
from judge_calibration.publish.selection import PublishedFile, Selection
from judge_calibration.runs.manifest import Run
from judge_calibration.runs.results import path_in

_ALIASES = {
    "odc-by": "ODC-By-1.0",
    "odc-by-1.0": "ODC-By-1.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "cc by 4.0": "CC-BY-4.0",
    "cc by-nc 4.0": "CC-BY-NC-4.0",
    "public domain": "LicenseRef-public-domain",
}
_CODE = "Apache-2.0"
PROJECTS_OWN = (_CODE, "the project's licence")
"""The licence of what the project itself wrote, and how it is known."""
_WANTED = "an SPDX licence, declared in the layout, in `set: {licence: ...}`, or under licences in the review"


def known_licence(text: object) -> str | None:
    """Return the licence as SPDX writes it; None for one that tells others nothing.

    Examples
    --------
    >>> known_licence("cc-by-4.0"), known_licence("ODC-BY"), known_licence("own"), known_licence(None)
    ('CC-BY-4.0', 'ODC-By-1.0', None, None)
    """
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    if not isinstance(text, str) or not text.strip():
        return None
    try:
        return str(canonicalize_license_expression(_ALIASES.get(text.strip().lower(), text.strip())))
    except InvalidLicenseExpression:
        return None


def joined(licences: Iterable[str]) -> str:
    """Return one SPDX expression that holds all of them.

    Examples
    --------
    >>> joined(["MIT", "CC-BY-4.0 AND MIT"])
    'CC-BY-4.0 AND MIT'
    """
    parts: set[str] = set()
    for licence in licences:
        parts |= {licence} if " OR " in licence else set(licence.split(" AND "))
    return " AND ".join(sorted(f"({part})" if " OR " in part else part for part in parts))


def licences_of(
    selection: Selection, root: Path, review: Review
) -> tuple[dict[str, tuple[str, str]], list[Problem]]:
    """Return the licence of every file and how it is known, and what is not known.

    What a run made of pairs carries the licences of all pairs in it.

    Returns
    -------
    licences : dict
        By path: the SPDX expression, and where it was declared.
    problems : list of Problem
        Files and sources of pairs without a known licence.
    """
    declared = {entry.path: entry for entry in review.licences}
    problems: list[Problem] = []
    of_source: dict[str, tuple[str, str]] = {}
    by_prefix: dict[str, str] = {}
    for run in selection.runs:
        for row in _table(run, "source_files", root).to_dict("records"):
            path = str(row["path"])
            found = known_licence(row["licence"])
            if path in declared:
                of_source[path] = (declared[path].licence, f"review: {declared[path].reason}")
            elif found:
                of_source[path] = (found, f"layout {row['layout']}")
            elif path not in {problem.where for problem in problems}:
                problems.append(Problem(path, f"the licence {row['licence']!r}", _WANTED))
            if path in of_source:
                by_prefix[str(row["sha256"])[:12]] = of_source[path][0]
    inputs = _input_licences(selection, root)
    of_pairs = _pairs_licences(selection, root, by_prefix, declared, problems)
    material = joined([*of_pairs, *(licence for licence, _ in of_source.values())] or [_CODE])
    found_all: dict[str, tuple[str, str]] = {}
    for file in selection.files:
        found_all[file.path] = _of_file(file, of_source, inputs, declared, material)
        if not found_all[file.path][0]:
            problems.append(Problem(file.path, "no licence", _WANTED))
    return found_all, problems


def _of_file(
    file: PublishedFile,
    of_source: Mapping[str, tuple[str, str]],
    inputs: Mapping[str, tuple[str, str]],
    declared: Mapping[str, Any],
    material: str,
) -> tuple[str, str]:
    if file.path in declared:
        return declared[file.path].licence, f"review: {declared[file.path].reason}"
    if file.kind in ("code", "setting"):
        return PROJECTS_OWN
    if file.kind == "source":
        # A layout or a prompt that somebody wrote as part of the configuration has no rows of anybody.
        return of_source.get(file.path) or (
            (_CODE, "configuration of the project")
            if file.path.endswith((".yml", ".yaml"))
            else ("", "nowhere")
        )
    if file.kind == "input":
        return inputs.get(file.dataset or "", ("", "nowhere"))
    return material, "the licences of all pairs and logs of the run together"


def _input_licences(selection: Selection, root: Path) -> dict[str, tuple[str, str]]:
    """Return the licence that an authored input states itself."""
    import yaml

    stated: dict[str, tuple[str, str]] = {}
    for file in selection.files:
        if file.kind != "input" or file.dataset in stated or not file.path.endswith((".yml", ".yaml")):
            continue
        content = yaml.safe_load((root / file.path).read_text(encoding="utf-8"))
        if isinstance(content, Mapping):
            found = known_licence(content.get("license") or content.get("licence"))
            if found and file.dataset:
                stated[file.dataset] = (found, f"stated in {file.path}")
    return stated


def _pairs_licences(
    selection: Selection,
    root: Path,
    by_prefix: Mapping[str, str],
    declared: Mapping[str, Any],
    problems: list[Problem],
) -> list[str]:
    """Return the licences of the pairs; name the sources whose pairs have none that is known."""
    licences: set[str] = set()
    for run in selection.runs:
        rows = _table(run, "pairs", root)
        if rows.empty or not {"source", "license", "provenance"} <= set(rows.columns):
            continue
        prefix = rows["provenance"].fillna("").str.extract(r"\(sha256 ([0-9a-f]{12})\)", expand=False)
        groups = rows.assign(file=prefix.fillna("")).groupby(["source", "license", "file"], dropna=False)
        for (source, licence, file), part in groups:
            name = f"pairs of {source}"
            found = by_prefix.get(str(file)) or known_licence(licence)
            if name in declared:
                found = declared[name].licence
            if found:
                licences.add(found)
            elif file == "" and name not in {problem.where for problem in problems}:
                shown = licence if isinstance(licence, str) else None
                problems.append(Problem(name, f"the licence {shown!r} ({len(part)} pairs)", _WANTED))
    return sorted(licences)


def _table(run: Run, name: str, root: Path) -> pd.DataFrame:
    path = path_in(run, name, root)
    return pd.DataFrame() if path is None else pd.read_parquet(path)
