"""Which pairs are judged: a fixed subset by hash, spread over domain x difficulty x manipulation."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict, deque

import pandas as pd

STRATA = ("manipulation", "domain", "difficulty")
Stratum = tuple[str, str, str]


def draw_pairs(pairs: pd.DataFrame, size: int | None, salt: str) -> pd.DataFrame:
    """Return the pairs to be judged, in the order of `pairs`.

    Each step takes a pair of a base task that has not been taken, where there is one, from the stratum that
    evens out what has been taken: first the manipulations, then the domains within each manipulation and the
    difficulties within each, then domains and difficulties over all. Ties go by a hash of the salt and the
    pair's id. Neither the order of the rows nor the length of a text plays a part; adding pairs moves
    others only where they compete.

    Parameters
    ----------
    pairs : pandas.DataFrame
        The table `pairs`. Pairs without texts (known from a log only) are left out.
    size : int or None
        How many; None, or more than there are, takes all.
    salt : str
        Another salt, another subset.

    Examples
    --------
    >>> pairs = pd.DataFrame({"pair_id": ["1", "2", "3", "4"], "base_id": ["a", "a", "b", "b"],
    ...     "manipulation": ["length", "style", "length", "style"], "domain": "d", "difficulty": "easy",
    ...     "question": "q", "response_a": "a", "response_b": "b"})
    >>> drawn = draw_pairs(pairs, 2, "s")
    >>> drawn["manipulation"].nunique(), drawn["base_id"].nunique()
    (2, 2)
    """
    known = pairs[pairs[["question", "response_a", "response_b"]].notna().all(axis=1)]
    if size is None or size >= len(known):
        return known.reset_index(drop=True)
    queues = _queues(known, salt)
    taken: Counter[tuple[str, ...]] = Counter()
    bases: set[str] = set()
    chosen: list[int] = []
    for _ in range(size):
        best = min(queues, key=lambda stratum: _rank(stratum, queues[stratum], taken, bases, salt))
        position, base = _take(queues[best], bases)
        if not queues[best]:
            del queues[best]
        chosen.append(position)
        bases.add(base)
        taken.update(_margins(best))
    return known.iloc[sorted(chosen)].reset_index(drop=True)


def _margins(stratum: Stratum) -> list[tuple[str, ...]]:
    """Return the groups that a stratum belongs to, the one that matters most first."""
    manipulation, domain, difficulty = stratum
    return [
        ("manipulation", manipulation),
        ("manipulation, domain", manipulation, domain),
        ("manipulation, difficulty", manipulation, difficulty),
        ("domain", domain),
        ("difficulty", difficulty),
        ("all", *stratum),
    ]


def _rank(
    stratum: Stratum,
    queue: deque[tuple[int, str]],
    taken: Counter[tuple[str, ...]],
    bases: set[str],
    salt: str,
) -> tuple[bool, list[int], str]:
    return _is_used(queue, bases), [taken[group] for group in _margins(stratum)], _key(salt, *stratum)


def _key(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _queues(pairs: pd.DataFrame, salt: str) -> dict[Stratum, deque[tuple[int, str]]]:
    """Return each stratum's pairs as (position, base task), in the order of their hashes."""
    found: dict[Stratum, list[tuple[str, int, str]]] = defaultdict(list)
    columns = zip(
        pairs["pair_id"], pairs["base_id"], *(pairs[name].fillna("") for name in STRATA), strict=True
    )
    for position, (pair_id, base, manipulation, domain, difficulty) in enumerate(columns):
        found[manipulation, domain, difficulty].append((_key(salt, pair_id), position, base))
    return {
        stratum: deque((position, base) for _, position, base in sorted(members))
        for stratum, members in sorted(found.items())
    }


def _is_used(queue: deque[tuple[int, str]], bases: set[str]) -> bool:
    """Say whether all that is left of a stratum belongs to base tasks that have been taken."""
    for _ in range(len(queue)):
        if queue[0][1] not in bases:
            return False
        queue.rotate(
            -1
        )  # a used base task goes to the end and is looked at again only if nothing else is left
    return True


def _take(queue: deque[tuple[int, str]], bases: set[str]) -> tuple[int, str]:
    _is_used(queue, bases)
    return queue.popleft()
