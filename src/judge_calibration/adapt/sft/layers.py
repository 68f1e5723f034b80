"""The layers below the first one that is trained: what they compute is the same in every epoch.

So it is computed once for each prompt, without gradients, and training runs the layers above alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judge_calibration.adapt.sft.examples import Example

KEPT_BYTES = 2 * 2**30
"""States of prompts are kept in memory up to this; those of further prompts are computed anew each time."""


class Halves:
    """A causal model of the llama kind, cut below its first trained layer.

    Parameters
    ----------
    causal : transformers.LlamaForCausalLM
        Its layers are numbered anew from the cut; use it through this object only from then on.
    first : int
        Number of the first trained layer; 0: nothing is below, and prompts come in as tokens.
    shared : int
        Tokens that all prompts begin with alike.
    """

    def __init__(self, causal: Any, first: int, shared: int) -> None:
        import torch

        self._model, self._head, self._first, self._shared = causal.model, causal.lm_head, first, shared
        self._below, self._above = causal.model.layers[:first], causal.model.layers[first:]
        self._norm, self._none = causal.model.norm, torch.nn.Identity()
        for place, layer in enumerate(self._above):
            layer.self_attn.layer_idx = place  # where its keys are kept
        self._kept: dict[tuple[int, ...], Any] = {}
        self._room = KEPT_BYTES
        self._device = causal.lm_head.weight.device

    def last_logits(self, examples: Sequence[Example]) -> Any:
        """Return the logits after each prompt, shape (n, vocabulary).

        The beginning that all share is computed once. Prompts are padded at their end, which no earlier
        token sees.
        """
        import torch

        rests = [one.tokens[self._shared :] for one in examples]
        width = max(len(rest) for rest in rests)
        ends = torch.tensor([len(rest) - 1 for rest in rests], device=self._device)
        beginning: Any = torch.tensor([examples[0].tokens[: self._shared]], device=self._device)
        padded: Any = torch.tensor([[*rest, *[0] * (width - len(rest))] for rest in rests]).to(self._device)
        name = "input_ids"
        if self._first:
            name = "inputs_embeds"
            states = [self._states(one) for one in examples]
            beginning = states[0][:, : self._shared]
            padded = torch.nn.utils.rnn.pad_sequence(
                [one[0, self._shared :] for one in states], batch_first=True
            )
        self._model.layers, self._model.norm = self._above, self._norm
        cache = None
        if self._shared:
            cache = self._model(**{name: beginning}, use_cache=True).cache
            for layer in cache.layers[: len(self._above)]:
                layer.batch_repeat_interleave(len(examples))
        found = self._model(**{name: padded}, cache=cache, use_cache=cache is not None)
        hidden = found.last_hidden_state
        return self._head(hidden[torch.arange(len(rests), device=self._device), ends])

    def _states(self, example: Example) -> Any:
        """Return what the layers below the cut make of a prompt, shape (1, tokens, width)."""
        import torch

        known = self._kept.get(example.tokens)
        if known is not None:
            return known
        self._model.layers, self._model.norm = self._below, self._none
        with torch.no_grad():
            tokens = torch.tensor([example.tokens], device=self._device)
            states = self._model(input_ids=tokens, use_cache=False).last_hidden_state
        size = states.element_size() * states.nelement()
        if size <= self._room:
            self._room -= size
            self._kept[example.tokens] = states
        return states
