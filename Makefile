PYTHON ?= python3
VENV := .venv
# Processes that run tests; a file's tests stay together.
WORKERS ?= 2
BIN := $(VENV)/bin
OLDEST := .venv-oldest
# Tests start many processes: each would compile all modules to bytecode again.
# With as many processes as cores, threads of BLAS and OpenMP would only wait for each other.
PYTEST := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest
# What `make test-fast` runs: every layer, without child processes and statistics.
FAST := tests/core tests/data tests/kernels tests/methods tests/mixture tests/topics tests/functions tests/contracts \
  --ignore=tests/core/test_memory_limit.py --ignore=tests/methods/test_trajectories.py tests/test_gate.py \
  tests/test_import_rule.py tests/cli/test_app.py

# Two installs into one environment at a time would corrupt it.
.NOTPARALLEL:
.PHONY: help demo test test-fast test-oldest test-slow test-gpu gpu-test-parts browser-test-parts check bench docs clean FORCE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/.demo.stamp ## reproduce the paper's experiments, quickly; results in results/demo
	$(BIN)/python -m paper all --quick --out results/demo

test: $(VENV)/.dev.stamp ## run the quick tests and doctests; COVERAGE=1 measures coverage
	$(BIN)/python tests/warm.py
	$(PYTEST) $(if $(COVERAGE),--cov) -n $(WORKERS) --dist loadfile

test-fast: $(VENV)/.dev.stamp ## run a selection of the tests that takes less than a minute
	$(BIN)/python tests/warm.py
	$(PYTEST) -n $(WORKERS) --dist loadfile $(FAST)

test-oldest: $(OLDEST)/.stamp ## run the main calls with the lowest versions of tests/oldest.txt
	PYTHONPATH=src OPENBLAS_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest -q -p no:cacheprovider \
	  -W ignore::DeprecationWarning tests/test_main_calls.py

gpu-test-parts: $(VENV)/.dev.stamp ## install what the tests of GPU kernels need on a machine without a GPU
	$(BIN)/python -c 'import torch, triton' 2>/dev/null || $(BIN)/python -m pip install -q torch==2.13.0 triton

browser-test-parts: ## install the Chromium that the tests of pages need, on Debian
	command -v chromium >/dev/null || { apt-get update -q && apt-get install -q -y --no-install-recommends chromium; }

test-gpu: ## run the tests of the GPU on a machine with one, by its own python3, and print figures
	PYTHONPATH=src python3 -m pytest -q -p no:cacheprovider tests/gpu/test_product.py
	PYTHONPATH=src python3 -m pytest -q -p no:cacheprovider tests/gpu --ignore=tests/gpu/test_product.py
	PYTHONPATH=src python3 -m benchmarks --only gpu

test-slow: $(VENV)/.dev.stamp $(VENV)/.docs.stamp ## run the slow tests, those of the built documentation too
	$(PYTEST) -m slow

check: $(VENV)/.dev.stamp ## check formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.demo.stamp ## run the benchmarks and write docs/benchmarks.md
	$(BIN)/python -m benchmarks --page docs/benchmarks.md

docs: $(VENV)/.docs.stamp ## build the documentation, with its examples executed
	rm -rf docs/api  # pages of modules that are gone would fail
	$(BIN)/sphinx-build -W -q docs docs/_build/html
	@echo "Documentation: docs/_build/html/index.html"

clean: ## remove the environment, caches and built docs (results/ stays)
	rm -rf $(VENV) $(OLDEST) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage* htmlcov build dist docs/_build docs/api docs/gallery
	find src tests paper benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# .venv/.ok holds the folder the environment was made in. It is set aside during an install, so an
# interrupted one, a moved checkout or a vanished interpreter all lead to a fresh environment.
# Moving it keeps its date: the stamps depend on it and must not go stale after each install.
VENV_FOR := $(shell $(BIN)/python -c '' 2>/dev/null && cat $(VENV)/.ok 2>/dev/null)
ifneq ($(VENV_FOR),$(CURDIR))
$(VENV)/.ok: FORCE
endif

$(VENV)/.ok:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "swiftem needs Python 3.11 or newer, but '$(PYTHON)' is" \
	    "$$($(PYTHON) --version 2>/dev/null || echo missing); pass another with PYTHON=/path/to/python." >&2; exit 1; }
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@printf '%s\n' '$(CURDIR)' > $@

define install
	@echo "Installing swiftem into $(VENV) (the first time takes a minute or two)"
	@mv $(VENV)/.ok $(VENV)/.busy
	@$(BIN)/python -m pip install -q --disable-pip-version-check $(1)
	@mv $(VENV)/.busy $(VENV)/.ok
	@touch $@
endef

$(VENV)/.demo.stamp: pyproject.toml paper/requirements.txt $(VENV)/.ok
	$(call install,-r paper/requirements.txt)

$(VENV)/.dev.stamp: pyproject.toml $(VENV)/.ok
	$(call install,-e '.[dev]')

$(VENV)/.docs.stamp: pyproject.toml $(VENV)/.ok
	$(call install,-e '.[docs]')

$(OLDEST)/.stamp: tests/oldest.txt
	rm -rf $(OLDEST)
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install -q --disable-pip-version-check -r tests/oldest.txt
	@touch $@
