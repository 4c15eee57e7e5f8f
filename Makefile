# Everything a developer runs. Each target first makes sure that .venv matches uv.lock (tools/bootstrap.sh), so all of
# them work in a fresh clone with nothing but a Python >= 3.12.

BIN := .venv/bin
# Number of test processes; `make test WORKERS=0` runs the tests in one process, for a debugger.
WORKERS ?= auto
# More arguments for pytest, such as ARGS="tests/test_store.py -x".
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test bench check lint format typecheck imports lock samples clean env javascript

help:  ## list the targets
	@sed -n 's/^\([a-z]*\): .*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|' 2>/dev/null \
	  || grep -o '^[a-z]*: .*## .*' $(MAKEFILE_LIST)

demo: env  ## scan the sample files, open them through xarray, compare with a direct read
	@$(BIN)/python sample_data/demo.py

test: env javascript  ## run the tests, warnings as errors
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

check: lint typecheck imports test  ## what CI runs: lint, format, types, import directions, tests

bench: env  ## time ourselves against the peers, and write the results to docs
	$(BIN)/python -m benchmarks --write docs

lint: env  ## ruff's rules and format, and whether uv.lock matches pyproject.toml
	@sh tools/bootstrap.sh lock --check --quiet
	$(BIN)/ruff check
	$(BIN)/ruff format --check --diff

format: env  ## apply ruff's safe fixes and its format
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

typecheck: env  ## pyright, strict
	$(BIN)/pyright

imports: env  ## the import directions that pyproject.toml sets down
	$(BIN)/lint-imports

lock:  ## bring uv.lock in line with pyproject.toml
	@sh tools/bootstrap.sh lock

samples: env  ## make the files in sample_data again
	$(BIN)/python sample_data/make_sample_data.py
	$(BIN)/python sample_data/make_open_meteo.py

clean:  ## remove environments, caches and builds
	rm -rf .venv .tools .pytest_cache .hypothesis .ruff_cache .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

env:
	@sh tools/bootstrap.sh

javascript: env
	@sh tools/javascript.sh
