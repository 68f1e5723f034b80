"""Model weights in a GGUF file, written anew in the format Q8_0.

The embedded model ships as Q4_1 (4 bits a weight, a scale and a minimum for 32 weights). Reading prompts
is bound by the arithmetic of unpacking, and Q8_0 (8 bits a weight, one scale for 32) unpacks nearly for
free. The values stay those of the shipped file up to the rounding of Q8_0; nothing is gained in quality.
The bytes written depend only on the bytes read, so the new file has one SHA-256 on every machine.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from judge_calibration.errors import JudgeCalibrationError

_MAGIC: Final = b"GGUF"
_ALIGNMENT: Final = 32
_BLOCK: Final = 32
F32: Final = 0
F16: Final = 1
Q4_1: Final = 3
Q8_0: Final = 8
_FILE_TYPE_Q8_0: Final = 7
TYPE_NAMES: Final = {F32: "F32", F16: "F16", 2: "Q4_0", Q4_1: "Q4_1", Q8_0: "Q8_0"}
_ROW_BYTES: Final = {F32: 4 * _BLOCK, F16: 2 * _BLOCK, Q4_1: 4 + _BLOCK // 2, Q8_0: 2 + _BLOCK}
"""Bytes of 32 weights in each format that is read here."""

_SCALARS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING: Final = 8
_ARRAY: Final = 9


class WeightsError(JudgeCalibrationError):
    """A GGUF file is damaged, or holds a format that is not read here."""


@dataclass(frozen=True)
class Tensor:
    """One tensor of the file: its name, dimensions, format, and the first byte of its data."""

    name: str
    shape: tuple[int, ...]
    format: int
    start: int

    @property
    def weights(self) -> int:
        """Number of weights."""
        return int(np.prod(self.shape))


class _Reader:
    def __init__(self, handle: BinaryIO, name: str) -> None:
        self.handle = handle
        self.name = name

    def take(self, count: int) -> bytes:
        data = self.handle.read(count)
        if len(data) != count:
            raise WeightsError(f"{self.name} ends in the middle of its header.", "install the model again")
        return data

    def number(self, kind: str) -> Any:
        return struct.unpack("<" + kind, self.take(struct.calcsize("<" + kind)))[0]

    def string(self) -> str:
        return self.take(self.number("Q")).decode("utf-8", "surrogateescape")

    def value(self, kind: int) -> Any:
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            item, count = self.number("I"), self.number("Q")
            return [self.value(item) for _ in range(count)]
        raise WeightsError(
            f"{self.name} holds a value of the unknown kind {kind}.", "install the model again"
        )


@dataclass(frozen=True)
class Header:
    """What stands before the weights.

    Attributes
    ----------
    version : int
        Version of the GGUF format.
    entries : list of tuple
        Key, kind, value and raw bytes of each metadata entry, in the file's order.
    tensors : list of Tensor
        In the file's order.
    """

    version: int
    entries: list[tuple[str, int, Any, bytes]]
    tensors: list[Tensor]

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata as a mapping."""
        return {key: value for key, _, value, _ in self.entries}

    @property
    def alignment(self) -> int:
        """Tensor data starts at multiples of this many bytes."""
        return int(self.metadata.get("general.alignment", _ALIGNMENT))

    @property
    def quantisation(self) -> str:
        """The format that most weights have, e.g. ``Q8_0``."""
        counts: dict[int, int] = {}
        for tensor in self.tensors:
            counts[tensor.format] = counts.get(tensor.format, 0) + tensor.weights
        return TYPE_NAMES.get(most := max(counts, key=lambda kind: counts[kind]), f"type {most}")


def read_header(path: Path) -> Header:
    """Read the metadata and the list of tensors of a GGUF file (versions 2 and 3).

    Raises
    ------
    WeightsError
        If the file is not GGUF, or ends early.
    """
    with path.open("rb") as handle:
        reader = _Reader(handle, path.name)
        if handle.read(4) != _MAGIC:
            raise WeightsError(f"{path} is no GGUF file.", "name a model file in the GGUF format")
        version = reader.number("I")
        if version not in (2, 3):
            raise WeightsError(f"{path} has GGUF version {version}; 2 and 3 are read.", "convert the file")
        n_tensors, n_entries = reader.number("Q"), reader.number("Q")
        entries = []
        for _ in range(n_entries):
            first = handle.tell()
            key, kind = reader.string(), reader.number("I")
            value = reader.value(kind)
            last = handle.tell()
            handle.seek(first)
            entries.append((key, kind, value, handle.read(last - first)))
        described = []
        for _ in range(n_tensors):
            name = reader.string()
            shape = tuple(reader.number("Q") for _ in range(reader.number("I")))
            described.append((name, shape, reader.number("I"), reader.number("Q")))
        alignment = next((value for key, _, value, _ in entries if key == "general.alignment"), _ALIGNMENT)
        start = -(-handle.tell() // alignment) * alignment
        tensors = [Tensor(name, shape, kind, start + offset) for name, shape, kind, offset in described]
        return Header(version, entries, tensors)


def _from_q4_1(blocks: np.ndarray) -> np.ndarray:
    """Weights of Q4_1 blocks: scale times (0 to 15) plus minimum."""
    scale = blocks[:, 0:2].copy().view("<f2").astype(np.float32)
    minimum = blocks[:, 2:4].copy().view("<f2").astype(np.float32)
    packed = blocks[:, 4:]
    steps = np.concatenate([packed & 0x0F, packed >> 4], axis=1).astype(np.float32)
    return scale * steps + minimum


def to_q8_0(weights: np.ndarray) -> np.ndarray:
    """Return weights as Q8_0 blocks.

    Parameters
    ----------
    weights : numpy.ndarray of float32, shape (n_blocks, 32)

    Returns
    -------
    numpy.ndarray of uint8, shape (n_blocks, 34)
        A half-precision scale (the largest magnitude over 127) and 32 signed bytes, halves rounded away
        from zero. A block of zeros has scale 0.

    Examples
    --------
    >>> block = np.zeros((1, 32), dtype=np.float32)
    >>> block[0, :2] = [1.27, -0.635]
    >>> [int(v) for v in to_q8_0(block)[0, 2:5].view(np.int8)]
    [127, -64, 0]
    """
    scale = np.abs(weights).max(axis=1, keepdims=True) / np.float32(127)
    with np.errstate(divide="ignore"):
        inverse = np.where(scale > 0, np.float32(1) / scale, np.float32(0)).astype(np.float32)
    scaled = weights * inverse
    rounded = (np.sign(scaled) * np.floor(np.abs(scaled) + np.float32(0.5))).astype(np.int8)
    return np.concatenate([scale.astype("<f2").view(np.uint8), rounded.view(np.uint8)], axis=1)


def _entry(key: str, value: str | int | float) -> bytes:
    """Raw bytes of one metadata entry: text, a whole number (32 bits) or a number (single precision)."""
    name = key.encode("utf-8")
    start = struct.pack("<Q", len(name)) + name
    if isinstance(value, str):
        text = value.encode("utf-8")
        return start + struct.pack("<IQ", _STRING, len(text)) + text
    if isinstance(value, int):
        return start + struct.pack("<II", 4, value)
    return start + struct.pack("<If", 6, value)


def to_gguf(metadata: Mapping[str, str | int | float], tensors: Mapping[str, np.ndarray]) -> bytes:
    """Return a GGUF file (version 3) that holds tensors in single precision.

    Parameters
    ----------
    metadata : mapping
        Text, whole numbers from 0 to 2**32 - 1, or numbers, by key, in the order to be written.
    tensors : mapping of str to numpy.ndarray
        With the rows of a matrix one after the other; GGUF lists the dimensions from the inside out.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "small.gguf"
    >>> _ = path.write_bytes(to_gguf({"general.name": "small"}, {"w": np.zeros((2, 3))}))
    >>> read_header(path).tensors[0].shape
    (3, 2)
    """
    out = bytearray(_MAGIC + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
    for key, value in metadata.items():
        out += _entry(key, value)
    offset = 0
    for name, values in tensors.items():
        raw_name = name.encode("utf-8")
        out += struct.pack("<Q", len(raw_name)) + raw_name + struct.pack("<I", values.ndim)
        out += struct.pack(f"<{values.ndim}QIQ", *reversed(values.shape), F32, offset)
        offset += -(-values.size * 4 // _ALIGNMENT) * _ALIGNMENT
    for values in tensors.values():
        out += b"\0" * (-len(out) % _ALIGNMENT)
        out += np.ascontiguousarray(values, dtype="<f4").tobytes()
    return bytes(out)


def requantise(source: Path, target: Path) -> None:
    """Write the weights of `source` to `target` with every Q4_1 tensor as Q8_0, all else as it was.

    Parameters
    ----------
    source, target : pathlib.Path
        `target` is overwritten; the caller makes the replacement atomic.

    Raises
    ------
    WeightsError
        If the source is damaged, or holds formats other than F32, F16, Q4_1 and Q8_0.
    """
    header = read_header(source)
    unknown = {tensor.format for tensor in header.tensors} - set(_ROW_BYTES)
    if unknown:
        raise WeightsError(
            f"{source.name} holds weights in formats {sorted(unknown)} of GGUF, which are not read here.",
            "set quantisation: as_shipped for this model",
        )
    alignment = header.alignment
    data = np.memmap(source, dtype=np.uint8, mode="r")
    with target.open("wb") as out:
        out.write(_MAGIC + struct.pack("<IQQ", header.version, len(header.tensors), len(header.entries)))
        for key, _, _, raw in header.entries:
            if key == "general.file_type":
                raw = raw[:-4] + struct.pack("<I", _FILE_TYPE_Q8_0)
            out.write(raw)
        offset = 0
        for tensor in header.tensors:
            name = tensor.name.encode("utf-8", "surrogateescape")
            kind = Q8_0 if tensor.format == Q4_1 else tensor.format
            out.write(struct.pack("<Q", len(name)) + name + struct.pack("<I", len(tensor.shape)))
            out.write(struct.pack(f"<{len(tensor.shape)}QIQ", *tensor.shape, kind, offset))
            size = tensor.weights * _ROW_BYTES[kind] // _BLOCK
            offset += -(-size // alignment) * alignment
        out.write(b"\0" * (-out.tell() % alignment))
        for tensor in header.tensors:
            size = tensor.weights * _ROW_BYTES[tensor.format] // _BLOCK
            raw_weights = data[tensor.start : tensor.start + size]
            if len(raw_weights) != size:
                raise WeightsError(f"{source.name} ends inside {tensor.name}.", "install the model again")
            if tensor.format == Q4_1:
                blocks = raw_weights.reshape(-1, _ROW_BYTES[Q4_1])
                out.write(to_q8_0(_from_q4_1(blocks)).tobytes())
            else:
                out.write(raw_weights.tobytes())
            out.write(b"\0" * (-out.tell() % alignment))
