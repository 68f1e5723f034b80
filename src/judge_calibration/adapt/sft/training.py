"""The training itself: LoRA on a causal model, cross-entropy of the verdict token and of nothing else.

All prompts of a judge begin alike (its system prompt). That beginning is computed once for each part of a
batch and shared, gradients included; the result is the same and the time about half. Where only the last
layers are trained, what those before them compute is kept from epoch to epoch. An epoch ends with a
checkpoint, and the order of the pairs depends on the seed and the epoch alone, so a run that was killed goes
on to the same adapter.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from judge_calibration.adapt.sft.examples import Example, shared_beginning
from judge_calibration.adapt.sft.layers import Halves
from judge_calibration.errors import ChecksumError, JudgeCalibrationError
from judge_calibration.options.sft import RecipeOptions
from judge_calibration.runs import files

logger = logging.getLogger(__name__)


class TrainingError(JudgeCalibrationError):
    """A training run cannot go on: the loss is no number, or torch is missing."""


@dataclass(frozen=True)
class Epoch:
    """What one epoch came to.

    Attributes
    ----------
    epoch : int
        From 1.
    steps : int
        Steps so far.
    loss : float
        Mean cross-entropy of the verdict token in nats, as seen while training (each prompt before its step).
    accuracy : float
        Share in [0, 1] of training prompts whose right label was more probable than the other, likewise.
    seconds : float
        Wall time, of the attempt that ended it; NaN where an old checkpoint does not say.
    """

    epoch: int
    steps: int
    loss: float
    accuracy: float
    seconds: float = float("nan")


@dataclass(frozen=True)
class Trained:
    """A trained adapter: its two matrices by the name of the module that they change, and its history."""

    down: dict[str, np.ndarray]
    up: dict[str, np.ndarray]
    epochs: list[Epoch]
    precision: str = "float32"
    """Numbers that products of matrices were computed in."""


def let_waiting_threads_sleep() -> None:
    """Have torch's threads sleep while they wait for one another, if nobody has loaded OpenMP yet.

    By default they spin, and on a machine that does other work as well a spinning thread keeps the one that
    it waits for from running: two threads then take ten times as long as one. On a quiet machine sleeping
    costs nothing that can be measured. What the user has set stays.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def package_versions() -> dict[str, str | None]:
    """Return the versions of the packages that training needs; None for one that is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str | None] = {}
    for name in ("torch", "transformers", "peft", "gguf"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def without(missing: Sequence[str]) -> str:
    """Say in one line what is missing, and the commands that bring it."""
    return (
        f"Training needs {', '.join(missing)}, not installed in {sys.prefix}: run `make env-sft`, then the "
        "same command with `.venv-sft/bin/kedro`."
    )


def batches(examples: Sequence[Example], batch: int, seed: int, epoch: int) -> list[list[int]]:
    """Return the batches of one epoch, as positions; they depend on the seed and the epoch alone.

    Examples
    --------
    >>> ten = [Example(str(i), "AB", (1, 2), 0) for i in range(10)]
    >>> [len(one) for one in batches(ten, 4, seed=1, epoch=1)]
    [4, 4, 2]
    >>> batches(ten, 4, 1, 1) == batches(ten, 4, 1, 1) != batches(ten, 4, 1, 2)
    True
    """
    order = np.random.default_rng([seed, epoch]).permutation(len(examples))
    return [order[start : start + batch].tolist() for start in range(0, len(order), batch)]


def parts(lengths: Sequence[int], shared: int, most: int) -> list[list[int]]:
    """Split a batch into parts whose tokens are at most so many, the shared beginning counted once.

    A prompt above the limit is a part of its own. Prompts of like length come together.

    Examples
    --------
    >>> parts([10, 30, 12, 100], shared=5, most=25)
    [[0, 2], [1], [3]]
    """
    out: list[list[int]] = []
    for position in sorted(range(len(lengths)), key=lambda place: (lengths[place], place)):
        # The last one is the longest; all are as long as it after padding.
        size = shared + (len(out[-1]) + 1) * (lengths[position] - shared) if out else most + 1
        if size > most:
            out.append([position])
        else:
            out[-1].append(position)
    return out


def rate_at(step: int, steps: int, recipe: RecipeOptions) -> float:
    """Return the learning rate of a step (from 0): up in a straight line, then down to 0.

    Examples
    --------
    >>> recipe = RecipeOptions(learning_rate=0.1, warmup=0.5)
    >>> [rate_at(step, 4, recipe) for step in range(4)]
    [0.05, 0.1, 0.1, 0.05]
    """
    rise = int(recipe.warmup * steps)
    if step < rise:
        return recipe.learning_rate * (step + 1) / rise
    return recipe.learning_rate * (steps - step) / max(steps - rise, 1)


def first_layer(layers: int, recipe: RecipeOptions) -> int:
    """Return the number of the first layer that is trained, from 0.

    Examples
    --------
    >>> first_layer(30, RecipeOptions(layers=10)), first_layer(30, RecipeOptions())
    (20, 0)
    """
    if recipe.layers is not None and recipe.layers > layers:
        raise TrainingError(
            f"layers: {recipe.layers} are to be trained, and the model has {layers}.", "lower recipe.layers"
        )
    return 0 if recipe.layers is None else layers - recipe.layers


def precision_of(recipe: RecipeOptions, device: str) -> Literal["float32", "bfloat16"]:
    """Return the numbers that products of matrices are computed in.

    ``auto`` takes bfloat16 where the device has instructions for it: a third less time on such processors,
    and several times as long on others.
    """
    if recipe.precision != "auto":
        return recipe.precision
    import torch

    if device == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    able = torch.cpu.get_capabilities()
    return "bfloat16" if able.get("avx512_bf16") or able.get("amx_bf16") else "float32"


def add_lora(model: Any, recipe: RecipeOptions, seed: int) -> Any:
    """Freeze a causal model and add LoRA matrices to it, drawn with the seed.

    Returns
    -------
    peft.PeftModel
    """
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    first = first_layer(model.config.num_hidden_layers, recipe)
    config = LoraConfig(
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        lora_dropout=recipe.dropout,
        target_modules=list(recipe.targets),
        layers_to_transform=list(range(first, model.config.num_hidden_layers)),
        bias="none",
        task_type="CAUSAL_LM",
    )
    with warnings.catch_warnings():
        # peft asks transformers for an attribute by a name that is going away.
        warnings.simplefilter("ignore", FutureWarning)
        return get_peft_model(model, config)


def train(
    model: Any,
    examples: Sequence[Example],
    recipe: RecipeOptions,
    seed: int,
    checkpoint: Path | None = None,
    progress: bool | None = None,
    label: str = "",
) -> Trained:
    """Train a LoRA adapter on the verdict token.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        The base model; its own weights stay as they are.
    examples : sequence of Example
        Each pair in both orders.
    seed : int
        Of the matrices' first values and of the order of the examples.
    checkpoint : pathlib.Path, optional
        Folder in which the state is kept after each epoch, and taken up again. It has to be for this very
        run: the caller names it by a hash of everything that matters.
    progress : bool, optional
        Whether there is a bar; None: on a terminal only.

    Returns
    -------
    Trained

    Raises
    ------
    TrainingError
        If the loss is no number any more: the learning rate is too high.
    """
    import torch

    lora = add_lora(model, recipe, seed)
    lora.train()
    weights = {name: value for name, value in lora.named_parameters() if value.requires_grad}
    device = model.lm_head.weight.device.type
    precision = precision_of(recipe, device)
    optimiser = torch.optim.AdamW(weights.values(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    shared = shared_beginning(examples)
    first = first_layer(model.config.num_hidden_layers, recipe)
    halves = Halves(lora.get_base_model(), first, shared)
    lower = (
        contextlib.nullcontext if precision == "float32" else partial(torch.autocast, device, torch.bfloat16)
    )
    a_step = -(-len(examples) // recipe.batch)
    steps = min(recipe.epochs * a_step, recipe.most_steps or sys.maxsize)
    state = _taken_up(checkpoint) if checkpoint else None
    history: list[Epoch] = []
    if state is not None:
        for name, value in weights.items():
            value.data.copy_(state["weights"][name])
        optimiser.load_state_dict(state["optimiser"])
        history = [Epoch(**one) for one in state["history"]]
        logger.info("Training %s goes on after epoch %d.", label, len(history))
    done = history[-1].steps if history else 0
    labels = sorted({one.target for one in examples})
    with _Bar(steps * recipe.batch, done * recipe.batch, progress, label) as bar:
        while done < steps:
            started, epoch = time.monotonic(), len(history) + 1
            torch.manual_seed(seed + epoch)  # for dropout
            seen, losses, right = 0, 0.0, 0
            for chosen in batches(examples, recipe.batch, seed, epoch):
                if done >= steps:
                    break
                for group in optimiser.param_groups:
                    group["lr"] = rate_at(done, steps, recipe)
                here = [examples[place] for place in chosen]
                loss, correct = _step(halves, lower, here, shared, labels, recipe, optimiser, weights)
                if not np.isfinite(loss):
                    raise TrainingError(
                        f"The loss of {label or 'the training'} is no number any more in step {done + 1}.",
                        f"lower the learning rate ({recipe.learning_rate:g}); the last checkpoint is kept",
                    )
                done += 1
                seen, losses, right = seen + len(here), losses + loss * len(here), right + correct
                bar.update(len(here), losses / seen)
            seconds = time.monotonic() - started
            history.append(Epoch(epoch, done, losses / seen, right / seen, seconds))
            logger.info(
                "%s, epoch %d of %d: loss %.3f, %.0f %% of the training prompts right, %.0f s",
                label,
                epoch,
                recipe.epochs,
                losses / seen,
                100 * right / seen,
                seconds,
            )
            if checkpoint:
                _keep(checkpoint, weights, optimiser, history)
    return _matrices(weights, history, precision)


def _step(
    halves: Halves,
    lower: Callable[[], contextlib.AbstractContextManager[Any]],
    examples: Sequence[Example],
    shared: int,
    labels: Sequence[int],
    recipe: RecipeOptions,
    optimiser: Any,
    weights: dict[str, Any],
) -> tuple[float, int]:
    """Take one step, and return the mean loss and how many prompts were right before it."""
    import torch

    optimiser.zero_grad(set_to_none=True)
    total, correct = 0.0, 0
    for part in parts([len(one.tokens) for one in examples], shared, recipe.tokens_at_once):
        here = [examples[place] for place in part]
        with lower():
            logits = halves.last_logits(here)
        logits = logits.float()
        targets = torch.tensor([one.target for one in here], device=logits.device)
        loss = torch.nn.functional.cross_entropy(logits, targets, reduction="sum") / len(examples)
        loss.backward()
        total += float(loss.detach())
        among = logits.detach()[:, list(labels)].argmax(dim=1)
        correct += sum(labels[int(place)] == one.target for place, one in zip(among, here, strict=True))
    if np.isfinite(total):
        torch.nn.utils.clip_grad_norm_(weights.values(), recipe.largest_gradient)
        optimiser.step()
    return total, correct


def _matrices(weights: dict[str, Any], history: list[Epoch], precision: str) -> Trained:
    down: dict[str, np.ndarray] = {}
    up: dict[str, np.ndarray] = {}
    for name, value in weights.items():
        module = name.removeprefix("base_model.model.").partition(".lora_")[0]
        matrix = value.detach().float().cpu().numpy().copy()
        (down if ".lora_A." in name else up)[module] = matrix
    return Trained(down, up, history, precision)


def _keep(folder: Path, weights: dict[str, Any], optimiser: Any, history: Sequence[Epoch]) -> None:
    """Write the state after an epoch, and then remove the one before: one of them is always whole."""
    import torch

    state = {
        "weights": {name: value.detach().cpu() for name, value in weights.items()},
        "optimiser": optimiser.state_dict(),
        "history": [vars(one) for one in history],
    }
    newest = folder / f"epoch-{len(history):04d}.pt"
    # By way of memory: torch hides what the operating system says of a file that it cannot write.
    content = io.BytesIO()
    torch.save(state, content)
    files.write_checked(newest, lambda file: file.write(content.getbuffer()))
    for old in _states(folder):
        if old != newest:
            files.sidecar_of(old).unlink(missing_ok=True)
            old.unlink()


def _states(folder: Path) -> list[Path]:
    return sorted(folder.glob("epoch-*.pt"), reverse=True)


def _taken_up(folder: Path) -> dict[str, Any] | None:
    """Return the newest state in a folder of checkpoints that is whole, or None."""
    import torch

    for path in _states(folder):
        try:
            files.verify(path)
        except ChecksumError:
            logger.warning("The checkpoint %s is damaged or was never finished; it is not used.", path)
            continue
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        return state
    return None


class _Bar:
    """A progress bar over prompts, silent where the error output is no terminal."""

    def __init__(self, total: int, done: int, shown: bool | None, label: str) -> None:
        self._bar: Any = None
        if sys.stderr.isatty() if shown is None else shown:
            from tqdm import tqdm

            name = f"training {label}".strip()
            self._bar = tqdm(total=total, initial=done, unit="prompt", desc=name, dynamic_ncols=True)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def update(self, count: int, loss: float) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(f"loss {loss:.3f}", refresh=False)
            self._bar.update(count)
