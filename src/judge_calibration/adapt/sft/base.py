"""The base model for torch, from the very file that the embedded runtime loads, converted once."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

from judge_calibration.adapt.sft.training import TrainingError
from judge_calibration.errors import StorageError
from judge_calibration.judges.embedded.gguf import read_header
from judge_calibration.judges.embedded.weights import Weights
from judge_calibration.judges.lock import waiting_lock
from judge_calibration.runs import files

logger = logging.getLogger(__name__)

ARCHITECTURES = ("llama",)
"""Architectures of GGUF whose matrices this project knows to name and to order."""


def load_base(weights: Weights, folder: Path, device: str = "cpu") -> Any:
    """Return the model in single precision, converted from its GGUF file if that was not yet done.

    Parameters
    ----------
    weights : Weights
        The file that the runtime loads. Its values are unpacked, not changed.
    folder : pathlib.Path
        Where converted models are kept (about four bytes a weight).
    device : str
        ``cpu`` or ``cuda``.

    Returns
    -------
    transformers.PreTrainedModel
    """
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging as their_logging

    their_logging.disable_progress_bar()
    target = folder / weights.sha256[:16]
    with files.explained(target):
        folder.mkdir(parents=True, exist_ok=True)
        with waiting_lock(folder / "base.lock"):
            if not (target / "config.json").is_file():
                _convert(weights, target)
    model = AutoModelForCausalLM.from_pretrained(target, dtype=torch.float32, attn_implementation="sdpa")
    return model.to(device)


def _convert(weights: Weights, target: Path) -> None:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM

    logger.info("Converting %s for torch, once (about 15 s) ...", weights.path.name)
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # a bar that no setting switches off
            model = AutoModelForCausalLM.from_pretrained(
                weights.path.parent, gguf_file=weights.path.name, dtype=torch.float32
            )
        config = model.config
        if hasattr(config, "quantization_config"):
            del config.quantization_config  # the values are unpacked: the copy is a plain model
        config.save_pretrained(temporary)
        tied = {"lm_head.weight"} if config.tie_word_embeddings else set()
        state = {name: value.contiguous() for name, value in model.state_dict().items() if name not in tied}
        try:
            save_file(state, temporary / "model.safetensors", metadata={"format": "pt"})
        except SafetensorError as problem:
            raise StorageError(
                f"The unpacked model cannot be written to {target}: {problem}",
                "free some space (it takes four bytes a weight) or make the folder writable, then run again",
            ) from problem
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def device_of(wanted: str) -> str:
    """Return ``cuda`` where it is wanted and there, else ``cpu``.

    Raises
    ------
    TrainingError
        If an accelerator is asked for by name and there is none.
    """
    import torch

    if wanted == "cpu":
        return "cpu"
    if torch.cuda.is_available():
        return "cuda"
    if wanted == "cuda":
        raise TrainingError(
            "device: cuda is asked for, and torch finds no such accelerator.", "set device: auto or cpu"
        )
    return "cpu"


def check_architecture(weights: Weights) -> None:
    """Refuse a model whose matrices this project cannot name in an adapter.

    Raises
    ------
    TrainingError
    """
    kind = read_header(weights.path).metadata.get("general.architecture")
    if kind not in ARCHITECTURES:
        raise TrainingError(
            f"Models of the architecture {kind} cannot be trained here; wanted {', '.join(ARCHITECTURES)}.",
            "name another model",
        )
