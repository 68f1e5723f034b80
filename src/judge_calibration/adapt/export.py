r"""The training pairs as providers and training servers take them, and one job at a provider.

The file has one conversation a line, ``{"messages": [..., {"role": "assistant", "content": "A"}]}``: the chat
form that OpenAI, Azure, vLLM's trainers and TRL read. The prompts are those that the judge is asked later, in
both orders, of the same subsets that every other method trains on.

Run as a program, it writes such a file, starts a job with one, or looks at one::

    python -m judge_calibration.adapt.export write --pairs pairs.parquet --subsets training_subsets.parquet \
        --source pair_bank --budget 32 --model openai/gpt-4.1-mini-2025-04-14 --out train.jsonl
    python -m judge_calibration.adapt.export start --file train.jsonl --model openai/gpt-4.1-mini-2025-04-14
    python -m judge_calibration.adapt.export status --job ftjob-123 --wait
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml
from pydantic import ValidationError

from judge_calibration.adapt.sft.examples import choose_pairs, render, shared_with_held_out
from judge_calibration.errors import JudgeCalibrationError, OptionsError, Problem
from judge_calibration.judges.secrets import Redactor
from judge_calibration.judges.transports.litellm_road import load_litellm
from judge_calibration.options.faults import problems_of
from judge_calibration.options.judging import JudgeSpec, SourceAccess
from judge_calibration.options.sft import TrainingRun
from judge_calibration.runs import files

ENDED = ("succeeded", "failed", "cancelled")
PAIRS_USED = ("pair_id", "source", "split", "question", "response_a", "response_b", "reference_label")
SUBSETS_USED = ("resample", "source", "pair_id", "rank")
_CHARACTERS_A_TOKEN = 4


class ProviderError(JudgeCalibrationError):
    """A provider refused a file or a job, or a job failed there."""


def conversations(
    pairs: pd.DataFrame,
    subsets: pd.DataFrame,
    run: TrainingRun,
    judge: JudgeSpec,
    marker_salt: str = "judge-calibration",
    source_access: SourceAccess = "packet",
) -> list[dict[str, Any]]:
    """Return a run's training pairs as conversations, each pair in both orders.

    As in training here, a pair whose question is that of a held-out pair is left out.

    Parameters
    ----------
    pairs, subsets : pandas.DataFrame
        The tables `pairs` and `training_subsets`.
    run : TrainingRun
        Source, budget and ranking; the token cap is the provider's affair.
    judge : JudgeSpec
        Its first protocol is rendered, as it will be asked; ``direct`` has a bare label as its reply.

    Returns
    -------
    list of dict
        ``{"messages": [...]}``, the last message being the assistant's right verdict.
    """
    use = judge.protocols[0]
    if use.name != "direct":
        raise ProviderError(
            f"The judge {judge.judge_id} uses {use.name}; only replies of the protocol direct are labels.",
            "use the protocol direct",
        )
    asked = judge.model_copy(update={"protocols": (use,)})
    chosen = choose_pairs(pairs, subsets, run)
    chosen = chosen[~chosen["pair_id"].isin(shared_with_held_out(pairs))]
    return [
        {"messages": [*map(dict, one.messages), {"role": "assistant", "content": one.verdict}]}
        for one in render(chosen, asked, marker_salt, source_access)
    ]


def to_jsonl(rows: Iterable[dict[str, Any]]) -> bytes:
    r"""Return conversations as JSON lines in ASCII, so that no text can break a line.

    Examples
    --------
    >>> to_jsonl([{"messages": [{"role": "assistant", "content": "\u2028"}]}])
    b'{"messages": [{"role": "assistant", "content": "\\u2028"}]}\n'
    """
    return "".join(json.dumps(row) + "\n" for row in rows).encode("ascii")


def rough_tokens(content: bytes, epochs: int) -> int:
    """Return about how many tokens a job is charged for: a token is taken to be four characters."""
    letters = sum(
        len(message["content"]) for line in content.splitlines() for message in json.loads(line)["messages"]
    )
    return epochs * letters // _CHARACTERS_A_TOKEN


class Job(NamedTuple):
    """A fine-tuning job as the provider describes it.

    Attributes
    ----------
    job_id : str
    status : str
        The provider's word, such as validating_files, queued, running, succeeded, failed, cancelled.
    model : str or None
        The name of the fine-tuned model, once there is one: the `model` of a new judge.
    trained_tokens : int or None
        What is charged for, once the provider says so.
    error : str or None
        Why it failed.
    """

    job_id: str
    status: str
    model: str | None
    trained_tokens: int | None
    error: str | None


class Provider:
    """One provider's fine-tuning, through litellm.

    Parameters
    ----------
    name : str
        ``openai``, ``azure`` or ``vertex_ai``, as litellm calls them.
    api_base : str, optional
        Null: the provider's own address.
    key_variable : str
        Name of the environment variable that holds the key.
    """

    def __init__(
        self, name: str = "openai", api_base: str | None = None, key_variable: str = "OPENAI_API_KEY"
    ) -> None:
        key = os.environ.get(key_variable)
        if not key:
            raise ProviderError(
                f"The environment variable {key_variable} holds no key.", f"set {key_variable} and run again"
            )
        self._litellm = load_litellm()
        self._redactor = Redactor.of_environment([key])
        self._how = {"custom_llm_provider": name, "api_base": api_base, "api_key": key, "max_retries": 2}

    def start(self, file: Path, model: str, epochs: int | None, seed: int, suffix: str | None = None) -> Job:
        """Send a file and start a job with it. Whatever is sent twice is charged twice: nothing is repeated.

        Raises
        ------
        ProviderError
            If the provider refuses the file or the job.
        """
        with file.open("rb") as content:
            sent = self._asked(
                "took no file",
                lambda: self._litellm.create_file(file=content, purpose="fine-tune", **self._how),
            )
        settings: dict[str, Any] = {} if epochs is None else {"n_epochs": epochs}
        made = self._asked(
            f"started no job (the file {sent.id} is there)",
            lambda: self._litellm.create_fine_tuning_job(
                model=model.partition("/")[2] or model,
                training_file=sent.id,
                hyperparameters=settings,
                seed=seed,
                suffix=suffix,
                **self._how,
            ),
        )
        return _job(made)

    def look(self, job_id: str) -> Job:
        """Return how a job stands."""
        return _job(
            self._asked(
                f"does not say how the job {job_id} stands",
                lambda: self._litellm.retrieve_fine_tuning_job(fine_tuning_job_id=job_id, **self._how),
            )
        )

    def wait(
        self,
        job_id: str,
        every_s: float = 30.0,
        most_s: float = 86_400.0,
        say: Callable[[Job], None] = lambda job: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Job:
        """Look at a job until it ended, and return it.

        Raises
        ------
        ProviderError
            If it failed, was cancelled, or took longer than `most_s`. The job itself is left alone.
        """
        waited, last = 0.0, ""
        while True:
            job = self.look(job_id)
            if job.status != last:
                say(job)
                last = job.status
            if job.status == "succeeded":
                return job
            if job.status in ENDED:
                raise ProviderError(
                    f"The job {job_id} {job.status}: {job.error or 'the provider gives no reason'}",
                    "correct what it names and start another job",
                )
            if waited >= most_s:
                raise ProviderError(
                    f"The job {job_id} is still {job.status} after {most_s:g} s.",
                    f"look again: python -m judge_calibration.adapt.export status --job {job_id}",
                )
            sleep(every_s)
            waited += every_s

    def _asked(self, failure: str, ask: Callable[[], Any]) -> Any:
        import openai

        known = (openai.OpenAIError, *self._litellm.exceptions.LITELLM_EXCEPTION_TYPES, ValueError)
        try:
            return ask()
        except known as problem:
            raise ProviderError(
                f"The provider {self._how['custom_llm_provider']} {failure}: "
                f"{self._redactor.clean(str(problem))[:400]}",
                "correct what it names; docs/adaptation-sft.md has the steps",
            ) from None


def _job(answer: Any) -> Job:
    error = getattr(answer, "error", None)
    message = getattr(error, "message", None) or (error.get("message") if isinstance(error, dict) else None)
    return Job(
        str(answer.id),
        str(answer.status),
        getattr(answer, "fine_tuned_model", None),
        getattr(answer, "trained_tokens", None),
        message,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a step: ``write``, ``start`` or ``status``.

    Returns the exit code: 0 done, 2 a wrong option or file, 4 not done (the provider refused, say).
    """
    parser = argparse.ArgumentParser(prog="python -m judge_calibration.adapt.export", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    steps = parser.add_subparsers(dest="step", required=True)
    write = steps.add_parser("write", help="write the training file of one subset")
    write.add_argument("--pairs", type=_file, required=True, help="the artifact pairs (Parquet)")
    write.add_argument("--subsets", type=_file, required=True, help="the artifact training_subsets (Parquet)")
    write.add_argument("--source", help="all sources where it is left out")
    write.add_argument("--budget", type=_budget, default="full", help="labelled pairs a source, or full")
    write.add_argument("--resample", type=_whole(0), default=0, help="which ranking; 0 is the frozen one")
    judge = write.add_mutually_exclusive_group()
    judge.add_argument("--model", default="openai/model", help="as litellm spells it")
    judge.add_argument(
        "--judge", type=_file, help="YAML of the judge that is asked later, as in judging.judges"
    )
    write.add_argument("--marker-salt", default="judge-calibration", help="as in judging")
    write.add_argument("--out", type=Path, required=True)
    start = steps.add_parser("start", help="send a training file and start a job")
    start.add_argument("--file", type=_file, required=True)
    start.add_argument("--model", required=True, help="the base model, as litellm spells it")
    start.add_argument("--epochs", type=_whole(1))
    start.add_argument("--seed", type=_whole(0), default=1)
    start.add_argument("--suffix", help="part of the new model's name")
    status = steps.add_parser("status", help="look at a job")
    status.add_argument("--job", required=True)
    status.add_argument("--wait", action="store_true", help="until it ended")
    for one in (start, status):
        one.add_argument("--provider", default="openai", help="openai, azure or vertex_ai")
        one.add_argument("--api-base", help="the provider's own where it is left out")
        one.add_argument("--key-variable", default="OPENAI_API_KEY")
        one.add_argument("--price-per-million", type=float, help="of a training token, for the note on cost")
    found = parser.parse_args(arguments)
    try:
        {"write": _write, "start": _start, "status": _status}[found.step](found)
    except OptionsError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    except (JudgeCalibrationError, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 4
    return 0


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"no such file: {text}")
    return path


def _whole(least: int) -> Callable[[str], int]:
    """Return what reads a whole number of at least so much."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"found {text!r}; wanted a whole number from {least}")
        return int(text)

    return read


def _budget(text: str) -> int | str:
    if text == "full":
        return text
    try:
        return _whole(2)(text)
    except argparse.ArgumentTypeError as problem:
        raise argparse.ArgumentTypeError(f"{problem}, or full") from None


def _table(path: Path, option: str, columns: Sequence[str]) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError):
        raise _unreadable(path, option, "no Parquet file", "an artifact of a run (Parquet)") from None
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise _unreadable(path, option, f"a table without {', '.join(missing)}", "the artifact of that name")
    return frame


def _unreadable(path: Path, option: str, found: str, wanted: str) -> OptionsError:
    return OptionsError(
        "A file cannot be used.", [Problem(f"{option} {path}", found, wanted)], "name another file"
    )


def _judge_to_train(found: argparse.Namespace) -> JudgeSpec:
    """Return the judge whose prompts are written: that of the file, or a plain one of the model."""
    said: Any = {"judge_id": "to-be-trained", "model": found.model, "protocols": ["direct"]}
    where = "--model"
    if found.judge is not None:
        where = f"--judge {found.judge}"
        try:
            said = yaml.safe_load(found.judge.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError):
            raise _unreadable(found.judge, "--judge", "no YAML", "a judge as in judging.judges") from None
    try:
        judge = JudgeSpec.model_validate(said)
    except ValidationError as error:
        raise OptionsError(
            "The judge is not described as a judge is.",
            problems_of(error, JudgeSpec, where),
            "write it as in judging.judges",
        ) from None
    if judge.protocols[0].name != "direct":
        found_use = Problem(f"{where}, protocols", judge.protocols[0].name, "direct, whose reply is a label")
        raise OptionsError("The judge's replies are no labels.", [found_use], "use the protocol direct")
    return judge


def _write(found: argparse.Namespace) -> None:
    judge = _judge_to_train(found)
    run = TrainingRun(source=found.source, budget=found.budget, resample=found.resample)
    pairs = _table(found.pairs, "--pairs", PAIRS_USED)
    subsets = _table(found.subsets, "--subsets", SUBSETS_USED)
    content = to_jsonl(conversations(pairs, subsets, run, judge, found.marker_salt))
    digest = files.write_checked(found.out, lambda file: file.write(content))
    lines = content.count(b"\n")
    print(f"{found.out}: {lines} conversations ({lines // 2} pairs in both orders), SHA-256 {digest}")
    print(f"about {rough_tokens(content, 1):,} tokens an epoch")


def _start(found: argparse.Namespace) -> None:
    try:
        tokens = rough_tokens(found.file.read_bytes(), found.epochs or 3)
    except (ValueError, KeyError, TypeError):
        wanted = "JSON lines with messages, as the step write makes them"
        raise _unreadable(found.file, "--file", "no training file", wanted) from None
    note = "" if found.price_per_million is None else _money(tokens, found.price_per_million)
    print(f"About {tokens:,} training tokens at {found.epochs or 3} epochs{note}.")
    provider = Provider(found.provider, found.api_base, found.key_variable)
    job = provider.start(found.file, found.model, found.epochs, found.seed, found.suffix)
    print(f"Job {job.job_id}: {job.status}")


def _status(found: argparse.Namespace) -> None:
    provider = Provider(found.provider, found.api_base, found.key_variable)
    job = (
        provider.wait(found.job, say=lambda job: print(f"Job {job.job_id}: {job.status}", flush=True))
        if found.wait
        else provider.look(found.job)
    )
    print(f"Job {job.job_id}: {job.status}")
    if job.trained_tokens is not None:
        price = found.price_per_million
        cost = "" if price is None else _money(job.trained_tokens, price)
        print(f"{job.trained_tokens:,} tokens trained{cost}")
    if job.model:
        print(f"The judge's model: {found.provider}/{job.model}")


def _money(tokens: int, price_per_million: float) -> str:
    return f", {tokens * price_per_million / 1e6:.2f} in the currency of the price"


if __name__ == "__main__":
    sys.exit(main())
