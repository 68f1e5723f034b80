"""LoRA adapters of the embedded model: written, checked against the model, served, part of the identity."""

from pathlib import Path

import numpy as np
import pytest

from judge_calibration.judges.embedded import adapters, describe
from judge_calibration.judges.embedded.adapters import (
    AdapterError,
    LowRank,
    adapter_bytes,
    check_adapter,
    rotary_order,
)
from judge_calibration.judges.embedded.gguf import F32, read_header, to_gguf
from judge_calibration.judges.embedded.provider import open_pool, payload_of, pool_name
from judge_calibration.judges.embedded.runtime import Tokenizer
from judge_calibration.judges.embedded.weights import Weights, prepare
from judge_calibration.judges.instrument import resolve_instruments
from judge_calibration.options.asking import EmbeddedOptions
from judge_calibration.options.judging import JudgeSpec, JudgingOptions

MODEL = "embedded/smollm2-135m-instruct"


@pytest.fixture
def small(tmp_path):
    """A model of one matrix with 4 inputs and 6 outputs."""
    path = tmp_path / "small.gguf"
    metadata = {"general.architecture": "llama", "general.name": "Small"}
    path.write_bytes(to_gguf(metadata, {"blk.0.attn_q.weight": np.zeros((6, 4))}))
    return Weights(path, "a" * 64, "F32", "b" * 64)


def change(rank=2, inputs=4, outputs=6):
    return LowRank(np.ones((rank, inputs)), np.arange(outputs * rank, dtype=float).reshape(outputs, rank))


def adapter_file(tmp_path, weights, changes=None, **notes):
    path = tmp_path / "adapter.gguf"
    path.write_bytes(adapter_bytes(changes or {"blk.0.attn_q.weight": change()}, 32, weights, notes))
    return path


class TestWriting:
    def test_the_file_says_what_it_is(self, tmp_path, small):
        path = adapter_file(tmp_path, small)
        header = read_header(path)
        assert header.metadata == {
            "general.type": "adapter",
            "general.architecture": "llama",
            "adapter.type": "lora",
            "adapter.lora.alpha": 32.0,
            "general.base_model.0.name": "Small",
            adapters.BASE_SHA256: "b" * 64,
        }
        # GGUF lists dimensions from the inside out: inputs x rank, and rank x outputs.
        assert {tensor.name: tensor.shape for tensor in header.tensors} == {
            "blk.0.attn_q.weight.lora_a": (4, 2),
            "blk.0.attn_q.weight.lora_b": (2, 6),
        }

    def test_values_stand_where_the_header_says(self, tmp_path, small):
        path = adapter_file(tmp_path, small)
        data = path.read_bytes()
        for tensor in read_header(path).tensors:
            assert tensor.format == F32
            assert tensor.start % 32 == 0
            values = np.frombuffer(data[tensor.start : tensor.start + 4 * tensor.weights], "<f4")
            wanted = change().down if tensor.name.endswith("a") else change().up
            assert values.tolist() == wanted.ravel().tolist()

    def test_the_same_matrices_give_the_same_bytes(self, small):
        two = {"blk.0.attn_q.weight": change(), "blk.0.attn_a.weight": change()}
        assert adapter_bytes(two, 1, small) == adapter_bytes(dict(reversed(two.items())), 1, small)

    def test_rotary_rows_go_in_turns_within_each_head(self):
        # One head of 6 rows: halves (0, 1, 2) and (3, 4, 5) are taken in turns.
        assert rotary_order(np.arange(6)[:, None], 1)[:, 0].tolist() == [0, 3, 1, 4, 2, 5]


class TestRefusing:
    def test_its_own_model_is_accepted(self, tmp_path, small):
        adapter = check_adapter(str(adapter_file(tmp_path, small)), small)
        assert len(adapter.sha256) == 64

    def test_a_missing_file(self, tmp_path, small):
        with pytest.raises(AdapterError, match="is not there"):
            check_adapter(str(tmp_path / "none.gguf"), small)

    def test_another_base_model_is_named(self, tmp_path, small):
        path = adapter_file(tmp_path, small)
        other = Weights(small.path, "c" * 64, "F32", "d" * 64)
        with pytest.raises(
            AdapterError, match=r"trained on another model: Small with the SHA-256 bbbb.*dddd"
        ):
            check_adapter(str(path), other)

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"blk.7.attn_q.weight": change()}, "the model has no blk.7.attn_q.weight"),
            ({"blk.0.attn_q.weight": change(inputs=5)}, "is 4 x 6, and it is for 5 x 6"),
            ({"blk.0.attn_q.weight": LowRank(np.ones((2, 4)), np.ones((6, 3)))}, "does not fit"),
        ],
    )
    def test_matrices_that_the_model_does_not_have(self, tmp_path, small, changes, said):
        with pytest.raises(AdapterError, match=said):
            check_adapter(str(adapter_file(tmp_path, small, changes)), small)

    def test_an_adapter_of_others_is_judged_by_its_matrices(self, tmp_path, small):
        metadata = {"general.type": "adapter", "general.architecture": "qwen2", "adapter.type": "lora"}
        path = tmp_path / "foreign.gguf"
        tensors = {
            "blk.0.attn_q.weight.lora_a": np.ones((2, 4)),
            "blk.0.attn_q.weight.lora_b": np.ones((6, 2)),
        }
        path.write_bytes(to_gguf(metadata, tensors))
        with pytest.raises(AdapterError, match="architecture 'qwen2', and the model is 'llama'"):
            check_adapter(str(path), small)
        path.write_bytes(to_gguf({**metadata, "general.architecture": "llama"}, tensors))
        assert check_adapter(str(path), small).path == path

    def test_half_a_pair(self, tmp_path, small):
        metadata = {"general.type": "adapter", "general.architecture": "llama", "adapter.type": "lora"}
        path = tmp_path / "half.gguf"
        path.write_bytes(to_gguf(metadata, {"blk.0.attn_q.weight.lora_a": np.ones((2, 4))}))
        with pytest.raises(AdapterError, match="half of no pair"):
            check_adapter(str(path), small)

    def test_a_model_is_no_adapter(self, small):
        with pytest.raises(AdapterError, match="is no LoRA adapter"):
            check_adapter(str(small.path), small)

    @pytest.mark.parametrize("content", [b"", b"GGUF", b"PK\x03\x04 a zip file"])
    def test_a_file_that_is_no_gguf(self, tmp_path, small, content):
        (tmp_path / "x.gguf").write_bytes(content)
        with pytest.raises(AdapterError, match="cannot be read"):
            check_adapter(str(tmp_path / "x.gguf"), small)

    def test_a_file_cut_short(self, tmp_path, small):
        path = adapter_file(tmp_path, small)
        path.write_bytes(path.read_bytes()[:120])
        with pytest.raises(AdapterError, match="cannot be read"):
            check_adapter(str(path), small)


@pytest.fixture(scope="module")
def flipping_adapter(tmp_path_factory):
    """An adapter for the shipped model that changes its answers: noise in the last layer."""
    weights = prepare(MODEL, EmbeddedOptions())
    noise = np.random.default_rng(0)
    up = noise.normal(size=(576, 4))
    changes = {"blk.29.ffn_down.weight": LowRank(noise.normal(size=(4, 1536)), up)}
    path = tmp_path_factory.mktemp("adapter") / "noise.gguf"
    path.write_bytes(adapter_bytes(changes, 4.0, weights))
    return str(path)


def spec(adapter=None):
    return JudgeSpec.model_validate(
        {
            "judge_id": "small",
            "model": MODEL,
            "protocols": ["direct"],
            "transport": {"embedded": {"adapter": adapter, "context": 1024, "instances": 1}},
        }
    )


class TestIdentity:
    def test_the_adapter_is_part_of_the_instrument(self, flipping_adapter):
        plain, adapted = (
            resolve_instruments(JudgingOptions(judges=(spec(adapter),)))[0]
            for adapter in (None, flipping_adapter)
        )
        assert "adapter_sha256" not in plain.description["weights"]
        assert len(adapted.description["weights"]["adapter_sha256"]) == 64
        assert plain.instrument_id != adapted.instrument_id
        assert plain.description["weights"]["file_sha256"] == adapted.description["weights"]["file_sha256"]

    def test_where_the_file_lies_is_not(self, flipping_adapter, tmp_path):
        copy = tmp_path / "elsewhere.gguf"
        copy.write_bytes(Path(flipping_adapter).read_bytes())
        one, two = (describe(MODEL, EmbeddedOptions(adapter=path)) for path in (flipping_adapter, str(copy)))
        assert one == two

    def test_pools_of_one_model_are_told_apart(self, flipping_adapter):
        assert pool_name(EmbeddedOptions()) != pool_name(EmbeddedOptions(adapter=flipping_adapter))


class TestServing:
    QUESTION: dict = {"messages": [{"role": "user", "content": "Name three animals."}]}

    def answer(self, adapter):
        pool = open_pool(MODEL, EmbeddedOptions(adapter=adapter, context=1024, instances=1))
        payload = payload_of(self.QUESTION["messages"], {"temperature": 0.0, "max_tokens": 12})
        return pool.complete(payload)["choices"][0]["message"]["content"]

    def test_an_adapter_changes_the_answers(self, flipping_adapter):
        assert self.answer(None) != self.answer(flipping_adapter)

    def test_an_adapter_of_zeros_changes_nothing(self, tmp_path):
        weights = prepare(MODEL, EmbeddedOptions())
        path = tmp_path / "zeros.gguf"
        change = LowRank(np.ones((2, 576)), np.zeros((576, 2)))
        path.write_bytes(adapter_bytes({"blk.3.attn_q.weight": change}, 2.0, weights))
        assert self.answer(str(path)) == self.answer(None)

    def test_the_tokenizer_counts_what_the_runtime_counts(self):
        pool = open_pool(MODEL, EmbeddedOptions(context=1024, instances=1))
        with Tokenizer(pool) as tokens:
            text = tokens.text_of(self.QUESTION["messages"])
            counted = len(tokens.tokens_of(text))
            assert tokens.tokens_of("A") != tokens.tokens_of("B")
        payload = payload_of(self.QUESTION["messages"], {"temperature": 0.0, "max_tokens": 1})
        assert pool.complete(payload)["usage"]["prompt_tokens"] == counted
