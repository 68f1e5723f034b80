"""The call store: every answer that was ever received, kept for good, whoever dies meanwhile.

::

    data/calls/lock                       who is writing
    data/calls/open/<shard>.sqlite        answers of a shard that is still being asked (WAL)
    data/calls/sealed/<shard>-<content>.answers.parquet  (+ .sha256)    the same, sealed
    data/calls/sealed/<shard>-<content>.attempts.parquet (+ .sha256)

An answer is committed, and on the disk, before the next call is asked in its place; answers that arrive at
the same time share one commit. A shard is a block of a run's plan, named after its calls, and is sealed when
each of them has its answer or has failed for this run. What is sealed depends on the answers only, not on
when they came or who asked, so its hash repeats. A Parquet file without its ``.sha256`` is no shard.

An answer satisfies its call for ever; a failed attempt is kept as history and satisfies nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import operator
import os
import queue
import re
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from judge_calibration.errors import JudgeCalibrationError
from judge_calibration.judges.failures import Attempt
from judge_calibration.judges.wal import damaged_at

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

_INTEGERS: Final = frozenset(
    {"prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "number", "status"}
)
# One row a commit, its answers and attempts as lines of JSON: a commit is one statement, and what it takes to
# let go of the interpreter's lock and win it back from a busy event loop is taken once. No key: rows are
# appended, and a commit writes few pages. SQLite does not notice a flipped byte within a value: each row
# carries a checksum.
_TABLE: Final = "CREATE TABLE IF NOT EXISTS commits (answers BLOB, attempts BLOB, crc INTEGER)"
_INSERT: Final = "INSERT INTO commits VALUES (?, ?, ?)"
_SELECT: Final = "SELECT answers, attempts, crc FROM commits ORDER BY rowid"
_ATTEMPT_ORDER: Final = operator.itemgetter(
    *(Attempt._fields.index(name) for name in ("call_id", "started_at", "number"))
)
_ANSWERS: Final = ".answers.parquet"
_ATTEMPTS: Final = ".attempts.parquet"
_SIDECAR: Final = ".sha256"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class StoreError(JudgeCalibrationError):
    """The call store cannot be read or written."""


class StoredAnswer(NamedTuple):
    """An answer as the store holds it; see :class:`~judge_calibration.judges.transports.base.Reply`."""

    call_id: str
    request_sha256: str
    failure: str | None
    text: str | None
    reasoning: str | None
    finish_reason: str | None
    served_model: str | None
    logprobs: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None


_ANSWER_COLUMNS: Final = StoredAnswer._fields
_ATTEMPT_COLUMNS: Final = Attempt._fields


def shard_name(call_ids: Iterable[str]) -> str:
    """Return the name of the shard that holds these calls: it depends on the set of calls only.

    Examples
    --------
    >>> shard_name(["b", "a"]) == shard_name(["a", "b"])
    True
    """
    digest = hashlib.sha256()
    for call_id in sorted(call_ids):
        digest.update(call_id.encode() + b"\n")
    return digest.hexdigest()[:16]


# ---------------------------------------------------------------------------------------------- files


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file so that it is there whole or not at all."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        write(part)
        _fsync(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _sha256_of_file(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _sidecar(path: Path) -> Path:
    return path.with_name(path.name + _SIDECAR)


def _wanted_sha256(path: Path) -> str:
    """What a sealed file's checksum file says."""
    sidecar = _sidecar(path)
    word = sidecar.read_bytes()[:64].decode("ascii", "replace")
    if not _SHA256.fullmatch(word):
        raise StoreError(
            f"The checksum file {sidecar} of the call store holds no SHA-256.",
            f"bring it back from a copy; or remove it and {path.name}: its calls are then asked again",
        )
    return word


@contextlib.contextmanager
def _said(folder: Path, doing: str) -> Iterator[None]:
    """Turn what the disk or SQLite says into one message."""
    try:
        yield
    except (OSError, sqlite3.Error) as problem:
        words = getattr(problem, "strerror", None) or str(problem)
        raise StoreError(
            f"The call store {folder} cannot be used while {doing}: {words}.",
            "free space there, or make the folder writable, and run again: every answer that was kept is "
            "safe and is not asked for again",
        ) from problem


def _schema(columns: Sequence[str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(name, pa.int64() if name in _INTEGERS else pa.large_string()) for name in columns])


def _table(rows: Sequence[Sequence[Any]], columns: Sequence[str]) -> pa.Table:
    import pyarrow as pa

    schema = _schema(columns)
    by_column: list[Any] = list(zip(*rows, strict=True)) or [()] * len(columns)
    return pa.Table.from_arrays(
        [pa.array(values, type=kind) for values, kind in zip(by_column, schema.types, strict=True)],
        schema=schema,
    )


# --------------------------------------------------------------------------------------------- writing


_Row = Sequence[Any]


def _lines(rows: Sequence[_Row]) -> bytes:
    return "\n".join(map(json.dumps, rows)).encode()


def _rows_of(lines: Sequence[str]) -> list[_Row]:
    rows: list[_Row] = json.loads(f"[{','.join(lines)}]")
    return rows


def _crc(answers: bytes, attempts: bytes) -> int:
    return zlib.crc32(attempts, zlib.crc32(answers))


def _commits(connection: sqlite3.Connection, path: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Read the answers and the attempts of each commit of an open shard, as lines of JSON.

    Raises
    ------
    StoreError
        If a commit is not what was written.
    """
    for answers, attempts, crc in connection.execute(_SELECT):
        if (
            not isinstance(answers, bytes)
            or not isinstance(attempts, bytes)
            or _crc(answers, attempts) != crc
        ):
            raise _damaged(path, "a commit is not what was written")
        yield answers.decode().splitlines(), attempts.decode().splitlines()


class OpenShard:
    """One shard that is being asked: a SQLite file with this process as its only writer.

    Use it from one thread. The file is made by the first row.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.path = folder / "open" / f"{name}.sqlite"
        self.lock = folder / "open" / f"{name}.lock"
        self._connection: sqlite3.Connection | None = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            log = self.path.with_name(self.path.name + "-wal")
            if (place := damaged_at(log)) is not None:
                raise _damaged(self.path, f"its log {log.name} is not what was written, from byte {place} on")
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
                if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                    raise sqlite3.DatabaseError("malformed")
                if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'answers'").fetchone():
                    raise sqlite3.DatabaseError("it was written by an earlier version of this project")
                connection.execute(_TABLE)
            except sqlite3.OperationalError:  # a full disk, a folder that may not be written: no damage
                connection.close()
                raise
            except sqlite3.DatabaseError as problem:
                connection.close()
                raise _damaged(self.path, problem) from problem
            self._connection = connection
        return self._connection

    def write(self, answers: Sequence[StoredAnswer], attempts: Sequence[Attempt]) -> None:
        """Commit rows. They are on the disk when this returns. The first answer to a call counts."""
        with _said(self.folder, "writing answers"):
            lines = _lines(answers), _lines(attempts)
            self._open().execute(_INSERT, (*lines, _crc(*lines)))

    def check(self) -> None:
        """Read what an earlier run left in the file.

        Raises
        ------
        StoreError
            If any of it is not what was written.
        """
        if not self.path.exists():
            return
        with _said(self.folder, "reading a shard that an earlier run left open"):
            for _ in _commits(self._open(), self.path):
                pass
        self.close()

    def close(self) -> None:
        """Close the file; rows stay."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def seal(self) -> None:
        """Move the rows to Parquet files with their checksums, then drop the SQLite file."""
        if not self.path.exists():
            return
        with _said(self.folder, "sealing a shard"):
            first: dict[str, tuple[_Row, str]] = {}
            attempts: list[tuple[_Row, str]] = []
            for said, tried in _commits(self._open(), self.path):
                for row, line in zip(_rows_of(said), said, strict=True):
                    first.setdefault(row[0], (row, line))
                attempts.extend(zip(_rows_of(tried), tried, strict=True))
            answers = [first[call_id] for call_id in sorted(first)]
            attempts.sort(key=lambda attempt: _ATTEMPT_ORDER(attempt[0]))
            self._seal_rows(answers, _ANSWER_COLUMNS, _ANSWERS)
            self._seal_rows(attempts, _ATTEMPT_COLUMNS, _ATTEMPTS)
            self.close()
            for suffix in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def _seal_rows(self, rows: list[tuple[_Row, str]], columns: Sequence[str], ending: str) -> None:
        import pyarrow.parquet as pq

        if not rows:
            return
        sealed = self.folder / "sealed"
        sealed.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        for _, line in rows:
            digest.update(line.encode() + b"\n")
        path = sealed / f"{self.name}-{digest.hexdigest()[:16]}{ending}"
        if path.exists() and _sidecar(path).exists() and _wanted_sha256(path) == _sha256_of_file(path):
            return  # sealed just before the process died
        table = _table([row for row, _ in rows], columns)
        _write_whole(
            path, lambda part: pq.write_table(table, part, compression="zstd", row_group_size=20_000)
        )
        line = f"{_sha256_of_file(path)}  {path.name}\n"
        _write_whole(_sidecar(path), lambda part: _write_text(part, line))
        _fsync(sealed)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, "ascii")


def _damaged(path: Path, problem: Exception | str) -> StoreError:
    return StoreError(
        f"The open shard {path} of the call store is damaged ({problem}). Sealed shards are not affected.",
        f"move {path.name} and its -wal and -shm files out of {path.parent} and run again: the calls whose "
        "answers were only there are asked again",
    )


@dataclass
class _Work:
    shard: OpenShard
    answer: StoredAnswer | None
    attempts: tuple[Attempt, ...]
    done: Future[None] | asyncio.Future[None]


@dataclass
class _Seal:
    shard: OpenShard
    done: Future[None]


class StoreWriter:
    """The thread that writes: whatever has arrived while it wrote goes into its next commit together.

    Parameters
    ----------
    folder : pathlib.Path
        The store. The caller holds its lock.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._work: queue.SimpleQueue[_Work | _Seal | None] = queue.SimpleQueue()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="call-store", daemon=True)
        self._thread.start()

    def keep(
        self, shard: OpenShard, answer: StoredAnswer | None, attempts: Sequence[Attempt]
    ) -> Future[None]:
        """Hand rows over; the future is done when they are on the disk."""
        future: Future[None] = Future()
        self._put(_Work(shard, answer, tuple(attempts), future), future)
        return future

    async def kept(self, shard: OpenShard, answer: StoredAnswer | None, attempts: Sequence[Attempt]) -> None:
        """Hand rows over, and return when they are on the disk. The rows of a commit wake the loop once."""
        if self._problem is not None:
            raise self._problem
        future = asyncio.get_running_loop().create_future()
        self._work.put(_Work(shard, answer, tuple(attempts), future))
        await future

    def seal(self, shard: OpenShard) -> Future[None]:
        """Seal a shard when all that was handed over before is written."""
        future: Future[None] = Future()
        self._put(_Seal(shard, future), future)
        return future

    def _put(self, item: _Work | _Seal, future: Future[None]) -> None:
        # What was handed over is written, whether or not anyone still waits for it: no cancelling.
        future.set_running_or_notify_cancel()
        if self._problem is not None:
            future.set_exception(self._problem)
        else:
            self._work.put(item)

    def close(self) -> None:
        """Write what is waiting and end the thread."""
        self._work.put(None)
        self._thread.join()

    def _run(self) -> None:
        shards: dict[str, OpenShard] = {}
        ended = False
        while not ended:
            batch = [self._work.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    batch.append(self._work.get_nowait())
            pending: list[_Work] = []
            for item in batch:
                if isinstance(item, _Work):
                    pending.append(item)
                    shards[item.shard.name] = item.shard
                    continue
                self._commit(pending)
                pending = []
                if item is None:
                    ended = True
                else:
                    self._finish(item.done, item.shard.seal)
                    shards.pop(item.shard.name, None)
            self._commit(pending)
        for shard in shards.values():
            shard.close()

    def _commit(self, pending: list[_Work]) -> None:
        by_shard: dict[str, list[_Work]] = {}
        for item in pending:
            by_shard.setdefault(item.shard.name, []).append(item)
        for items in by_shard.values():
            answers = [item.answer for item in items if item.answer is not None]
            attempts = [attempt for item in items for attempt in item.attempts]
            problem: BaseException | None = None
            try:
                items[0].shard.write(answers, attempts)
            except BaseException as raised:  # whoever waits for the row raises it
                self._problem = problem = raised
            _tell([item.done for item in items], problem)

    def _finish(self, done: Future[None], act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as problem:  # whoever waits for the shard raises it
            self._problem = problem
            done.set_exception(problem)
        else:
            done.set_result(None)


def _tell(waiting: Sequence[Future[None] | asyncio.Future[None]], problem: BaseException | None) -> None:
    """Tell those who wait for rows that these are written, or why not: a loop's futures all in one call."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for future in waiting:
        if isinstance(future, asyncio.Future):
            by_loop.setdefault(future.get_loop(), []).append(future)
        else:
            _end(future, problem)
    for loop, futures in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_end_all, futures, problem)


def _end_all(futures: Sequence[asyncio.Future[None]], problem: BaseException | None) -> None:
    for future in futures:
        if not future.done():  # whoever waited may have been cancelled
            _end(future, problem)


def _end(future: Future[None] | asyncio.Future[None], problem: BaseException | None) -> None:
    if problem is None:
        future.set_result(None)
    else:
        future.set_exception(problem)


# --------------------------------------------------------------------------------------------- reading


def _prefix(call_id: str) -> int:
    """First 64 bits of a call_id."""
    return int(call_id[:16], 16)


class StoreReader:
    """Reads a store, with or without someone writing to it. It takes no lock.

    Open shards are listed before sealed ones: a shard that is sealed meanwhile is then seen twice, never
    missed.

    Parameters
    ----------
    folder : pathlib.Path
        The store; it may be absent, which is an empty store.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._verified: set[str] = set()
        self._looked = False
        self._left_open: list[Path] | None = None
        self._files: list[str] = []
        self._prefixes: Any = ()
        self._numbers: Any = ()

    def open_files(self) -> list[Path]:
        """Return the SQLite files of the shards that are being asked."""
        return sorted((self.folder / "open").glob("*.sqlite"))

    def _open_files_for(self, name: str | None) -> list[Path]:
        """Return the open shards to look at for calls of one shard; all for None."""
        if name is None:
            return self.open_files()
        if self._left_open is None:
            self._left_open = self.open_files()
        own = OpenShard(self.folder, name).path
        return [own, *(path for path in self._left_open if path != own)]

    def sealed_files(self, ending: str) -> list[Path]:
        """Return the sealed files that have a checksum, in the order of their names."""
        sealed = self.folder / "sealed"
        # Checksums first: a file that is sealed meanwhile is there before its checksum is.
        named = {path.name.removesuffix(_SIDECAR) for path in sealed.glob(f"*{ending}{_SIDECAR}")}
        files = [path for path in sorted(sealed.glob(f"*{ending}")) if path.name in named]
        gone = sorted(named - {path.name for path in files})
        if gone:
            raise StoreError(
                f"{len(gone)} sealed files are gone from {sealed}, though their checksums are there: "
                f"{', '.join(gone[:3])}{' ...' if len(gone) > 3 else ''}.",
                f"bring them back from a copy; or remove their {_SIDECAR} files: their calls are then asked "
                "again",
            )
        return files

    def _verify(self, path: Path) -> None:
        if path.name in self._verified:
            return
        wanted = _wanted_sha256(path)
        found = _sha256_of_file(path)
        if found != wanted:
            raise StoreError(
                f"The sealed shard {path} does not match its checksum: it has SHA-256 {found}, and "
                f"{_sidecar(path).name} says {wanted}.",
                f"bring the file back from a copy; or remove it and its {_SIDECAR} file: its calls are then "
                "asked again",
            )
        self._verified.add(path.name)

    def _refresh(self) -> None:
        """Take the files that were sealed since the last look into the index.

        The index has 12 bytes an answer: the first 64 bits of its call_id, and the number of its file.
        """
        import numpy as np
        import pyarrow.parquet as pq

        known = set(self._files)
        prefixes = [np.asarray(self._prefixes, np.uint64)]
        numbers = [np.asarray(self._numbers, np.uint32)]
        for path in self.sealed_files(_ANSWERS):
            if path.name in known:
                continue
            self._verify(path)
            column = pq.read_table(path, columns=["call_id"]).column("call_id").to_pylist()
            prefixes.append(np.fromiter(map(_prefix, column), np.uint64, len(column)))
            numbers.append(np.full(len(column), len(self._files), np.uint32))
            self._files.append(path.name)
        if len(prefixes) > 1:
            joined = np.concatenate(prefixes)
            order = np.argsort(joined, kind="stable")
            self._prefixes, self._numbers = joined[order], np.concatenate(numbers)[order]

    def _indexed(self, wanted: set[str]) -> list[Path]:
        """Sealed files of the index that hold some of the calls."""
        import numpy as np

        asked = np.fromiter(map(_prefix, wanted), np.uint64, len(wanted))
        left = np.searchsorted(self._prefixes, asked, "left")
        right = np.searchsorted(self._prefixes, asked, "right")
        numbers = {
            int(number)
            for low, high in zip(left, right, strict=True)
            if high > low
            for number in self._numbers[low:high]
        }
        return [self.folder / "sealed" / self._files[number] for number in sorted(numbers)]

    def _rows(self, path: Path, wanted: set[str], columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        self._verify(path)
        table = pq.read_table(path, columns=list(columns))
        ids = pa.array(sorted(wanted), pa.large_string())
        kept = table.filter(pc.is_in(table.column("call_id"), value_set=ids))
        yield from zip(*(kept.column(column).to_pylist() for column in columns), strict=True)

    def _open_rows(
        self, paths: Iterable[Path], part: Literal[0, 1], columns: Sequence[str], wanted: set[str]
    ) -> Iterator[_Row]:
        """Rows of open shards: answers (part 0) or attempts (part 1)."""
        all_columns = (_ANSWER_COLUMNS, _ATTEMPT_COLUMNS)[part]
        places = [all_columns.index(name) for name in columns]
        for path in paths:
            try:
                connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            except sqlite3.Error:
                continue  # sealed and gone since it was listed
            try:
                rows = [row for commit in _commits(connection, path) for row in _rows_of(commit[part])]
            except sqlite3.OperationalError as problem:
                if "no such table" in str(problem) or not path.exists():
                    continue
                raise StoreError(
                    f"The open shard {path} of the call store cannot be read: {problem}.",
                    "free space there, or make the folder writable, and run again",
                ) from problem
            except sqlite3.DatabaseError as problem:
                raise _damaged(path, problem) from problem
            finally:
                connection.close()
            yield from (tuple(row[place] for place in places) for row in rows if row[0] in wanted)

    def answers(self, call_ids: Iterable[str], name: str | None = None) -> dict[str, StoredAnswer]:
        """Return the answers that the store has to these calls.

        Parameters
        ----------
        call_ids : iterable of str
        name : str, optional
            The shard where they belong. It is looked at first; beside it only shards that were there at
            this reader's first look are, for a run looks for answers of earlier runs, and should not read
            its own shards again and again.

        Raises
        ------
        StoreError
            If a file is damaged; nothing is taken from it.
        """
        wanted = set(call_ids)
        found: dict[str, StoredAnswer] = {}
        if not wanted:
            return found

        def take(rows: Iterable[_Row]) -> None:
            for row in rows:
                found.setdefault(row[0], StoredAnswer(*row))
                wanted.discard(row[0])

        take(self._open_rows(self._open_files_for(name), 0, _ANSWER_COLUMNS, wanted))
        if name is not None and wanted:
            for path in sorted((self.folder / "sealed").glob(f"{name}-*{_ANSWERS}")):
                if _sidecar(path).exists():
                    take(self._rows(path, wanted, _ANSWER_COLUMNS))
        if wanted:
            if name is None or not self._looked:
                self._refresh()
                self._looked = True
            for path in self._indexed(wanted):
                take(self._rows(path, wanted, _ANSWER_COLUMNS))
        return found

    def attempts(
        self, call_ids: Iterable[str], columns: Sequence[str] = _ATTEMPT_COLUMNS
    ) -> list[dict[str, Any]]:
        """Return every attempt at these calls, in the order of call, start and number."""
        wanted = set(call_ids)
        if not wanted:
            return []
        sources = [self._open_rows(self.open_files(), 1, columns, wanted)]
        sources += [self._rows(path, wanted, columns) for path in self.sealed_files(_ATTEMPTS)]
        rows = {tuple(row): dict(zip(columns, row, strict=True)) for source in sources for row in source}
        order = [name for name in ("call_id", "started_at", "number") if name in columns]
        return sorted(rows.values(), key=lambda row: tuple(row[name] for name in order))

    def last_failures(self, call_ids: Iterable[str]) -> dict[str, str]:
        """Return the class of the last failed attempt for each of these calls that has one."""
        columns = ("call_id", "started_at", "number", "failure")
        return {row["call_id"]: row["failure"] for row in self.attempts(call_ids, columns) if row["failure"]}

    def sealed_hashes(self) -> Mapping[str, str]:
        """Return the SHA-256 of each sealed file of answers: equal stores have equal mappings."""
        return {path.name: _wanted_sha256(path) for path in self.sealed_files(_ANSWERS)}


def leftover_shards(folder: Path) -> list[OpenShard]:
    """Return the open shards that an earlier run left behind."""
    return [OpenShard(folder, path.stem) for path in StoreReader(folder).open_files()]
