"""LoRA adapters that the embedded runtime adds to a model: read, checked against the model, and written.

An adapter is a GGUF file with two small matrices for each matrix of the model that it changes: their product,
times alpha over the rank, is added to it. It fits the model that it was trained on and no other; nothing in
the arithmetic would show a wrong pairing, so it is refused here by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from judge_calibration.errors import JudgeCalibrationError
from judge_calibration.judges.embedded.gguf import WeightsError, read_header, to_gguf
from judge_calibration.judges.embedded.weights import Weights, sha256_of_file

BASE_SHA256: Final = "judge_calibration.base_shipped_sha256"
"""Metadata key: SHA-256 of the model file, as shipped, that the adapter was trained on."""
BASE_NAME: Final = "general.base_model.0.name"
_A: Final = ".lora_a"
_B: Final = ".lora_b"
_BYTES: Final = {0: 4, 1: 2, 30: 2}
"""Bytes a weight of the formats that adapters come in (F32, F16, BF16)."""


class AdapterError(JudgeCalibrationError):
    """An adapter file is missing, damaged, or made for another model."""


@dataclass(frozen=True)
class Adapter:
    """An adapter that fits the model it is used with.

    Attributes
    ----------
    path : pathlib.Path
    sha256 : str
        Of the file; part of the instrument's identity.
    """

    path: Path
    sha256: str


@dataclass(frozen=True)
class LowRank:
    """The change of one matrix: ``up @ down``, times alpha over the rank.

    Attributes
    ----------
    down : numpy.ndarray, shape (rank, inputs)
    up : numpy.ndarray, shape (outputs, rank)
    """

    down: np.ndarray
    up: np.ndarray


def check_adapter(file: str, weights: Weights) -> Adapter:
    """Return the adapter in `file` if it was made for the model in `weights`.

    Parameters
    ----------
    file : str
        Path of the adapter, as in the judge's ``transport.embedded.adapter``.
    weights : Weights
        The model that it is to be added to.

    Raises
    ------
    AdapterError
        If the file is not there, is no LoRA adapter, names another base model, or changes matrices that the
        model does not have in that size.
    """
    path = Path(file)
    if not path.is_file():
        raise AdapterError(
            f"The adapter {path} is not there.",
            "correct transport.embedded.adapter, or train it again (docs/adaptation-sft.md)",
        )
    try:
        header = read_header(path)
    except (WeightsError, MemoryError, OverflowError, UnicodeError) as problem:
        raise AdapterError(
            f"The adapter {path} cannot be read: {getattr(problem, 'message', problem)}",
            "name a LoRA adapter in the GGUF format",
        ) from None
    said: dict[str, Any] = header.metadata
    if said.get("general.type") != "adapter" or said.get("adapter.type") != "lora":
        raise AdapterError(
            f"{path} is no LoRA adapter (its general.type is {said.get('general.type')!r}).",
            "name a LoRA adapter in the GGUF format",
        )
    size = path.stat().st_size
    wanted_size = max(
        (tensor.start + tensor.weights * _BYTES.get(tensor.format, 0) for tensor in header.tensors), default=0
    )
    if size < wanted_size:
        raise AdapterError(
            f"The adapter {path} ends early: it has {size:,} bytes of at least {wanted_size:,}.",
            "copy it again, or train it again (docs/adaptation-sft.md)",
        )
    model = read_header(weights.path)
    trained_on = said.get(BASE_SHA256)
    if trained_on is not None and trained_on != weights.shipped_sha256:
        raise AdapterError(
            f"The adapter {path} was trained on another model: {said.get(BASE_NAME, 'one')} with the SHA-256 "
            f"{str(trained_on)[:16]}..., and this judge's model {model.metadata.get('general.name', '')} has "
            f"{weights.shipped_sha256[:16]}...",
            "use the adapter with the model that it was trained on, or train one for this model",
        )
    sizes = {tensor.name: tensor.shape for tensor in model.tensors}
    shapes = {tensor.name: tensor.shape for tensor in header.tensors}
    unfit = _unfit(shapes, sizes)
    kinds = (said.get("general.architecture"), model.metadata.get("general.architecture"))
    if kinds[0] != kinds[1]:
        unfit.insert(0, f"it is for the architecture {kinds[0]!r}, and the model is {kinds[1]!r}")
    if unfit:
        raise AdapterError(
            f"The adapter {path} does not fit the model {weights.path.name}: {'; '.join(unfit[:3])}"
            + (f" and {len(unfit) - 3} more." if len(unfit) > 3 else "."),
            "use the adapter with the model that it was trained on, or train one for this model",
        )
    return Adapter(path, sha256_of_file(path))


def _unfit(shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Say which matrices of an adapter the model does not have, or has in another size."""
    unfit = [] if shapes else ["it changes nothing"]
    for name in shapes:
        target = name.removesuffix(_A).removesuffix(_B)
        pair = (shapes.get(target + _A), shapes.get(target + _B))
        if target == name or None in pair or any(len(one) != 2 for one in pair if one):
            unfit.append(f"{name} is half of no pair of matrices")
        elif target not in sizes:
            unfit.append(f"the model has no {target}")
        elif name.endswith(_A):
            down, up = pair
            made = (down[0], up[1]) if down and up else ()
            if made != sizes[target] or (down and up and down[1] != up[0]):
                wanted = " x ".join(map(str, sizes[target]))
                unfit.append(f"{target} is {wanted}, and it is for {' x '.join(map(str, made))}")
    return unfit


def adapter_bytes(
    changes: Mapping[str, LowRank], alpha: float, weights: Weights, notes: Mapping[str, str] | None = None
) -> bytes:
    """Return an adapter as a GGUF file.

    Parameters
    ----------
    changes : mapping of str to LowRank
        By the name of the model's matrix in GGUF, such as ``blk.0.attn_q.weight``, with rows and columns in
        the order that they have there (see :func:`rotary_order`).
    alpha : float
        The change is multiplied by alpha over the rank.
    weights : Weights
        The model that it was trained on.
    notes : mapping, optional
        Further metadata.
    """
    model = read_header(weights.path).metadata
    metadata: dict[str, str | int | float] = {
        "general.type": "adapter",
        "general.architecture": str(model["general.architecture"]),
        "adapter.type": "lora",
        "adapter.lora.alpha": float(alpha),
        BASE_NAME: str(model.get("general.name", weights.path.stem)),
        BASE_SHA256: weights.shipped_sha256,
        **(notes or {}),
    }
    tensors = {}
    for name in sorted(changes):
        tensors[name + _A] = changes[name].down
        tensors[name + _B] = changes[name].up
    return to_gguf(metadata, tensors)


def rotary_order(rows: np.ndarray, heads: int) -> np.ndarray:
    """Put the rows of a query or key matrix into the order of GGUF's llama models.

    Other libraries keep the two halves of each head's rotary dimensions one after the other; GGUF takes them
    in turns.

    Parameters
    ----------
    rows : numpy.ndarray, shape (heads * size, columns)
    heads : int
        Of the queries, or of the keys.

    Examples
    --------
    >>> rotary_order(np.arange(8)[:, None], heads=2)[:, 0].tolist()
    [0, 2, 1, 3, 4, 6, 5, 7]
    """
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)
