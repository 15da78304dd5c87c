# The commands of this repository. `make demo` and `make test` need Python 3.11+ and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CHAOS_SECONDS ?= 600
CHAOS_SEED := $(or $(CHAOS_SEED),$(shell date +%s))
WORKERS ?= 3
MEMBERS := schemas gate producer store consumers dashboard server local
STAMP := $(VENV)/.ready

# Where the surroundings forbid it, each of many processes would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo up test lint types unit chaos bench screenshots lock wheels clean

help: ## show these commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 22

setup: $(STAMP) ## prepare .venv with everything, from the pinned and hashed requirements.lock

$(STAMP): requirements.lock pyproject.toml $(MEMBERS:%=%/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Approval Trail needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Set PYTHON=/path/to/python3.11."; exit 1; }
	@test -x $(BIN)/python || { echo "Making $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.13,<0.14'
	@echo "Installing pinned packages into $(VENV) (about 1 GB on disk, once) ..."
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip sync --quiet --require-hashes requirements.lock
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip install --quiet --no-deps 'uv>=0.13,<0.14' $(MEMBERS:%=--editable ./%)
	@touch $@

demo: setup ## start everything with demo traffic, and print the dashboard's address
	@exec $(BIN)/approvaltrail demo

up: setup ## start everything on this machine, without demo traffic
	@exec $(BIN)/approvaltrail up

test: lint ## lint, then types and the whole suite on the real parts, side by side
	@$(MAKE) --no-print-directory --jobs 2 types unit

lint: setup ## style, imports between components, and the compose file
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml deploy/docker-compose.development.yml

types: setup ## mypy --strict over every component
	$(BIN)/mypy

unit: setup ## the tests, on real Apache Kafka and ClickHouse's real engine, by WORKERS processes (3)
	$(BIN)/pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder

chaos: export APPROVALTRAIL_CHAOS_SECONDS := $(CHAOS_SECONDS)
chaos: export APPROVALTRAIL_CHAOS_SEED := $(CHAOS_SEED)
chaos: setup ## kills, stalls and rebalances for CHAOS_SECONDS (600), from CHAOS_SEED (a new one)
	@echo "seed $$APPROVALTRAIL_CHAOS_SEED: CHAOS_SEED=$$APPROVALTRAIL_CHAOS_SEED repeats it"
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder tests/chaos

bench: setup ## every benchmark, one table, about an hour; BENCH=--quick to see that they run
	$(BIN)/python -m benchmarks $(BENCH)

screenshots: setup ## take the README's pictures of the dashboard from a demo of its own
	$(BIN)/python -m tests.support.screenshots

lock: ## write requirements.lock anew from the pyproject files
	$(BIN)/uv lock --quiet
	$(BIN)/uv export --quiet --format requirements-txt --all-packages --all-extras --all-groups --no-emit-workspace \
	  --no-header --output-file requirements.lock > /dev/null

wheels: setup ## build a wheel of every distribution into dist/
	@for member in $(MEMBERS); do $(BIN)/uv build --quiet --wheel --out-dir dist $$member || exit 1; done; ls dist

clean: ## remove the environment and what tools left
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
