# The commands people type. Each sets up what it needs in .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
# A worker runs whole files in order, so that servers and browsers are started once. Three workers keep
# two cores busy: tests wait for processes, browsers and timers about 30 % of the time.
PYTEST := $(BIN)/python -m pytest -q -n 3 --dist worksteal

.PHONY: demo serve-demo test test-all test-adapters lint bench bench-peers package docs figures recording reliability clean

demo: .venv/.demo  ## the main job on simulated roads, under two minutes; leaves demo/index.html
	$(BIN)/streamridge demo --out demo

serve-demo: .venv/.service  ## a service, simulated detectors and the page; Ctrl-C ends it
	$(BIN)/streamridge serve --demo

test: .venv/.dev .venv/.tools  ## the quick suite
	$(PYTEST) -m "not slow"

test-all: .venv/.dev .venv/.tools  ## the quick suite and the slow proofs
	$(PYTEST)

# The tests of the whole project need other packages: their conftest.py is left out.
test-adapters: .venv-adapters/.ready  ## the adapters against the real libraries
	OPENBLAS_NUM_THREADS=1 .venv-adapters/bin/python -m pytest -q -n 2 --confcutdir=tests/adapters \
	    tests/adapters/*.py tests/adapters/libraries src/streamridge/adapters

lint: .venv/.dev  ## format, lint, types, import contract, workflows
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file benchmarks/mypy.ini benchmarks
	$(BIN)/lint-imports
	$(BIN)/zizmor --offline --quiet .github

bench: .venv/.dev  ## one window against one bare factorization
	$(BIN)/python benchmarks/bench_window.py

# ROADS="FILE --sensor NAME --to DAY" takes the roads from a file.
bench-peers: .venv-peers/.done  ## a week of operation with this and other libraries
	.venv-peers/bin/python benchmarks/bench_peers.py $(ROADS)

package: .venv/.package  ## dist/: wheel and sdist, tried in empty environments on every Python at hand
	$(BIN)/python packaging/check.py

docs: .venv/.docs  ## the documentation site, in build/site; it needs no network
	$(BIN)/python docs/write_help.py
	$(BIN)/zensical build --strict --clean
	$(BIN)/python docs/write_llms.py build/site/llms.txt
	$(BIN)/python docs/check_site.py build/site

figures: .venv/.dev  ## the figures of the gallery, by the scripts of examples/
	cd docs/images/gallery && for script in ../../../examples/*.py; do \
	  OPENBLAS_NUM_THREADS=1 MPLBACKEND=agg ../../../$(BIN)/python $$script || exit 1; done

recording: .venv/.demo  ## the main commands as they look now, written into pages of docs/
	$(BIN)/python docs/record_guide.py

# RUN=all runs the slow proofs as well.
reliability: .venv/.dev  ## docs/reliability.md: what was tried, by which test, and what came out
	-$(PYTEST) $(if $(filter all,$(RUN)),,-m "not slow") --junitxml=build/reliability.xml \
	    tests/service tests/cli/test_serve.py $$($(BIN)/python docs/record_reliability.py --proofs)
	$(BIN)/python docs/record_reliability.py build/reliability.xml --run $(or $(RUN),quick)

clean:
	rm -rf .venv .venv-adapters .venv-peers demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/.demo: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	touch $@

.venv/.service: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[service]"
	touch $@

.venv/.docs: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $@ .venv/.service

.venv/.dev: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@ .venv/.demo .venv/.service

.venv/.package: .venv/bin/python
	$(BIN)/python -m pip install --quiet "build>=1.2"
	touch $@

.venv-peers/.done: benchmarks/peers.txt pyproject.toml
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --requirement benchmarks/peers.txt --editable .
	touch $@

.venv-adapters/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-adapters
	.venv-adapters/bin/python -m pip install --quiet --upgrade pip
	.venv-adapters/bin/python -m pip install --quiet --editable ".[test-adapters]"
	touch $@

# A browser for the tests of the page, and strace for those that kill the service at a write. They are
# installed where that is allowed; without them these tests are skipped, and say so.
.venv/.tools: .venv/bin/python
	@command -v chromium > /dev/null && command -v strace > /dev/null && touch $@ || { \
	  ([ "$$(id -u)" = 0 ] && apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -qq -y --no-install-recommends chromium strace > /dev/null && touch $@) \
	  || echo "chromium and strace are not installed and cannot be installed here: some tests are skipped"; }
