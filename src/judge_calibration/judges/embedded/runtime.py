"""The model instances: llama.cpp inside this process, one thread each.

Two instances of one thread do twice the work of one; two threads in one instance collapse on a busy
machine. An instance keeps the prompt it read last, so repetitions of one prompt go to the same instance one
after the other and read it once. Calls into llama.cpp release the interpreter's lock.
"""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from judge_calibration.judges.embedded.weights import EmbeddedModelError

RUNTIME: Final = "xllamacpp"


def runtime_version() -> str:
    """Return the version of the installed runtime.

    Raises
    ------
    EmbeddedModelError
        If it is not installed; the message has the command that installs it.
    """
    try:
        return metadata.version(RUNTIME)
    except metadata.PackageNotFoundError:
        import sys

        raise EmbeddedModelError(
            f"The embedded judge needs the package {RUNTIME}, which is not installed.",
            f"run this command:  {sys.executable} -m pip install {RUNTIME}==2026.10.11549",
        ) from None


def cores() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # pragma: no cover  (not on macOS and Windows)
        return os.cpu_count() or 1


@dataclass
class _Instance:
    server: Any
    prompt: str = ""
    """What its context holds."""
    whole: bool = False
    """Whether it read that from the start, alone."""
    busy: bool = False
    used: int = 0


def _shared(first: str, second: str) -> int:
    """Length of a beginning that two texts share: all of the shorter, or that halved until it is shared."""
    length = min(len(first), len(second))
    while first[:length] != second[:length]:
        length //= 2
    return length


class InstancePool:
    """Instances of one model, each used by one call at a time.

    Parameters
    ----------
    path : pathlib.Path
        The GGUF file.
    context : int
        Tokens that prompt and answer may have together.
    instances : int
        How many at most; each is loaded when it is first needed.
    adapter : pathlib.Path, optional
        A LoRA adapter that is added to the model.
    """

    def __init__(self, path: Path, context: int, instances: int, adapter: Path | None = None) -> None:
        self.path = path
        self.adapter = adapter
        self.context = context
        self.size = instances
        self._instances: list[_Instance] = []
        self._free = threading.Condition()
        self._clock = 0
        self.threads = ThreadPoolExecutor(max_workers=instances, thread_name_prefix="embedded-judge")

    def _load(self) -> Any:
        runtime_version()
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self.path)
        params.n_ctx = self.context
        params.n_parallel = 1
        params.n_gpu_layers = 0
        params.cpuparams.n_threads = 1
        params.cpuparams_batch.n_threads = 1
        params.warmup = False
        params.cache_ram_mib = 0  # the prompt last read is kept in the context; no further copies in memory
        params.endpoint_slots = False
        params.ui = False
        params.verbosity = -1
        if self.adapter is not None:
            added = xllamacpp.CommonAdapterLoraInfo()
            added.path, added.scale = str(self.adapter), 1.0
            params.lora_adapters = [added]
        try:
            return xllamacpp.Server(params)
        except RuntimeError as problem:
            if self.adapter is not None:
                raise EmbeddedModelError(
                    f"The model file {self.path} cannot be loaded with the adapter {self.adapter}: {problem}",
                    "train the adapter again, or use the judge without it",
                ) from None
            raise EmbeddedModelError(
                f"The model file {self.path} cannot be loaded: {problem}", "delete the file and run again"
            ) from None

    def _take(self, prompt: str, beginnings: bool) -> _Instance:
        """Wait for a free instance: the one that has read this prompt, else the one unused for longest.

        With `beginnings`, the one whose prompt begins most like this one.
        """
        with self._free:
            while True:
                free = [instance for instance in self._instances if not instance.busy]
                known = max(free, key=lambda one: _shared(one.prompt, prompt), default=None)
                alike = _shared(known.prompt, prompt) if known else 0
                enough = len(prompt) // 2 if beginnings else len(prompt)
                chosen = known if alike >= enough else None
                if chosen is None and len(self._instances) < self.size:
                    # Loading takes a third of a second; the others wait for it rather than load as well.
                    chosen = _Instance(self._load())
                    self._instances.append(chosen)
                if chosen is None and free:
                    chosen = min(free, key=lambda instance: instance.used)
                if chosen is not None:
                    self._clock += 1
                    chosen.busy, chosen.used = True, self._clock
                    return chosen
                self._free.wait()

    def complete(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Answer one chat completion request (OpenAI's JSON), and wait for it.

        The answer depends on the request only, not on what the instance read before: a prompt that is new to
        it is first read alone and from the start, and every answer then reads its last token by itself.
        (Reading many tokens at once and one at a time round differently, and greedy decoding can take
        another turn at a near tie.) A payload with ``cache_prompt`` does without: it reuses whatever
        beginning the instance has read.

        Returns
        -------
        dict
            The completion, or ``{"error": ...}`` as llama.cpp says it.
        """
        shown = {name: payload[name] for name in ("messages", "response_format") if name in payload}
        prompt = json.dumps(shown, sort_keys=True)
        beginnings = bool(payload.get("cache_prompt"))
        instance = self._take(prompt, beginnings)
        try:
            if beginnings:
                instance.prompt, instance.whole = prompt, False
            elif instance.prompt != prompt or not instance.whole:
                instance.prompt = ""
                read: dict[str, Any] = instance.server.handle_chat_completions(
                    {**shown, "max_tokens": 1, "temperature": 0.0, "cache_prompt": False}
                )
                if read.get("error"):
                    return read
                instance.prompt, instance.whole = prompt, True
            result: dict[str, Any] = instance.server.handle_chat_completions(
                {**payload, "cache_prompt": True}
            )
            return result
        finally:
            with self._free:
                instance.busy = False
                self._free.notify()


@cache
def pool_of(path: Path, context: int, instances: int, adapter: Path | None = None) -> InstancePool:
    """Return this process's pool for a model file: instances are large, so one pool serves all judges.

    A model with an adapter is a pool of its own.
    """
    return InstancePool(path, context, instances, adapter)


class Tokenizer:
    """A model's own tokens, as its runtime makes them of the messages of a request.

    What is trained on is then to the token what is asked later.

    Parameters
    ----------
    pool : InstancePool
        One of its instances is taken for the while.
    """

    def __init__(self, pool: InstancePool) -> None:
        self._pool = pool
        self._instance = pool._take("", False)

    def close(self) -> None:
        """Give the instance back."""
        with self._pool._free:
            self._instance.busy = False
            self._pool._free.notify()

    def __enter__(self) -> Tokenizer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _post(self, path: str, content: dict[str, Any]) -> Any:
        import urllib.request

        # The runtime listens on the loopback interface only, and it is this process itself.
        request = urllib.request.Request(  # noqa: S310
            self._instance.server.listening_address + path,
            json.dumps(content).encode(),
            {"Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as reply:
            return json.loads(reply.read())

    def text_of(self, messages: list[dict[str, str]]) -> str:
        """Return the messages as the model's chat template writes them, up to where the reply begins."""
        return str(self._post("/apply-template", {"messages": messages})["prompt"])

    def tokens_of(self, text: str) -> list[int]:
        """Return the numbers of a text's tokens; the template's marks count as tokens of their own."""
        found = self._post("/tokenize", {"content": text, "add_special": True, "parse_special": True})
        return [int(token) for token in found["tokens"]]
