"""How a judge is fine-tuned: which judge, on which pairs, by which recipe."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from judge_calibration.options.base import Options
from judge_calibration.options.judging import JudgeSpec, SourceAccess

Budget = Annotated[int, Field(ge=2)] | Literal["full"]
"""Labelled training pairs a source; ``full``: all that there are."""


class RecipeOptions(Options):
    """How the adapter is trained."""

    epochs: int = Field(default=6, ge=1, le=1_000)
    """Passes over the training pairs, each in both orders."""
    batch: int = Field(default=8, ge=1, le=1_024)
    """Prompts a step."""
    learning_rate: float = Field(default=3e-4, gt=0, le=0.1)
    """Highest rate of AdamW; it rises over `warmup` and falls to 0 in a straight line."""
    warmup: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps."""
    weight_decay: float = Field(default=0.0, ge=0, le=1)
    largest_gradient: float = Field(default=1.0, gt=0)
    """A longer gradient is shortened to this norm."""
    rank: int = Field(default=16, ge=1, le=1_024)
    """Of the matrices that are added (LoRA)."""
    alpha: float = Field(default=32.0, gt=0)
    """What is added is multiplied by alpha over the rank."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: tuple[
        Literal["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], ...
    ] = (
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "gate_proj",
        "up_proj",
        "down_proj",
    )
    """The matrices of each layer that are changed."""
    layers: int | None = Field(default=None, ge=1)
    """Only so many of the last layers are changed; those before them are computed once and not in each epoch.
    Null: all."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of products of matrices; weights stay in float32. ``auto``: bfloat16 where the device has it."""
    tokens_at_once: int = Field(default=1_600, ge=64)
    """Prompt tokens that are in memory at once; a batch above it is computed in parts, to the same sum."""
    most_steps: int | None = Field(default=None, ge=1)
    """Stop after so many steps; null: all epochs."""


class TrainingRun(Options):
    """One adapter: a source's training pairs at one budget, one ranking of them and one seed."""

    source: str | None = None
    """Null: all sources together, each with its budget."""
    budget: Budget = 32
    """The first so many of the shared ranking of each source's training pairs."""
    resample: int = Field(default=0, ge=0)
    """Which ranking; 0 is the frozen one of the main table."""
    seed: int | None = Field(default=None, ge=0)
    """Null: the seed of the adaptation plus the resample."""
    manipulations: tuple[str, ...] = ()
    """Only these, in the order of the ranking: it is then not the subset of other methods. Empty: all."""
    token_cap: int | None = Field(default=None, ge=16)
    """A pair with a longer prompt in either order is left out whole and counted; null: the context."""
    recipe: RecipeOptions | None = None
    """In place of the common one."""


class SftOptions(Options):
    """Fine-tuning of one embedded judge on its own prompts, with the verdict token as the only target."""

    judge: JudgeSpec
    """An embedded model with one protocol, ``direct``, and one constraint, as it is asked later."""
    marker_salt: str = Field(default="judge-calibration", min_length=1)
    """As in judging."""
    source_access: SourceAccess = "packet"
    """As in judging."""
    runs: tuple[TrainingRun, ...] = Field(min_length=1)
    needed: bool = True
    """False: where torch is not installed nothing is trained, and log, notes and page say so; everything else
    of the environment runs. True: such a run stops at once."""
    recipe: RecipeOptions = RecipeOptions()
    folder: str = "data/sft"
    """Where converted weights, checkpoints and served adapters are kept; path from the project's root."""
    threads: int | None = Field(default=None, ge=1, le=1_024)
    """Null: the cores that this process may use. Another number may round differently."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """``auto``: an accelerator where torch finds one."""
    progress: bool | None = None
    """Null: a bar only where the error output is a terminal."""

    @model_validator(mode="after")
    def _one_plain_verdict(self) -> SftOptions:
        uses = self.judge.protocols
        if not self.judge.model.startswith("embedded/"):
            raise ValueError(
                f"judge {self.judge.judge_id} is not embedded ({self.judge.model}); only embedded models are "
                "trained here, and adapt/export.py writes the files that providers take"
            )
        if len(uses) != 1 or uses[0].name != "direct" or len(uses[0].constraints) != 1:
            raise ValueError(
                f"judge {self.judge.judge_id} has to use the protocol direct alone, with one constraint"
            )
        if self.judge.transport.embedded.adapter is not None:
            raise ValueError(
                f"judge {self.judge.judge_id} already has an adapter; train the judge without one"
            )
        return self

    @model_validator(mode="after")
    def _one_adapter_a_place(self) -> SftOptions:
        # Tables name an adapter by these three alone: others of the same name would be averaged with it.
        found: dict[tuple[str, int | str, int], list[int]] = {}
        for number, run in enumerate(self.runs):
            found.setdefault((run.source or "all", run.budget, run.resample), []).append(number)
        alike = [
            f"runs {', '.join(map(str, numbers))} are all of source {source}, budget {budget}, "
            f"resample {resample}"
            for (source, budget, resample), numbers in found.items()
            if len(numbers) > 1
        ]
        if alike:
            raise ValueError(
                f"{'; '.join(alike)} (counted from 0), and one environment holds one adapter a source, "
                "budget and ranking: use `resample` for another ranking with a seed of its own, and another "
                "environment for another seed, recipe or other manipulations"
            )
        return self
