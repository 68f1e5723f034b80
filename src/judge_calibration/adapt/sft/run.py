"""Every training run of an environment: from pairs to judges that can be asked, adapters and a log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from judge_calibration.adapt.sft.examples import (
    Example,
    Tokens,
    TrainingDataError,
    as_rows,
    choose_pairs,
    render,
    shared_with_held_out,
    tokenise,
)
from judge_calibration.adapt.sft.naming import to_gguf_changes
from judge_calibration.adapt.sft.training import (
    Trained,
    TrainingError,
    let_waiting_threads_sleep,
    package_versions,
    precision_of,
    train,
    without,
)
from judge_calibration.judges.embedded.adapters import adapter_bytes
from judge_calibration.judges.embedded.runtime import Tokenizer
from judge_calibration.judges.embedded.weights import Weights
from judge_calibration.options.adaptation import AdaptationOptions
from judge_calibration.options.sft import RecipeOptions, SftOptions, TrainingRun
from judge_calibration.runs import files
from judge_calibration.text import sha256_of

logger = logging.getLogger(__name__)

LOG_COLUMNS = {
    "judge_id": "str",
    "source": "str",
    "budget": "str",
    "resample": "int64",
    "seed": "int64",
    "epoch": "int64",
    "steps": "int64",
    "loss": "float64",
    "train_accuracy": "float64",
    "pairs": "int64",
    "pairs_over_cap": "int64",
    "pairs_held_out_elsewhere": "int64",
    "token_cap": "int64",
    "longest_prompt": "int64",
    "prompt_tokens": "int64",
    "learning_rate": "float64",
    "batch": "int64",
    "rank": "int64",
    "layers": "Int64",
    "precision": "str",
    "seconds": "float64",
    "adapter_sha256": "str",
}
"""Columns of the training log and their types."""
README = """LoRA adapters in the GGUF format, one file a fine-tuned judge, named by the judge.
Each names the model that it was trained on (judge_calibration.base_shipped_sha256).
Serve one with transport.embedded.adapter: <path>, or llama-server --lora <path>.
"""


class TrainedJudges(NamedTuple):
    """What training comes to.

    Attributes
    ----------
    sft_judges : list of dict
        The judge as it was (method ``base``) and one entry a run (method ``sft``): method, budget, resample,
        source, base, judge (fields of JudgeSpec). Empty where nothing is trained.
    sft_training_log : pandas.DataFrame
        One row a run and epoch; columns `LOG_COLUMNS`. `loss` is the mean cross-entropy of the verdict token
        in nats, `train_accuracy` a share in [0, 1]; both are taken before each prompt's step. `seconds` of
        wall time depend on the machine and on what else it does; a finished run that is taken up again
        reports those of its training, and NaN where its checkpoint lacks them.
    sft_adapters : dict of str to (str or bytes)
        The adapters by file name, and a README.
    """

    sft_judges: list[dict[str, Any]]
    sft_training_log: pd.DataFrame
    sft_adapters: dict[str, str | bytes]


@dataclass(frozen=True)
class _Planned:
    """One run, ready to be trained."""

    run: TrainingRun
    name: str
    seed: int
    examples: list[Example]
    over_cap: list[str]
    held_out_elsewhere: int
    longest: int
    cap: int


Trainer = Callable[[SftOptions, TrainingRun, int, list[Example], Path, str], Trained]


def check_training(options: AdaptationOptions) -> dict[str, Any]:
    """Say what training needs and finds here, before any judge is asked.

    Returns
    -------
    dict
        packages: the version of each package that training needs, null where it is missing. Empty where
        nothing is to be trained.

    Raises
    ------
    TrainingError
        If something is missing and ``sft.needed``.
    """
    if options.sft is None:
        return {}
    # Before the embedded judge's runtime brings the library of threads that torch uses as well.
    let_waiting_threads_sleep()
    found = package_versions()
    missing = [name for name, version in found.items() if version is None]
    if missing and options.sft.needed:
        raise TrainingError(without(missing))
    if missing:
        logger.warning("No judge is fine-tuned in this run: %s", without(missing))
    return {"packages": found}


def train_judges(
    pairs: pd.DataFrame,
    splits: pd.DataFrame,
    training_subsets: pd.DataFrame,
    training_environment: dict[str, Any],
    options: AdaptationOptions,
) -> TrainedJudges:
    """Train every adapter that the parameters name.

    Parameters
    ----------
    pairs : pandas.DataFrame
        The table `pairs`.
    splits : pandas.DataFrame
        The frozen split; it wins over the column of `pairs`.
    training_subsets : pandas.DataFrame
        The shared rankings of the labelled training pairs.
    training_environment : dict
        As :func:`check_training` found it; where a package is missing nothing is trained.
    options : AdaptationOptions
        With ``sft``; null trains nothing.

    Raises
    ------
    TrainingError
        If the loss is no number any more.
    TrainingDataError, OptionsError
        If a run has no pairs, or none that fits the cap.
    EmbeddedModelError
        If the model is not installed.
    """
    sft = options.sft
    if sft is None or None in training_environment["packages"].values():
        return TrainedJudges([], _log([]), {"README.txt": README})
    from judge_calibration.judges.embedded.provider import _weights, open_pool

    embedded = sft.judge.transport.embedded
    weights = _weights(sft.judge.model, embedded)
    frozen = dict(zip(splits["pair_id"], splits["split"], strict=True))
    shown = pairs.assign(split=pairs["pair_id"].map(frozen).fillna(pairs["split"]))
    with Tokenizer(open_pool(sft.judge.model, embedded)) as tokens:
        planned = plan_runs(shown, training_subsets, options.seed, sft, tokens)
    trainer = _with_torch(sft, weights)
    return collect(planned, sft, weights, trainer)


def plan_runs(
    pairs: pd.DataFrame, subsets: pd.DataFrame, seed: int, sft: SftOptions, tokens: Tokens
) -> list[_Planned]:
    """Render and tokenise the examples of every run, and say what was left out. Needs no torch."""
    planned = []
    shared = shared_with_held_out(pairs)
    for run in sft.runs:
        every = choose_pairs(pairs, subsets, run)
        chosen = every[~every["pair_id"].isin(shared)]
        if chosen.empty:
            raise TrainingDataError(
                f"All {len(every)} training pairs of {run.source or 'all sources'} have a question that is "
                "held out as well, under another base task or source.",
                "give pairs with one question one base_id and one source, so that they are on one side",
            )
        # The verdict needs room as well.
        cap = min(
            run.token_cap or sft.judge.transport.embedded.context, sft.judge.transport.embedded.context - 4
        )
        found = tokenise(render(chosen, sft.judge, sft.marker_salt, sft.source_access), tokens, cap)
        name = run_name(sft.judge.judge_id, run)
        elsewhere = len(every) - len(chosen)
        logger.info(
            "%s: %d of %d training pairs fit %d tokens (longest prompt %d); %d left out whole%s.",
            name,
            len(found.examples) // 2,
            len(chosen),
            cap,
            found.longest,
            len(found.over_cap),
            f", and {elsewhere} more whose question is held out elsewhere" if elsewhere else "",
        )
        own = seed + run.resample if run.seed is None else run.seed
        planned.append(
            _Planned(run, name, own, found.examples, found.over_cap, elsewhere, found.longest, cap)
        )
    return planned


def run_name(judge_id: str, run: TrainingRun) -> str:
    """Return the judge_id of the judge that a run makes.

    Examples
    --------
    >>> run_name("small", TrainingRun(source="mine", budget=64))
    'small+sft-mine-64-r0'
    """
    return f"{judge_id}+sft-{run.source or 'all'}-{run.budget}-r{run.resample}"


def collect(planned: list[_Planned], sft: SftOptions, weights: Weights, trainer: Trainer) -> TrainedJudges:
    """Train what was planned, keep each adapter under its hash, and describe the judges."""
    folder = Path(sft.folder)
    base = {
        "method": "base",
        "budget": None,
        "resample": None,
        "source": "all",
        "judge": sft.judge.model_dump(mode="json"),
    }
    judges: list[dict[str, Any]] = [base]
    rows: list[dict[str, Any]] = []
    out: dict[str, str | bytes] = {"README.txt": README}
    heads = _heads(weights)
    for one in planned:
        recipe = one.run.recipe or sft.recipe
        key = training_key(one, sft, weights)
        trained = trainer(sft, one.run, one.seed, one.examples, folder / "checkpoints" / key, one.name)
        data = adapter_bytes(
            to_gguf_changes(trained.down, trained.up, heads),
            recipe.alpha,
            weights,
            {"general.name": one.name},
        )
        digest, path = keep_adapter(data, folder)
        out[f"{one.name.replace('/', '_')}.gguf"] = data
        transport = sft.judge.transport
        embedded = transport.embedded.model_copy(update={"adapter": path.as_posix()})
        judge = sft.judge.model_copy(
            update={"judge_id": one.name, "transport": transport.model_copy(update={"embedded": embedded})}
        )
        judges.append(
            {
                "method": "sft",
                "budget": one.run.budget,
                "resample": one.run.resample,
                "source": one.run.source or "all",
                "base": sft.judge.judge_id,
                "judge": judge.model_dump(mode="json"),
            }
        )
        for epoch in trained.epochs:
            rows.append(
                {
                    "judge_id": one.name,
                    "source": one.run.source or "all",
                    "budget": str(one.run.budget),
                    "resample": one.run.resample,
                    "seed": one.seed,
                    "epoch": epoch.epoch,
                    "steps": epoch.steps,
                    "loss": epoch.loss,
                    "train_accuracy": epoch.accuracy,
                    "pairs": len(one.examples) // 2,
                    "pairs_over_cap": len(one.over_cap),
                    "pairs_held_out_elsewhere": one.held_out_elsewhere,
                    "token_cap": one.cap,
                    "longest_prompt": one.longest,
                    "prompt_tokens": sum(len(example.tokens) for example in one.examples),
                    "learning_rate": recipe.learning_rate,
                    "batch": recipe.batch,
                    "rank": recipe.rank,
                    "layers": recipe.layers,
                    "precision": trained.precision,
                    "seconds": epoch.seconds,
                    "adapter_sha256": digest,
                }
            )
    return TrainedJudges(judges, _log(rows), out)


def _log(rows: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(LOG_COLUMNS)).astype(LOG_COLUMNS)


def training_key(planned: _Planned, sft: SftOptions, weights: Weights) -> str:
    """Return the name of a run's checkpoints: a hash of all that is asked for and makes its adapter.

    A run that was killed finds its own checkpoint again, and no other run does. What the machine made of it
    is in the folder below (:func:`rounding_of`).
    """
    recipe = planned.run.recipe or sft.recipe
    return sha256_of(
        {
            "base": weights.sha256,
            "examples": as_rows(planned.examples),
            "recipe": recipe.model_dump(mode="json"),
            "seed": planned.seed,
            "threads": sft.threads,
            "device": sft.device,
        }
    )[:24]


def keep_adapter(data: bytes, folder: Path) -> tuple[str, Path]:
    """Write an adapter under its own hash, where judges load it from; one that is there is left alone.

    Returns
    -------
    str
        SHA-256.
    pathlib.Path
        ``<folder>/adapters/<SHA-256>.gguf``.
    """
    import hashlib

    digest = hashlib.sha256(data).hexdigest()
    path = folder / "adapters" / f"{digest}.gguf"
    if not path.is_file() or files.sha256_of_file(path) != digest:
        files.write_checked(path, lambda file: file.write(data))
    return digest, path


def _heads(weights: Weights) -> tuple[int, int]:
    from judge_calibration.judges.embedded.gguf import read_header

    said: Mapping[str, Any] = read_header(weights.path).metadata
    kind = said["general.architecture"]
    queries = int(said[f"{kind}.attention.head_count"])
    return queries, int(said.get(f"{kind}.attention.head_count_kv", queries))


def _with_torch(sft: SftOptions, weights: Weights) -> Trainer:
    """Return what trains one run with torch, on an accelerator where there is one."""
    let_waiting_threads_sleep()
    import torch

    from judge_calibration.adapt.sft.base import check_architecture, device_of, load_base
    from judge_calibration.judges.embedded.runtime import cores

    check_architecture(weights)
    threads = sft.threads or cores()
    torch.set_num_threads(threads)
    device = device_of(sft.device)

    def one_run(
        sft: SftOptions, run: TrainingRun, seed: int, examples: list[Example], checkpoint: Path, name: str
    ) -> Trained:
        model = load_base(weights, Path(sft.folder) / "base", device)
        recipe = run.recipe or sft.recipe
        state = checkpoint / rounding_of(recipe, device, threads)
        return train(model, examples, recipe, seed, state, sft.progress, name)

    return one_run


def rounding_of(recipe: RecipeOptions, device: str, threads: int) -> str:
    """Return the folder of a run's checkpoints, in that of :func:`training_key`: what decides how it rounds.

    With another precision, device or number of threads the same training comes to another adapter, so it
    does not go on from these checkpoints. The parameters may say ``auto``; this is what was really used.

    Examples
    --------
    >>> rounding_of(RecipeOptions(precision="bfloat16"), "cpu", 2)
    'bfloat16-cpu-2'
    """
    return f"{precision_of(recipe, device)}-{device}-{threads}"
