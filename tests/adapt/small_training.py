"""What tests of fine-tuning share: a tokenizer of whole words, a judge, and a tiny model file."""

import numpy as np

from judge_calibration.judges.embedded.gguf import to_gguf
from judge_calibration.judges.embedded.weights import Weights

JUDGE = {
    "judge_id": "small",
    "model": "embedded/smollm2-135m-instruct",
    "protocols": [{"name": "direct", "constraints": ["grammar"]}],
    "weights": {"file_sha256": "0" * 64},
}


class Words:
    """A tokenizer that makes a token of each word."""

    def __init__(self):
        self.numbers = {}

    def text_of(self, messages):
        return " ".join(message["content"] for message in messages) + " reply:"

    def tokens_of(self, text):
        return [self.numbers.setdefault(word, len(self.numbers)) for word in text.split()]


def small_model_file(folder, shipped_sha256="b" * 64):
    """Return a model file of the llama kind with two query heads and one key head."""
    path = folder / "small.gguf"
    metadata = {
        "general.architecture": "llama",
        "llama.attention.head_count": 2,
        "llama.attention.head_count_kv": 1,
    }
    path.write_bytes(to_gguf(metadata, {"blk.0.attn_v.weight": np.zeros((4, 8))}))
    return Weights(path, "a" * 64, "F32", shipped_sha256)
