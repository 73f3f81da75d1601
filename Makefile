# `make demo` and `make test` need Python 3.11 or newer and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := setup.cfg pyproject.toml constraints.txt

.PHONY: demo test lint bench eval clean

demo: $(VENV)/.installed
	$(BIN)/epicqa index
	$(BIN)/epicqa run --questions expert --tag demo
	$(BIN)/epicqa score runs/demo.tsv

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks

eval: $(VENV)/.installed
	$(BIN)/epicqa eval eval/*.toml

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(SOURCES) | $(VENV)/bin/pip
	$(BIN)/pip install -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: $(SOURCES) | $(VENV)/bin/pip
	$(BIN)/pip install -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
