# The commands of this repository. `make demo` and `make test` need Python 3.11+ and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MEMBERS := schemas gate producer store consumers dashboard server local
STAMP := $(VENV)/.ready

.PHONY: help setup demo up test lint types unit lock wheels clean

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

test: lint types unit ## lint, types and the whole suite on the real parts

lint: setup ## style, imports between components, and the compose file
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml deploy/docker-compose.development.yml

types: setup ## mypy --strict over every component
	$(BIN)/mypy

unit: setup ## the tests, on real Apache Kafka and ClickHouse's real engine
	$(BIN)/pytest -q -n 2 --dist loadfile

lock: ## write requirements.lock anew from the pyproject files
	$(BIN)/uv lock --quiet
	$(BIN)/uv export --quiet --format requirements-txt --all-packages --all-extras --all-groups --no-emit-workspace \
	  --no-header --output-file requirements.lock > /dev/null

wheels: setup ## build a wheel of every distribution into dist/
	@for member in $(MEMBERS); do $(BIN)/uv build --quiet --wheel --out-dir dist $$member || exit 1; done; ls dist

clean: ## remove the environment and what tools left
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
