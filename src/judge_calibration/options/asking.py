"""How calls are asked: the road to each judge, its limits, its price, and how far a run may go.

Nothing here is part of an instrument's identity: the same call asked over another transport, with other
time-outs or more at once, is the same call. What changes an answer (model, messages, decoding) is in the
request itself.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from judge_calibration.options.base import Options

TransportName = Literal["litellm", "openai_http", "scripted"]
"""The road of a request.

``litellm``
    Every provider that litellm knows, and the embedded model (``embedded/...``).
``openai_http``
    aiohttp straight to an OpenAI-compatible endpoint that one serves oneself: several times faster.
``scripted``
    A judge made of rules inside the process, with planted biases: for tests and dry runs, no network.
"""

EngineName = Literal["local", "dask"]
"""How calls are spread: ``local`` is asyncio in this process, ``dask`` several processes or machines."""

RetryClass = Literal["timeout", "rate_limited", "unavailable", "error"]
"""Failure classes that may be asked again within a run (an answer that arrived never is)."""


class RetryOptions(Options):
    """When a call that got no answer is asked again within the run."""

    classes: tuple[RetryClass, ...] = ("timeout", "rate_limited", "unavailable", "error")
    """Failure classes that are retried; a request that the provider calls wrong never is."""
    attempts: int = Field(default=6, ge=1, le=100)
    """Attempts a call, the first included. One that was turned away by a rate limit counts only if the
    provider answered nobody since: a run that is throttled finishes."""
    first_wait_s: float = Field(default=0.5, gt=0, le=60)
    """Wait before the second attempt; doubled each time, with jitter derived from the call."""
    longest_wait_s: float = Field(default=60.0, gt=0, le=3600)
    """Upper limit of one wait, unless the provider names a longer one in Retry-After."""
    deadline_s: float = Field(default=900.0, gt=0, le=86_400)
    """Seconds from a call's first attempt after which it is not asked again."""


class PriceOptions(Options):
    """Price of a model, in the run's currency per million tokens."""

    input_per_million: float = Field(ge=0)
    output_per_million: float = Field(ge=0)
    cached_input_per_million: float | None = Field(default=None, ge=0)
    """Price of prompt tokens that the provider served from its cache; null: the input price."""


class BudgetOptions(Options):
    """Caps on what answers may cost; null is no cap. Answers already in the store count as spent."""

    tokens: int | None = Field(default=None, ge=0)
    """Prompt and completion tokens together."""
    money: float | None = Field(default=None, ge=0)
    """In the currency of the prices. Needs a price, or a cap on tokens."""


class EmbeddedOptions(Options):
    """The model that runs inside this process (models named ``embedded/...``)."""

    instances: int | None = Field(default=None, ge=1, le=256)
    """Model instances, one thread each; null: one a core that this process may use."""
    context: int = Field(default=8192, ge=512, le=131_072)
    """Tokens that prompt and answer may have together."""
    quantisation: Literal["Q8_0", "as_shipped"] = "Q8_0"
    """Weights: made anew once in this format and kept in the cache folder, or the file as shipped."""
    cache_folder: str | None = None
    """Where the re-quantised file is kept; null: the user's cache folder."""
    repeatable: bool = True
    """Whether an answer depends on its request only. False reuses the beginning that a prompt shares with
    the one before it: several times faster where many attributes are asked of one pair, and at a near tie
    an answer then depends on what was asked before."""
    adapter: str | None = None
    """A LoRA adapter (GGUF) trained on this model; path from the project's root. Its SHA-256 is part of the
    instrument."""


class TransportOptions(Options):
    """The road to one judge: where it is, how hard it may be driven and what it costs."""

    transport: TransportName = "litellm"
    provider: str | None = None
    """Judges with one provider label share concurrency, rate limits and back-off; null: derived from the
    address, or from the part of the model's name before the first slash."""
    api_base: str | None = None
    """Address of the endpoint, e.g. ``http://127.0.0.1:8000/v1``; null: the provider's own."""
    key_variable: str | None = None
    """Name of the environment variable (and of the entry in ``credentials.yml``) that holds the key."""
    concurrency: int = Field(default=16, ge=1, le=4096)
    """Requests in flight at once, for the provider."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    connect_timeout_s: float = Field(default=10.0, gt=0, le=600)
    timeout_s: float = Field(default=300.0, gt=0, le=7200)
    """Seconds that one attempt may take."""
    largest_answer_mb: float = Field(default=32.0, gt=0, le=1024)
    """A reply body above this size is cut off and counted as an error."""
    retries: RetryOptions = RetryOptions()
    price: PriceOptions | None = None
    """Null: the price is not known (0 has to be said)."""
    budget: BudgetOptions = BudgetOptions()
    """Caps for this judge."""
    embedded: EmbeddedOptions = EmbeddedOptions()
    answer_key: str | None = None
    """Scripted judges with a planted skill only: a CSV file (pair_id, label) that says what is right."""

    @model_validator(mode="after")
    def _needs_an_address(self) -> TransportOptions:
        if self.transport == "openai_http" and not self.api_base:
            raise ValueError(
                "transport openai_http needs api_base, the endpoint's address, such as http://127.0.0.1:8000/v1"
            )
        return self


class DaskOptions(Options):
    """Where the engine ``dask`` works."""

    address: str | None = None
    """A scheduler's address; null: a LocalCluster on this machine."""
    workers: int = Field(default=2, ge=1, le=1024)
    """Worker processes of the LocalCluster."""
    attempts_per_shard: int = Field(default=3, ge=1, le=100)
    """How often a shard is handed out again after its worker died."""


class SequentialOptions(Options):
    """Repeat no more often than needed: look at each cell (instrument x temperature) as it goes on."""

    looks: tuple[int, ...] = (2, 3, 5, 10)
    """Repetitions after which a cell is looked at, rising; those above the planned number are left out, and
    the planned number is always the last look."""
    half_width: float = Field(default=0.05, gt=0, lt=0.5)
    """A cell stops when the interval of its C2 reaches this far to either side, or less."""
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    """Error probability over all looks together, spent in proportion to the repetitions."""

    @model_validator(mode="after")
    def _rising(self) -> SequentialOptions:
        if not self.looks or self.looks[0] < 2 or list(self.looks) != sorted(set(self.looks)):
            raise ValueError(f"looks has to rise from 2 or more; got {list(self.looks)}")
        return self


class AskingOptions(Options):
    """How a run asks its calls."""

    engine: EngineName = "local"
    store: str | None = None
    """Folder of the call store in place of the project's own (``data/calls``)."""
    offline: bool = False
    """Ask nothing: use the store's answers only, and the last recorded failure for the rest."""
    budget: BudgetOptions = BudgetOptions()
    """Caps for the whole run, over all judges."""
    shard_calls: int = Field(default=5_000, ge=1, le=1_000_000)
    """Planned calls a shard of the store; two shards' calls are in memory at once."""
    progress: bool | None = None
    """Progress bar; null: only where the error output is a terminal."""
    most_failures: int | None = Field(default=200, ge=1)
    """Stop after this many calls of one provider in a row that got no answer at all; null: never."""
    sequential: SequentialOptions | None = None
    """Null: every planned repetition is asked."""
    dask: DaskOptions = DaskOptions()
