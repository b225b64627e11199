# Every command sets up what it needs in $(VENV); Python 3.11 or newer and make are enough.
#
#   make demo     infer a curved posterior, watch it, write output/demo.png
#   make test     ruff, pyright and pytest
#   make quick    ruff and the tests that are not slow, in less than a minute
#   make lint     ruff and pyright alone
#   make integrations  the tests of PyMC, NumPyro, JAX, Cobaya and bilby, in an environment of their own (700 MB)
#   make lowest   the quick tests with the oldest declared version of every package, on Python 3.11
#   make docs     build the documentation into output/docs/index.html
#   make format   rewrite the sources in the project's style
#   make clean    remove everything these commands made

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TOOLS_PATHS := src tests benchmarks docs examples

# pyright otherwise asks the network at every run whether a newer release exists.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.PHONY: help demo test kernels quick integrations lowest lint docs format clean

help:
	@sed -n 's/^#   make/make/p' Makefile

demo: $(VENV)/.installed-demo
	$(BIN)/python -m sparing demo --output output

test: lint kernels
	$(BIN)/python -m pytest -n 2 --dist loadfile

# Before the tests: two processes that fill one cache side by side may round differently from a third.
kernels: $(VENV)/.installed-dev
	$(BIN)/python -c 'from sparing.kernels.compilation import compile_all; compile_all(gradients=True)'

quick: $(VENV)/.installed-dev
	$(BIN)/ruff check $(TOOLS_PATHS)
	$(BIN)/python -m pytest -q -m "not slow"

# PyMC holds Numba back, so it does not share the environment of everything else.
integrations: $(VENV)/.installed-integrations
	$(VENV)/integrations/bin/python -m pytest tests/integrations tests/benchmarks/test_beside_nuts.py

$(VENV)/.installed-integrations: pyproject.toml | $(BIN)/python
	$(PYTHON) -m venv $(VENV)/integrations
	$(VENV)/integrations/bin/python -m pip install --quiet --disable-pip-version-check --editable \
	  '.[plots,report,pandas,getdist,pymc,numpyro,jax,cobaya,bilby]' 'pytest>=8' 'corner>=2.2'
	@touch $@

lowest: $(VENV)/.installed-lowest
	$(VENV)/lowest/bin/python -m pytest -q -m "not slow"

$(VENV)/.installed-lowest: pyproject.toml | $(BIN)/python
	$(PYTHON) -m venv $(VENV)/lowest
	$(PYTHON) tests/packaging/lowest_versions.py > $(VENV)/lowest.txt
	$(VENV)/lowest/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: \
	  --constraint $(VENV)/lowest.txt --editable \
	  '.[plots,report,paper,arviz,pandas,getdist,dask,loky,mpi,ray]' pytest corner dynesty emcee scikit-learn \
	  'pyparsing<3.2'  # Matplotlib 3.8 warns of what is deprecated since
	@touch $@

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check $(TOOLS_PATHS)
	$(BIN)/ruff format --check $(TOOLS_PATHS)
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: $(VENV)/.installed-dev
	$(BIN)/python -m sphinx -W --keep-going -q -d output/doctrees docs output/docs

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix $(TOOLS_PATHS)
	$(BIN)/ruff format $(TOOLS_PATHS)

clean:
	rm -rf $(VENV) output build dist .pytest_cache .ruff_cache src/*.egg-info
	find src tests benchmarks docs examples -type d -name __pycache__ -prune -exec rm -rf {} +

# The demo needs no development tools, so it does not wait for them.
$(VENV)/.installed-demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plots]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.installed-demo

$(BIN)/python:
	@command -v $(PYTHON) > /dev/null || { \
	  echo "sparing: no '$(PYTHON)' here; name a Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "sparing: needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) -V 2>&1); use: make PYTHON=python3.11" >&2; exit 1; }
	@echo "sparing: setting up $(VENV) (the first time takes a minute or two)"
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "sparing: no virtual environment could be made; on Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }
