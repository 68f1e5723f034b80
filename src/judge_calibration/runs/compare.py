"""Compare two runs by their manifests, and name what made the first artifact differ."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from judge_calibration.runs.environment import imports_of
from judge_calibration.runs.manifest import flattened, nested

TOLERANCE = 1e-8
"""Relative tolerance of fitted values between platforms; counts and text have to be equal."""

_CONTROL = (".asking.offline", ".asking.store")

Mode = Literal["bytes", "tolerance"]


@dataclass(frozen=True)
class Difference:
    """An artifact that is not the same in both runs."""

    name: str
    node: str
    detail: str


@dataclass(frozen=True)
class Comparison:
    """What two runs have in common.

    Attributes
    ----------
    mode : {'bytes', 'tolerance'}
        What was checked: equal bytes (the same platform, packages and BLAS kernel), or equal counts and
        text and numbers within 1e-8 relative.
    compared : tuple of str
        The artifacts that were compared, in the order in which they are made.
    not_compared : tuple of str
        Artifacts that never repeat (attempts) and, in the mode ``tolerance``, pages and other texts.
    differences : tuple of Difference
        In the order in which the artifacts are made.
    causes : tuple of str
        What made the first of them differ: parameters, inputs or code that its node uses.
    """

    mode: Mode
    compared: tuple[str, ...]
    not_compared: tuple[str, ...]
    differences: tuple[Difference, ...]
    causes: tuple[str, ...]


def never_repeats(name: str) -> bool:
    """Say whether an artifact holds times and dates, so that its hash is kept but never compared."""
    return name == "attempts" or name.endswith("_attempts")


def without_control(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest without the parameters that say where answers come from, not what is asked.

    Repeating a run from its store sets ``asking.offline``; asking afresh sets ``asking.store``.
    """
    flat = flattened(content["parameters"])
    kept = {name: value for name, value in flat.items() if not name.endswith(_CONTROL)}
    return {**content, "parameters": nested(kept)}


def agreement(before: Path, after: Path) -> pd.DataFrame:
    """Count how often two tables of verdicts agree, by judge, protocol and temperature.

    Parameters
    ----------
    before, after : pathlib.Path
        Parquet files of the table ``verdicts``.

    Returns
    -------
    pandas.DataFrame
        Columns judge_id, protocol, temperature (None: not set), n (judgments in both), same (those with the
        same outcome and verdict).
    """
    key = ["pair_id", "judge_id", "instrument_id", "protocol", "order", "temperature", "repetition"]
    both = pd.read_parquet(before).merge(pd.read_parquet(after), on=key, suffixes=("_before", "_after"))
    verdicts = both["verdict_before"].fillna("") == both["verdict_after"].fillna("")
    both["same"] = verdicts & (both["outcome_before"] == both["outcome_after"])
    groups = both.groupby(["judge_id", "protocol", "temperature"], dropna=False)["same"]
    table = groups.agg(n="size", same="sum").reset_index()
    table["temperature"] = table["temperature"].astype(object).where(table["temperature"].notna(), None)
    return table


def compare(old: Mapping[str, Any], new: Mapping[str, Any], root: Path, package: Path) -> Comparison:
    """Compare every artifact of two manifests.

    Parameters
    ----------
    old, new : mapping
        The manifests' contents.
    root : pathlib.Path
        The project, to which their paths are relative.
    package : pathlib.Path
        The package's folder, to find which code a node uses.
    """
    mode: Mode = "tolerance" if list(_surroundings(old, new)) else "bytes"
    compared, skipped, differences = [], [], []
    for node in old["nodes"]:
        for name in node["outputs"]:
            before, after = old["outputs"].get(name), new["outputs"].get(name)
            if before is None:
                continue
            if never_repeats(name) or (mode == "tolerance" and not _has_numbers(before["path"])):
                skipped.append(name)
                continue
            compared.append(name)
            detail = "it was not made again" if after is None else _difference(before, after, root, mode)
            if detail:
                differences.append(Difference(name, node["name"], detail))
    causes = tuple(_causes(differences[0], old, new, package)) if differences else ()
    return Comparison(mode, tuple(compared), tuple(skipped), tuple(differences), causes)


def _has_numbers(path: str) -> bool:
    return path.endswith((".parquet", ".csv", ".json"))


def _difference(before: Mapping[str, Any], after: Mapping[str, Any], root: Path, mode: Mode) -> str:
    """Return what differs between two files, or nothing."""
    if before["sha256"] == after["sha256"]:
        return ""
    if mode == "bytes":
        if before["content_sha256"] == after["content_sha256"]:
            return "the bytes differ, the rows are the same"
        rows = f"{before['rows']} rows before, {after['rows']} now"
        return f"{rows}; SHA-256 {before['sha256'][:12]} before, {after['sha256'][:12]} now"
    old_path, new_path = root / before["path"], root / after["path"]
    if not old_path.exists():
        return f"{before['path']} is gone, so only its hash could be compared, and that differs"
    if old_path.suffix == ".json":
        return _json_difference(_read_json(old_path), _read_json(new_path))
    return _table_difference(_read_table(old_path), _read_table(new_path))


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _read_table(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def _table_difference(before: pd.DataFrame, after: pd.DataFrame) -> str:
    if list(before.columns) != list(after.columns):
        only_one = sorted(set(before.columns) ^ set(after.columns))
        return f"columns {only_one} are in one only" if only_one else "the order of the columns differs"
    if len(before) != len(after):
        return f"{len(before)} rows before, {len(after)} now"
    for name in before.columns:
        for row, (old, new) in enumerate(
            zip(before[name].tolist(), after[name].tolist(), strict=True), start=1
        ):
            if not _same(old, new):
                return f"row {row}, column {name}: {old!r} before, {new!r} now"
    return ""


def _json_difference(before: Any, after: Any, where: str = "") -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        if before.keys() != after.keys():
            return f"{where or 'document'}: keys {sorted(before.keys() ^ after.keys())} are in one only"
        found = (_json_difference(before[key], after[key], f"{where}.{key}".lstrip(".")) for key in before)
        return next((text for text in found if text), "")
    if isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            return f"{where or 'document'}: {len(before)} entries before, {len(after)} now"
        found = (
            _json_difference(old, new, f"{where}[{i}]")
            for i, (old, new) in enumerate(zip(before, after, strict=True))
        )
        return next((text for text in found if text), "")
    return "" if _same(before, after) else f"{where or 'document'}: {before!r} before, {after!r} now"


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, float) and isinstance(after, (float, int)):
        both_nan = math.isnan(before) and math.isnan(after)
        return both_nan or math.isclose(before, after, rel_tol=TOLERANCE, abs_tol=1e-12)
    if before is pd.NA or after is pd.NA or before is None or after is None:
        return bool(pd.isna(before) and pd.isna(after))
    return bool(before == after)


def _surroundings(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Name what differs between the two machines."""
    for key in ("python", "system", "machine", "blas"):
        before, after = old["platform"].get(key), new["platform"].get(key)
        if before != after:
            yield f"platform: {key} was {before}, is {after}"
    for name in sorted(old["packages"].keys() | new["packages"].keys()):
        before, after = old["packages"].get(name), new["packages"].get(name)
        if before != after:
            yield f"package: {name} was {before or 'absent'}, is {after or 'absent'}"


def _causes(
    first: Difference, old: Mapping[str, Any], new: Mapping[str, Any], package: Path
) -> Iterator[str]:
    """Name what the node of the first differing artifact uses and what is not the same."""
    node = (
        next(item for item in new["nodes"] if item["name"] == first.node) if _has(new, first.node) else None
    )
    if node is None:
        yield f"code: the node {first.node} is not in the pipeline any more"
        return
    found = [
        *_changed_parameters(node, old, new),
        *_changed_inputs(node, old, new),
        *_changed_code(node, old, new, package),
    ]
    yield from found
    if not found:
        around = list(_surroundings(old, new))
        yield from around[:10] or [
            "nothing that a manifest records: parameters, inputs, code and packages of the node "
            f"{first.node} are the same, so the node itself does not repeat (or the call store has changed)"
        ]


def _has(content: Mapping[str, Any], node: str) -> bool:
    return any(item["name"] == node for item in content["nodes"])


def _changed_parameters(
    node: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[str]:
    before, after = flattened(old["parameters"]), flattened(new["parameters"])
    missing = object()
    for name in sorted(before.keys() | after.keys()):
        if before.get(name, missing) == after.get(name, missing):
            continue
        if any(_covers(used, name) for used in node["parameters"]):
            shown = [
                json.dumps(side[name], default=str)[:200] if name in side else "absent"
                for side in (before, after)
            ]
            yield f"parameter: {name} was {shown[0]}, is {shown[1]}"


def _covers(used: str, name: str) -> bool:
    return used == "parameters" or name == used or name.startswith(f"{used}.") or used.startswith(f"{name}.")


def _changed_inputs(node: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in node["inputs"]:
        before = old["inputs"].get(name) or old["outputs"].get(name)
        after = new["inputs"].get(name) or new["outputs"].get(name)
        if before and after and before["sha256"] != after["sha256"]:
            was, now = before["sha256"][:12], after["sha256"][:12]
            yield f"input: {name} ({after['path']}) had SHA-256 {was}, has {now}"
    # Files that parameters name are no datasets: the table source_files lists them.
    before_files, after_files = old.get("source_files", {}), new.get("source_files", {})
    if "source_files" in node["inputs"] or "source_files" in node["outputs"]:
        for path in sorted(before_files.keys() | after_files.keys()):
            if before_files.get(path) != after_files.get(path):
                was, now = before_files.get(path, "absent"), after_files.get(path, "absent")
                yield f"input: the file {path} had SHA-256 {was[:12]}, has {now[:12]}"


def _changed_code(
    node: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any], package: Path
) -> Iterator[str]:
    before, after = old["code"]["files"], new["code"]["files"]
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if not changed:
        return
    used = imports_of(node["module"], package)
    folders = {name.rpartition("/")[0] for name in used} - {package.name}
    for name in sorted(changed):
        # A file that is no module (a prompt, a template) counts for the modules of its folder and above.
        beside = not name.endswith(".py") and any(name.startswith(f"{folder}/") for folder in folders)
        if name in used or beside:
            state = "is new" if name not in before else "is gone" if name not in after else "changed"
            yield f"code: {name} {state}"
