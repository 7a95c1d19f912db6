# The commands people type. Each sets up what it needs in .venv by itself.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all lint bench recording clean

demo: .venv/.demo  ## the main job on simulated roads, under two minutes; leaves demo/index.html
	$(BIN)/streamridge demo --out demo

test: .venv/.dev  ## the quick suite
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

test-all: .venv/.dev  ## the quick suite and the slow proofs
	$(BIN)/python -m pytest -q -n 2

lint: .venv/.dev  ## format, lint, types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.dev  ## one window against one bare factorization
	$(BIN)/python benchmarks/bench_window.py

recording: .venv/.demo  ## the main commands as they look now, written into docs/guide.md
	$(BIN)/python docs/record_guide.py

clean:
	rm -rf .venv demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/.demo: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	touch $@

.venv/.dev: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@ .venv/.demo
