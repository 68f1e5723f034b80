"""Whether SQLite's write-ahead log of an open shard is whole.

SQLite reads a log up to the first frame whose checksum is wrong, and takes what stands behind it as never
written. After a cut of the power that is right for the one transaction that was on its way. In a log that
was damaged afterwards it would lose answers without a word: transactions that stand behind the wrong frame
were on the disk once.

Sources
-------
The file format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_ORDER: Final = {0x377F0682: "<", 0x377F0683: ">"}
"""Byte order of the words that checksums are taken of, by the header's first word."""


def damaged_at(path: Path) -> int | None:
    """Return the byte where a log is damaged, or None for one that is whole, unfinished or absent.

    Parameters
    ----------
    path : pathlib.Path
        The file that ends in ``-wal``.

    Notes
    -----
    Damage within the last transaction looks like one that was never finished, and gives None.
    """
    try:
        log = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(log) <= _HEADER:
        return None
    magic, _, page = struct.unpack_from(">3I", log)
    order = _ORDER.get(magic)
    wanted = struct.unpack_from(">2I", log, 24)
    if order is None or _checksum(log[:24], order, (0, 0)) != wanted:
        return 0
    salts, size = log[16:24], _FRAME_HEADER + page
    starts = range(_HEADER, len(log) - size + 1, size)
    for start in starts:
        frame = log[start : start + size]
        found = _checksum(frame[:8] + frame[_FRAME_HEADER:], order, wanted)
        wanted = struct.unpack_from(">2I", frame, 16)
        # Frames of an earlier round of the log, which has begun anew since, bear other salts.
        if frame[8:16] != salts or found != wanted:
            behind = [one for one in starts if one >= start and log[one + 8 : one + 16] == salts]
            return start if _hold_more_than_one_transaction(log, behind) else None
    return None


def _hold_more_than_one_transaction(log: bytes, starts: list[int]) -> bool:
    """Whether a transaction ends before the last of these frames: its last one names the database's size."""
    return any(log[start + 4 : start + 8] != bytes(4) for start in starts[:-1])


def _checksum(data: bytes, order: str, seed: tuple[int, int]) -> tuple[int, int]:
    """SQLite's checksum of an even number of 32-bit words, going on from that of what stands before."""
    first, second = seed
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for one, other in zip(words, words, strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second
