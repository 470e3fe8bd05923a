# Everything a contributor runs. `make help` lists the targets.
# Needs Python 3.11 or newer (as python3, or PYTHON=/path/to/python) and a package index; makes .venv and touches nothing else.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
# `gpu` installs nothing: such machines may be offline.
.PHONY: help demo test audit gpu bench docs wheel lint fmt clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

demo: $(VENV)/.tools  ## simulate a Hopper GEMM, compare it with NumPy, assemble it, and report the bugs in a broken copy
	$(BIN)/python examples/demo.py

test: lint  ## the whole suite: lint, types, layers, tidy, generated files, tests
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal --junit-xml build/tests.xml

lint: $(VENV)/.test  ## everything in `make test` except the tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(BIN)/python -m tools.tidy
	$(BIN)/python -m tools.generate --check

audit: $(VENV)/.test  ## run in full the audits that `make test` samples; writes docs/audits
	$(BIN)/python -m tools.audit

gpu:  ## what only a GPU can show, with PYTHON's own packages: conformance of the simulator, launches, example kernels
	@$(PYTHON) -m tools.conformance.needs
	$(PYTHON) -m tools.conformance --gpu
	$(PYTHON) -m tools.gpu

bench: $(VENV)/.test $(VENV)/.bench  ## compare ratios of speeds with benchmarks/baseline.json; UPDATE=1 rewrites it
	$(BIN)/python -m benchmarks $(if $(UPDATE),--update)

docs: $(VENV)/bin/python  ## build the instruction pages in build/isa
	$(BIN)/python -m tools.isa_pages build/isa

wheel: $(VENV)/.test  ## build a wheel in dist that has the libraries of the simulated driver, and needs no compiler
	$(BIN)/python -m tools.wheel

fmt: $(VENV)/.test  ## format the code and regenerate the generated files
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .
	$(BIN)/python -m tools.generate

clean:  ## remove .venv and everything generated that git ignores
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# One stamp per set of extras: a second run installs nothing until one of these files changes.
$(VENV)/.tools $(VENV)/.test $(VENV)/.bench: $(VENV)/.%: pyproject.toml setup.py pyptx/runtime/csrc/*.c | $(VENV)/bin/python
	$(PIP) install --quiet --editable '.[$*]'
	@test '$*' != test || $(BIN)/python -m tools.browser >/dev/null
	@touch $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "pyptx needs Python 3.11 or newer; %s is %d.%d. Use: make PYTHON=/path/to/python3.11" % (sys.executable, v[0], v[1]))'
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "this Python cannot create virtual environments: install its venv package (Debian, Ubuntu: python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
