"""Files that are whole or absent."""

import os

import pytest

from judge_calibration.errors import ChecksumError, StorageError
from judge_calibration.runs import files


class TestWriting:
    def test_an_error_half_way_leaves_what_was_there(self, tmp_path):
        path = tmp_path / "a.txt"
        files.write_bytes(path, b"before")

        def break_off(file):
            file.write(b"half")
            raise ValueError

        with pytest.raises(ValueError):  # noqa: PT011
            files.write_atomically(path, break_off)
        assert path.read_bytes() == b"before"
        assert os.listdir(tmp_path) == ["a.txt"]

    def test_while_it_is_replaced_there_is_no_checksum(self, tmp_path):
        path = tmp_path / "a.txt"
        files.write_checked(path, lambda file: file.write(b"one"))
        with pytest.raises(ZeroDivisionError):
            files.write_checked(path, lambda file: file.write(bytes(1 // 0)))
        assert not files.is_complete(path)

    @pytest.mark.parametrize(
        ("number", "message"),
        [(28, "The disk is full"), (122, "The disk is full"), (30, "read-only"), (13, "permission denied")],
    )
    def test_what_the_system_refuses_is_explained(self, tmp_path, monkeypatch, number, message):
        def refuse(*_):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "replace", refuse)
        with pytest.raises(StorageError, match=message):
            files.write_bytes(tmp_path / "a.txt", b"x")
        assert os.listdir(tmp_path) == []


class TestVerifying:
    def test_returns_what_it_verified(self, tmp_path):
        digest = files.write_checked(tmp_path / "a.txt", lambda file: file.write(b"abc"))
        # The SHA-256 of "abc" as FIPS 180-2 prints it.
        assert digest == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        assert files.verify(tmp_path / "a.txt") == {"a.txt": digest}

    def test_no_checksum(self, tmp_path):
        (tmp_path / "a.txt").write_bytes(b"x")
        with pytest.raises(ChecksumError, match="never finished"):
            files.verify(tmp_path / "a.txt")

    def test_file_gone(self, tmp_path):
        files.write_checked(tmp_path / "a.txt", lambda file: file.write(b"x"))
        (tmp_path / "a.txt").unlink()
        with pytest.raises(ChecksumError, match=r"a\.txt is absent"):
            files.verify(tmp_path / "a.txt")

    @pytest.mark.parametrize("text", ["", "abc  a.txt\n", "\xff\xfe"])
    def test_a_checksum_file_that_is_none(self, tmp_path, text):
        (tmp_path / "a.txt").write_bytes(b"x")
        (tmp_path / "a.txt.sha256").write_text(text, encoding="latin-1")
        with pytest.raises(ChecksumError):
            files.verify(tmp_path / "a.txt")
