"""The call store: sealed for good, or not there; damage is named and nothing is taken from it."""

import asyncio
import hashlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from judge_calibration.judges.asking import ask_blocks
from judge_calibration.judges.engines.setup import AskSetup
from judge_calibration.judges.failures import Attempt
from judge_calibration.judges.store import (
    OpenShard,
    StoredAnswer,
    StoreError,
    StoreReader,
    StoreWriter,
    leftover_shards,
    shard_name,
)
from judge_calibration.judges.wal import damaged_at
from judge_calibration.options.asking import AskingOptions, TransportOptions


def call_id(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def answer(number: int, text: str | None = "A", failure: str | None = None) -> StoredAnswer:
    return StoredAnswer(call_id(number), "r", failure, text, None, "stop", "m", None, 3, 1, None, None)


def attempt(number: int, failure: str | None = None, at: str = "2026-01-01T00:00:00") -> Attempt:
    return Attempt(call_id(number), 1, "run", at, at, 200 if failure is None else 503, failure)


class TestSealing:
    def test_the_same_answers_give_the_same_bytes_in_whatever_order_they_came(self, tmp_path):
        for folder, order in ((tmp_path / "a", range(50)), (tmp_path / "b", reversed(range(50)))):
            shard = OpenShard(folder, "shard")
            for number in order:
                shard.write([answer(number)], [attempt(number, at=f"2026-01-01T00:00:{number:02d}")])
            shard.seal()
        assert StoreReader(tmp_path / "a").sealed_hashes() == StoreReader(tmp_path / "b").sealed_hashes()

    def test_a_sealed_shard_gives_back_what_was_written(self, tmp_path):
        hostile = "\x00 \r\n \u202e \ufeff \U0001f600"
        shard = OpenShard(tmp_path, "shard")
        written = [answer(1, hostile), answer(2, None), answer(3, None, "refusal")]
        shard.write(written, [])
        shard.seal()
        assert list(StoreReader(tmp_path).answers(map(call_id, (1, 2, 3))).values()) == sorted(
            written, key=lambda one: one.call_id
        )
        assert not shard.path.exists()

    def test_the_first_answer_to_a_call_counts(self, tmp_path):
        shard = OpenShard(tmp_path, "shard")
        shard.write([answer(1, "A")], [])
        shard.write([answer(1, "B")], [])
        assert StoreReader(tmp_path).answers([call_id(1)])[call_id(1)].text == "A"
        shard.seal()
        assert StoreReader(tmp_path).answers([call_id(1)])[call_id(1)].text == "A"

    def test_answers_that_come_later_are_sealed_beside_the_earlier_ones(self, tmp_path):
        for number in (1, 2):
            shard = OpenShard(tmp_path, "shard")
            shard.write([answer(number)], [])
            shard.seal()
        reader = StoreReader(tmp_path)
        assert len(reader.sealed_hashes()) == 2
        assert set(reader.answers([call_id(1), call_id(2)])) == {call_id(1), call_id(2)}

    def test_a_file_without_its_checksum_is_no_shard(self, tmp_path):
        shard = OpenShard(tmp_path, "shard")
        shard.write([answer(1)], [])
        shard.seal()
        for sidecar in (tmp_path / "sealed").glob("*.sha256"):
            sidecar.unlink()
        assert StoreReader(tmp_path).answers([call_id(1)]) == {}

    def test_sealing_again_after_a_kill_in_the_middle_changes_nothing(self, tmp_path):
        shard = OpenShard(tmp_path, "shard")
        shard.write([answer(1)], [attempt(1)])
        shard.close()  # moves its log into the file
        copy = shard.path.read_bytes()
        shard.seal()
        before = StoreReader(tmp_path).sealed_hashes()
        shard.path.parent.mkdir(exist_ok=True)
        shard.path.write_bytes(copy)  # as if the process had died before it removed the file
        for left in leftover_shards(tmp_path):
            left.seal()
        assert StoreReader(tmp_path).sealed_hashes() == before

    def test_a_shard_is_named_by_its_calls_only(self):
        assert shard_name([call_id(2), call_id(1)]) == shard_name([call_id(1), call_id(2)])
        assert shard_name([call_id(1)]) != shard_name([call_id(2)])


class TestFailures:
    def test_a_failed_attempt_does_not_answer_its_call(self, tmp_path):
        shard = OpenShard(tmp_path, "shard")
        shard.write([], [attempt(1, "timeout", "2026-01-01"), attempt(1, "unavailable", "2026-01-02")])
        reader = StoreReader(tmp_path)
        assert reader.answers([call_id(1)]) == {}
        assert reader.last_failures([call_id(1)]) == {call_id(1): "unavailable"}
        shard.seal()
        assert StoreReader(tmp_path).last_failures([call_id(1)]) == {call_id(1): "unavailable"}


class TestReading:
    def test_an_absent_store_is_empty(self, tmp_path):
        assert StoreReader(tmp_path / "none").answers([call_id(1)]) == {}
        assert StoreReader(tmp_path / "none").attempts([call_id(1)]) == []

    def test_what_is_committed_is_seen_while_the_writer_goes_on(self, tmp_path):
        writer = StoreWriter(tmp_path)
        shard = OpenShard(tmp_path, "shard")
        for number in range(20):
            writer.keep(shard, answer(number), [attempt(number)]).result(10)
            assert call_id(number) in StoreReader(tmp_path).answers([call_id(number)])
        writer.seal(shard).result(10)
        writer.close()
        assert len(StoreReader(tmp_path).answers(map(call_id, range(20)))) == 20


class TestWritingFromALoop:
    def test_what_is_kept_is_on_the_disk_whatever_the_size_of_the_commit(self, tmp_path):
        async def keep_all(writer, shard):
            async def one(number):
                await writer.kept(
                    shard, answer(number), [attempt(number, at=str(n)) for n in range(number % 3)]
                )
                return call_id(number) in StoreReader(tmp_path).answers([call_id(number)])

            return await asyncio.gather(*(one(number) for number in range(200)))

        writer = StoreWriter(tmp_path)
        shard = OpenShard(tmp_path, "shard")
        assert all(asyncio.run(keep_all(writer, shard)))
        writer.close()
        ids = list(map(call_id, range(200)))
        assert len(StoreReader(tmp_path).attempts(ids)) == sum(number % 3 for number in range(200))

    @pytest.mark.parametrize("count", [1, 2, 3, 63, 64, 65, 200])
    def test_every_number_of_rows_is_written_whole(self, tmp_path, count):
        shard = OpenShard(tmp_path, "shard")
        shard.write([answer(number, str(number)) for number in range(count)], [])
        found = StoreReader(tmp_path).answers(map(call_id, range(count)))
        assert {found[call_id(number)].text for number in range(count)} == set(map(str, range(count)))

    def test_everybody_who_waits_is_told_that_it_failed_and_so_is_who_comes_later(self, tmp_path):
        (tmp_path / "open").write_text("a file where the folder should be")

        async def keep_some(writer, shard):
            waiting = [writer.kept(shard, answer(number), []) for number in range(5)]
            first = await asyncio.gather(*waiting, return_exceptions=True)
            return [*first, *await asyncio.gather(writer.kept(shard, answer(9), []), return_exceptions=True)]

        writer = StoreWriter(tmp_path)
        told = asyncio.run(keep_some(writer, OpenShard(tmp_path, "shard")))
        writer.close()
        assert len(told) == 6
        assert all(isinstance(one, StoreError) for one in told)

    def test_who_no_longer_waits_disturbs_nobody(self, tmp_path):
        async def keep_two(writer, shard):
            gone = asyncio.create_task(writer.kept(shard, answer(1), []))
            await asyncio.sleep(0)
            gone.cancel()
            await writer.kept(shard, answer(2), [])

        writer = StoreWriter(tmp_path)
        asyncio.run(keep_two(writer, OpenShard(tmp_path, "shard")))
        writer.close()
        assert set(StoreReader(tmp_path).answers([call_id(1), call_id(2)])) == {call_id(1), call_id(2)}


class TestDamage:
    def test_a_flipped_byte_in_a_sealed_shard_is_refused_with_both_hashes(self, tmp_path):
        shard = OpenShard(tmp_path, "shard")
        shard.write([answer(1)], [])
        shard.seal()
        path = next((tmp_path / "sealed").glob("*.answers.parquet"))
        content = bytearray(path.read_bytes())
        wanted = hashlib.sha256(content).hexdigest()
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        with pytest.raises(StoreError) as refused:
            StoreReader(tmp_path).answers([call_id(1)])
        found = hashlib.sha256(content).hexdigest()
        assert wanted in str(refused.value)
        assert found in str(refused.value)
        assert path.name in str(refused.value)

    def test_an_open_shard_damaged_in_the_middle_is_named_and_sealed_ones_are_kept(self, tmp_path):
        sealed = OpenShard(tmp_path, "sealed")
        sealed.write([answer(1)], [])
        sealed.seal()
        shard = OpenShard(tmp_path, "shard")
        shard.write([answer(number, "A" * 500) for number in range(2, 200)], [])
        shard.close()
        content = bytearray(shard.path.read_bytes())
        middle = len(content) // 2
        content[middle : middle + 8192] = b"\xff" * 8192
        shard.path.write_bytes(content)
        with pytest.raises(StoreError, match=r"shard\.sqlite .* damaged .* Sealed shards are not affected"):
            OpenShard(tmp_path, "shard").write([answer(999)], [])
        with pytest.raises(StoreError, match=r"shard\.sqlite .* damaged"):
            StoreReader(tmp_path).answers([call_id(150)])
        shard.path.unlink()
        assert StoreReader(tmp_path).answers([call_id(1)])[call_id(1)].text == "A"

    @pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are not set like this there")
    def test_a_full_disk_is_told_and_what_was_committed_stays(self, tmp_path):
        code = """
import resource, signal, sys
sys.path.insert(0, sys.argv[2])
from test_call_store import answer
from pathlib import Path
from judge_calibration.judges.store import OpenShard, StoreError, StoreWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
writer = StoreWriter(Path(sys.argv[1]))
shard = OpenShard(Path(sys.argv[1]), "shard")
kept = 0
try:
    for number in range(1000):
        writer.keep(shard, answer(number, "x" * 2000), []).result(10)
        kept += 1
except StoreError as problem:
    print(kept)
    print(problem)
"""
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), str(Path(__file__).parent)],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        kept, message = done.stdout.split("\n", 1)
        assert "cannot be used while writing answers" in message, done.stderr
        assert "Next: free space" in message
        found = StoreReader(tmp_path).answers(map(call_id, range(1000)))
        assert len(found) == int(kept) > 0

    def test_a_flipped_byte_in_an_answer_of_an_open_shard_is_told(self, tmp_path):
        """SQLite's own check does not look into texts."""
        shard = OpenShard(tmp_path, "shard")
        shard.write([answer(number, "the answer is A") for number in range(50)], [])
        shard.close()
        content = shard.path.read_bytes()
        assert content.count(b"the answer is A") == 50
        shard.path.write_bytes(content.replace(b"the answer is A", b"the answer is B", 1))
        message = r"shard\.sqlite .* damaged \(a commit is not what was written\)"
        for act in (OpenShard(tmp_path, "shard").check, OpenShard(tmp_path, "shard").seal):
            with pytest.raises(StoreError, match=message):
                act()
        with pytest.raises(StoreError, match=message):
            StoreReader(tmp_path).answers([call_id(1)])
        assert not (tmp_path / "sealed").exists()

    def test_a_checksum_file_that_is_empty_is_told(self, tmp_path):
        shard = OpenShard(tmp_path, "shard")
        shard.write([answer(1)], [])
        shard.seal()
        next((tmp_path / "sealed").glob("*.answers.parquet.sha256")).write_bytes(b"")
        with pytest.raises(StoreError, match="holds no SHA-256"):
            StoreReader(tmp_path).answers([call_id(1)])

    def test_a_sealed_file_that_is_gone_is_told_by_its_checksum(self, tmp_path):
        shard = OpenShard(tmp_path, "shard")
        shard.write([answer(1)], [])
        shard.seal()
        gone = next((tmp_path / "sealed").glob("*.answers.parquet"))
        gone.unlink()
        with pytest.raises(StoreError, match=rf"1 sealed files are gone .*: {gone.name}"):
            StoreReader(tmp_path).answers([call_id(1)])

    def test_what_was_sealed_and_then_damaged_is_sealed_again_while_the_open_file_is_there(self, tmp_path):
        shard = OpenShard(tmp_path, "shard")
        shard.write([answer(1)], [])
        shard.close()  # moves its log into the file
        copy = shard.path.read_bytes()
        shard.seal()
        before = StoreReader(tmp_path).sealed_hashes()
        sealed = next((tmp_path / "sealed").glob("*.answers.parquet"))
        sealed.write_bytes(sealed.read_bytes()[:-9])
        shard.path.write_bytes(copy)
        OpenShard(tmp_path, "shard").seal()
        assert StoreReader(tmp_path).sealed_hashes() == before
        assert StoreReader(tmp_path).answers([call_id(1)])[call_id(1)] == answer(1)

    @pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are not set like this there")
    def test_a_disk_that_is_full_when_a_shard_is_opened_is_not_called_damage(self, tmp_path):
        code = """
import resource, signal, sys
from pathlib import Path
from judge_calibration.judges.store import OpenShard, StoreError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
shard = OpenShard(Path(sys.argv[1]), "shard")
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    shard.write([], [])
except StoreError as problem:
    print(problem)
"""
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60
        )
        assert "cannot be used while writing answers" in done.stdout, done.stderr
        assert "damaged" not in done.stdout

    def test_a_file_in_the_place_of_the_folder_is_told(self, tmp_path):
        (tmp_path / "open").write_text("")
        with pytest.raises(StoreError, match="cannot be used while writing answers"):
            OpenShard(tmp_path, "shard").write([answer(1)], [])


def test_every_commit_is_on_the_disk_before_it_is_confirmed(tmp_path):
    shard = OpenShard(tmp_path, "shard")
    shard.write([answer(1)], [])
    connection = shard._open()
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    shard.close()
    with sqlite3.connect(shard.path) as reader:
        assert reader.execute("SELECT count(*) FROM commits").fetchone() == (1,)


class TestLogOfAKilledRun:
    """What a killed process leaves lies in SQLite's log; SQLite drops all behind a wrong frame, silently."""

    @pytest.fixture
    def left(self, tmp_path):
        """A store with 40 commits in the log of its open shard, as a killed process leaves it."""
        shard = OpenShard(tmp_path / "alive", "shard")
        for number in range(40):
            shard.write([answer(number, f"A {'x' * 300}")], [attempt(number)])
        folder = tmp_path / "killed"
        (folder / "open").mkdir(parents=True)
        for path in (tmp_path / "alive" / "open").glob("shard.sqlite*"):
            (folder / "open" / path.name).write_bytes(path.read_bytes())
        shard.close()
        return folder

    @staticmethod
    def log_of(folder):
        return folder / "open" / "shard.sqlite-wal"

    def test_an_undamaged_one_is_read_whole(self, left):
        assert damaged_at(self.log_of(left)) is None
        OpenShard(left, "shard").check()
        assert len(StoreReader(left).answers(map(call_id, range(40)))) == 40

    @pytest.mark.parametrize("share", [0.0005, 0.1, 0.3, 0.5, 0.8, 0.9])
    def test_damage_in_the_middle_is_told(self, left, share):
        log = self.log_of(left)
        content = bytearray(log.read_bytes())
        content[int(len(content) * share)] ^= 1
        log.write_bytes(content)
        with pytest.raises(StoreError, match=r"shard\.sqlite .* damaged \(its log shard\.sqlite-wal is not"):
            OpenShard(left, "shard").check()

    def test_a_last_transaction_that_was_never_finished_is_no_damage(self, left):
        log = self.log_of(left)
        log.write_bytes(log.read_bytes()[:-2000])
        assert damaged_at(log) is None
        OpenShard(left, "shard").check()
        assert len(StoreReader(left).answers(map(call_id, range(40)))) == 39

    def test_frames_of_an_earlier_round_are_no_damage(self, tmp_path):
        """After a checkpoint SQLite writes its log anew from the start, over what it held before."""
        shard = OpenShard(tmp_path, "shard")
        for number in range(60):
            shard.write([answer(number, "x" * 3000)], [])
        assert shard._connection is not None
        shard._connection.execute("PRAGMA wal_checkpoint(RESTART)")
        shard.write([answer(60)], [])
        log = self.log_of(tmp_path)
        assert log.stat().st_size > 60 * 3000
        assert damaged_at(log) is None
        shard.close()

    def test_a_run_tells_it_before_anything_is_asked(self, left):
        log = self.log_of(left)
        content = bytearray(log.read_bytes())
        content[len(content) // 2] ^= 1
        log.write_bytes(content)
        asking = AskingOptions.model_validate({"progress": False})
        judge = TransportOptions(transport="openai_http", api_base="http://127.0.0.1:9/v1")
        with pytest.raises(StoreError, match="damaged"):
            ask_blocks([], AskSetup({"judge": judge}, asking, left, "run"))
