"""From the names and the order of torch's matrices to those of a GGUF adapter."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from judge_calibration.errors import JudgeCalibrationError
from judge_calibration.judges.embedded.adapters import LowRank, rotary_order

_MODULE = re.compile(r"model\.layers\.(\d+)\.(?:self_attn|mlp)\.(\w+)")
_NAMES = {
    "q_proj": "attn_q",
    "k_proj": "attn_k",
    "v_proj": "attn_v",
    "o_proj": "attn_output",
    "gate_proj": "ffn_gate",
    "up_proj": "ffn_up",
    "down_proj": "ffn_down",
}


def to_gguf_changes(
    down: Mapping[str, np.ndarray], up: Mapping[str, np.ndarray], heads: tuple[int, int]
) -> dict[str, LowRank]:
    """Return the changes of a llama model by the names that GGUF gives its matrices.

    Parameters
    ----------
    down, up : mapping of str to numpy.ndarray
        By module, such as ``model.layers.0.self_attn.q_proj``.
    heads : tuple of int
        Query heads and key heads; their rows are reordered (see
        :func:`~judge_calibration.judges.embedded.adapters.rotary_order`).

    Examples
    --------
    >>> a, b = np.zeros((2, 8)), np.zeros((8, 2))
    >>> list(to_gguf_changes({"model.layers.3.mlp.up_proj": a}, {"model.layers.3.mlp.up_proj": b}, (2, 1)))
    ['blk.3.ffn_up.weight']
    """
    changes = {}
    for module, matrix in down.items():
        found = _MODULE.fullmatch(module)
        if found is None or found[2] not in _NAMES:
            raise JudgeCalibrationError(
                f"The matrix {module} has no name in GGUF's llama models.", "leave it out of the targets"
            )
        out = up[module]
        if found[2] == "q_proj":
            out = rotary_order(out, heads[0])
        elif found[2] == "k_proj":
            out = rotary_order(out, heads[1])
        changes[f"blk.{found[1]}.{_NAMES[found[2]]}.weight"] = LowRank(matrix, out)
    return changes
