"""A versioned folder of files gives back bytes where a file is no text."""

from judge_calibration.datasets import Files


def test_texts_come_back_as_texts_and_other_files_as_bytes(tmp_path):
    files = Files(filepath=str(tmp_path / "adapters"))
    files.save({"README.txt": "LoRA adapters\n", "one.gguf": b"GGUF\xff\x00"})
    assert files.load() == {"README.txt": "LoRA adapters\n", "one.gguf": b"GGUF\xff\x00"}
