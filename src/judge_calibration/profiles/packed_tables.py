"""A panel's reads as one table a judge (a row an item, an int8 code an attribute), and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from judge_calibration.errors import Problem
from judge_calibration.profiles.cube import ReadCube, ReadsError, problem_count
from judge_calibration.profiles.inventory import column_name
from judge_calibration.profiles.storage import CODES

_MOST = 20
# `mark` says SIMULATED in environments that mark everything they write.
_KEYS = ("judge_id", "pair_id", "mark")


def to_tables(cube: ReadCube) -> dict[str, pd.DataFrame]:
    """Return one table a judge: judge_id, pair_id and an int8 code for each attribute.

    Examples
    --------
    >>> cube = ReadCube(("j",), ("p",), ("depth",), np.array([[[8]]], dtype=np.int8))
    >>> to_tables(cube)["j"].columns.tolist(), to_tables(cube)["j"]["depth"].tolist()
    (['judge_id', 'pair_id', 'depth'], [8])
    """
    items = pd.Series(list(cube.items), dtype="str")
    tables = {}
    for j, judge in enumerate(cube.judges):
        codes = pd.DataFrame(cube.codes[j], columns=list(cube.attributes))
        codes.insert(0, "pair_id", items)
        codes.insert(0, "judge_id", pd.Series([judge] * len(items), dtype="str"))
        tables[judge] = codes
    return tables


def attribute_columns(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return the names of the attributes of packed tables that this project wrote.

    Examples
    --------
    >>> attribute_columns({"j": pd.DataFrame({"judge_id": ["j"], "pair_id": ["p"], "depth": [8]})})
    ['depth']
    """
    return [str(name) for table in list(tables.values())[:1] for name in table.columns if name not in _KEYS]


def from_tables(
    tables: Mapping[str, pd.DataFrame], attributes: Sequence[str], pairs: Sequence[str] | None = None
) -> ReadCube:
    """Return the cube of tables, one a judge.

    Parameters
    ----------
    tables : mapping of str to pandas.DataFrame
        By what to call them in messages (a file, or the judge). The column judge_id names the judge; without
        it the mapping's key does. The index is what messages call the rows.
    attributes : sequence of str
        The inventory's names; they fix the order of the last axis. Columns may be spelt with spaces or
        hyphens. Attributes that no table has are left out.
    pairs : sequence of str, optional
        The known pair ids; other items are refused.

    Raises
    ------
    ReadsError
        With every problem: unknown attributes, one in two columns, codes outside 0 to 8, absent codes or
        items, repeated items, judges that lack attributes or items that others have, unknown items, one judge
        in two tables.

    Examples
    --------
    >>> from_tables({"j": pd.DataFrame({"pair_id": ["p"], "depth": [8]})}, ["depth"]).stable.tolist()
    [[[1]]]
    """
    problems: list[Problem] = []
    known = set(attributes)
    spelt = {where: {column_name(str(c)): c for c in table.columns} for where, table in tables.items()}
    present = {name for columns in spelt.values() for name in columns} & known
    names = tuple(name for name in attributes if name in present)
    known_items, told = set(() if pairs is None else pairs), set[str]()
    items: pd.Index | None = None
    item_set: set[str] = set()
    judges: list[str] = []
    parts: list[np.ndarray] = []
    for where, table in tables.items():
        columns = spelt[where]
        for name in columns:
            if name not in known and name not in _KEYS:
                problems.append(
                    Problem(
                        f"{where}, column {columns[name]}",
                        "no attribute of the inventory",
                        "an attribute's name",
                    )
                )
        twice = Counter(column_name(str(c)) for c in table.columns)
        for name in [name for name, n in twice.items() if n > 1]:
            problems.append(
                Problem(f"{where}, column {name}", f"{twice[name]} columns of this name", "one column")
            )
        absent = [name for name in names if name not in columns]
        for name in absent:
            problems.append(
                Problem(
                    f"{where}, attribute {name}", "no column", "a code for each item, as other judges have"
                )
            )
        if "pair_id" not in columns:
            problems.append(Problem(f"{where}, column pair_id", "no such column", "the item of each row"))
            continue
        judge = _judge_of(table, where, problems)
        if judge in judges:
            problems.append(
                Problem(f"{where}, judge {judge}", "a second table of this judge", "one table a judge")
            )
        judges.append(judge)
        ids = table["pair_id"].astype("str")
        nameless = ids.index[ids.isna()]
        if len(nameless):
            problems.append(
                Problem(f"{where}, {_rows(nameless)}, column pair_id", "nothing", "the item of the row")
            )
            ids = ids.dropna()
        for item, n in ids.value_counts().loc[lambda c: c > 1].head(_MOST).items():
            rows = _rows(ids.index[ids == item])
            problems.append(Problem(f"{where}, {rows}, item {item}", f"{n} rows", "one row an item"))
        for row, item in ids[~ids.isin(known_items)].items() if pairs is not None else ():
            if item in told:
                continue
            told.add(item)
            place = f"{where}, row {row}, item {item}"
            problems.append(Problem(place, "no such pair", "an item of the table pairs"))
            if len(told) >= _MOST:
                break
        if items is None:
            items, item_set = pd.Index(ids), set(ids)
        elif len(ids) != len(items) or not np.array_equal(ids.to_numpy(), items.to_numpy()):
            own = set(ids)
            for item in sorted(item_set ^ own)[:_MOST]:
                lacks = "absent" if item in item_set else "not read by the other judges"
                problems.append(Problem(f"{where}, item {item}", lacks, "the same items for every judge"))
        if absent or problems:
            # Named above; what else is wrong in this table's codes is still looked for.
            _check_codes(table, [columns[n] for n in names if n in columns], where, problems)
            continue
        parts.append(_codes(table, [columns[name] for name in names], where, problems))
        if not problems and not np.array_equal(ids.to_numpy(), items.to_numpy()):
            parts[-1] = parts[-1][pd.Index(ids).get_indexer(items)]
    if tables and not names:
        problems.append(
            Problem(", ".join(tables)[:200], "no column of an attribute", "a column for each attribute")
        )
    if problems:
        raise ReadsError(
            f"The packed reads do not make a complete panel: {problem_count(problems)}.",
            problems,
            "correct the files; a code is 3 (r1 + 1) + (r2 + 1), with r = 1 for A, -1 for B, 0 for neither "
            "in the orders AB and BA",
        )
    shape = (len(judges), 0 if items is None else len(items), len(names))
    codes = np.stack(parts) if parts else np.zeros(shape, dtype=np.int8)
    return ReadCube(tuple(judges), tuple(() if items is None else items), names, codes)


def _judge_of(table: pd.DataFrame, where: str, problems: list[Problem]) -> str:
    if "judge_id" not in table.columns:
        return where
    found = table["judge_id"].dropna().astype("str").unique()
    if len(found) > 1:
        problems.append(Problem(f"{where}, column judge_id", ", ".join(found[:3]), "one judge a table"))
    return str(found[0]) if len(found) else where


def _check_codes(table: pd.DataFrame, columns: Sequence[str], where: str, problems: list[Problem]) -> None:
    for name in columns:
        values = pd.to_numeric(table[name], errors="coerce")
        absent = table[name].isna()
        wrong = table.loc[~absent & ~values.isin(range(CODES)), name]
        if absent.any():
            place = f"{where}, {_rows(table.index[absent])}, attribute {name}"
            problems.append(Problem(place, f"no code in {int(absent.sum()):,} rows", "a read in both orders"))
        if len(wrong):
            place = f"{where}, {_rows(wrong.index)}, attribute {name}"
            found = f"{str(wrong.iloc[0])[:40]} in {len(wrong):,} rows"
            problems.append(Problem(place, found, "a whole number from 0 to 8: two orders"))


def _rows(index: pd.Index) -> str:
    """Return the first rows of some, as messages name them."""
    told = ", ".join(map(str, index[:3])) + (", …" if len(index) > 3 else "")
    return f"row {told}" if len(index) == 1 else f"rows {told}"


def _codes(table: pd.DataFrame, columns: Sequence[str], where: str, problems: list[Problem]) -> np.ndarray:
    part = table[list(columns)]
    if all(kind == np.int8 for kind in part.dtypes):
        codes = part.to_numpy()
        if not codes.size or (codes.min() >= 0 and codes.max() < CODES):
            return codes
    before = len(problems)
    _check_codes(table, columns, where, problems)
    if len(problems) > before:
        return np.zeros(part.shape, dtype=np.int8)
    return part.apply(pd.to_numeric).to_numpy().astype(np.int8)


def joined(cubes: Sequence[ReadCube]) -> ReadCube:
    """Return one panel of several: the same items and attributes, other judges.

    Raises
    ------
    ReadsError
        Where items or attributes differ, or a judge is in two of them.
    """
    tables: dict[str, pd.DataFrame] = {}
    for number, cube in enumerate(cubes):
        for judge, table in to_tables(cube).items():
            tables[judge if judge not in tables else f"{judge} (source {number + 1})"] = table
    names = list(dict.fromkeys(name for cube in cubes for name in cube.attributes))
    return from_tables(tables, names)
