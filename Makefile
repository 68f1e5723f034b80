# The few commands a developer needs. `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.locked
SFT_VENV := .venv-sft
SFT_STAMP := $(SFT_VENV)/.locked
export KEDRO_DISABLE_TELEMETRY := 1

.DEFAULT_GOAL := help
.PHONY: help env env-sft run test test-slow test-labelstudio lint lock docs bench-startup bench-metrics bench-variance bench-judging bench-attributes bench-adaptation bench-labels bench-import

help: ## list these commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

env: $(STAMP) ## create .venv from requirements.lock (nothing is installed elsewhere)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"Python 3.11 or newer is needed, {v.major}.{v.minor} was found. Name another one: make env PYTHON=python3.12")'
	@echo "Creating $(VENV) from requirements.lock"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

env-sft: $(SFT_STAMP) ## create .venv-sft from requirements-sft.lock: the package with torch, to train judges

$(SFT_STAMP): requirements-sft.lock pyproject.toml
	@echo "Creating $(SFT_VENV) from requirements-sft.lock (torch is about 0.8 GB)"
	@test -x $(SFT_VENV)/bin/python || $(PYTHON) -m venv $(SFT_VENV)
	@$(SFT_VENV)/bin/python -c 'import sys; from importlib.metadata import version; sys.exit(not version("torch").startswith("2.13.0"))' 2>/dev/null \
		|| $(SFT_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps torch==2.13.0
	@$(SFT_VENV)/bin/python scripts/check_torch.py
	@$(SFT_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-sft.lock
	@$(SFT_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(SFT_STAMP)

run: env ## judge the quick set with the embedded model and write the report
	@$(BIN)/kedro run

test: env $(if $(CI),env-sft) ## run the fast tests, the linters and the type checker; with CI set, training too
	@$(BIN)/ruff format --check src tests
	@$(BIN)/ruff check src tests
	@$(BIN)/lint-imports
	@$(BIN)/mypy src
	@$(BIN)/python -m pytest --doctest-modules src
	@$(BIN)/python -m pytest -n 2 --dist loadfile
	@if [ -f $(SFT_STAMP) ]; then $(SFT_VENV)/bin/python -m pytest tests/adapt/test_sft_training.py; \
		else echo "The tests of training were skipped: torch is not here. Run: make env-sft"; fi

test-slow: env ## run what takes longer: wide simulations, a hundred kills, models that really train
	@$(BIN)/python -m pytest -m slow
	@if [ -x $(SFT_VENV)/bin/python ]; then $(SFT_VENV)/bin/python -m pytest -m "slow or not slow" tests/adapt/test_sft_training.py tests/adapt/test_sft_planted_rule.py -s; \
		else echo "Training was skipped: torch is not here. Run: make env-sft"; fi

test-labelstudio: env ## take a round through the real Label Studio (installs it apart) and through spreadsheets
	@$(BIN)/python scripts/label_studio_round_trip.py

lint: env ## format and fix what can be fixed
	@$(BIN)/ruff format src tests
	@$(BIN)/ruff check --fix src tests

lock: ## compile requirements.lock anew from pyproject.toml (needs uv)
	@scripts/lock.sh

docs: env ## build the documentation into site/ (a broken link or reference stops it)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The documentation: site/index.html"

bench-startup: env ## how long a Kedro command takes to start, beside an empty project
	@$(BIN)/python benchmarks/startup.py

bench-metrics: env ## the statistics beside the published functions
	@$(BIN)/python benchmarks/bench_metrics.py

bench-variance: env ## variance components beside other solvers
	@$(BIN)/python benchmarks/bench_variance.py

bench-judging: env ## calls a second beside the bare clients and other people's runners (installs these apart)
	@$(BIN)/python benchmarks/bench_judging.py

bench-adaptation: env ## 14,637 reweighting fits beside a plain scikit-learn loop
	@$(BIN)/python benchmarks/bench_adaptation.py

bench-attributes: env ## 182.7 million attribute reads: all agreement tables, profiles, beside pandas
	@$(BIN)/python benchmarks/bench_attributes.py

bench-labels: env ## 50,000 labels of twenty people: read, checked, settled and analysed
	@$(BIN)/python benchmarks/bench_labels.py

bench-import: env ## a million rows imported, beside pandas and pyarrow that check nothing
	@$(BIN)/python benchmarks/bench_import.py
