# Asylum Zero. `make train` and `make test` work on a fresh checkout: each builds .venv first when it has to.
#
#   make setup            build .venv, or bring it up to date with pyproject.toml and constraints.txt
#   make train            the whole pipeline on configs/quick.yaml   (CONFIG=configs/chess.yaml, ARGS="--set seed=2")
#   make test             the default test suite                     (ARGS="-k perft")
#   make test-slow        the long tests                             (ARGS="tests/envs")
#   make coverage         line coverage of envs/, kernels included
#   make lint             ruff and mypy --strict
#   make bench            speed of the parts                         (ARGS="env --peers", ARGS=search)
#   make clean            remove caches; .venv and runs/ stay
#
# PYTHON=python3.12 chooses the interpreter; CPU=1 asks for PyTorch's CPU build; JOBS=4 runs more test processes.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup train test test-slow coverage lint bench clean
SHELL := /bin/bash

PYTHON ?=
CONFIG ?= configs/quick.yaml
ARGS ?=
JOBS ?= 2
CPU ?=

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.setup-stamp
EXTRAS := test,dev
TORCH_CPU_INDEX := https://download.pytorch.org/whl/cpu
PIP_ARGS ?= $(if $(CPU),--extra-index-url $(TORCH_CPU_INDEX))

SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))
help:
	@sed -n 's/^#  \( make\)/ \1/p' Makefile

setup: $(STAMP)

# Runs again only when the dependencies change. The stamp is written last, so an interrupted set-up is repeated.
$(STAMP): pyproject.toml constraints.txt
	@set -euo pipefail; \
	if [ -x $(PY) ] && $(PY) -c '$(SUPPORTED)' 2>/dev/null; then \
	    echo "[setup] bringing $(VENV) up to date"; \
	else \
	    python=""; \
	    for candidate in $(or $(PYTHON),python3.11 python3.12 python3); do \
	        if "$$candidate" -c '$(SUPPORTED)' 2>/dev/null; then python="$$candidate"; break; fi; \
	    done; \
	    if [ -z "$$python" ]; then \
	        echo "[setup] Asylum Zero needs Python 3.11 or 3.12; found:" >&2; \
	        for candidate in $(or $(PYTHON),python3.11 python3.12 python3); do \
	            echo "[setup]   $$candidate: $$("$$candidate" --version 2>&1 | head -n 1)" >&2; \
	        done; \
	        echo "[setup] install one of them, or say which: make setup PYTHON=/path/to/python3.11" >&2; \
	        exit 1; \
	    fi; \
	    echo "[setup] making $(VENV) with $$("$$python" --version)"; \
	    "$$python" -m venv --clear $(VENV) || { \
	        echo "[setup] $$python has no working venv module (on Debian and Ubuntu: apt install python3-venv)" >&2; \
	        exit 1; }; \
	fi; \
	echo "[setup] installing the pinned packages (PyTorch, Ray, Numba, ONNX Runtime, ...): 2 to 10 minutes"; \
	$(if $(CPU),,if [ "$$(uname -s)" = Linux ]; then \
	    echo "[setup] note: a package index may offer PyTorch's CUDA build (several GB); CPU=1 asks for the CPU build"; fi;) \
	PIP_DISABLE_PIP_VERSION_CHECK=1 $(PY) -m pip install $(PIP_ARGS) -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@
	@echo "[setup] done: $(VENV) is ready"

train: $(STAMP)
	@echo "[train] scripts/train.py $(CONFIG) $(ARGS)"
	$(PY) scripts/train.py $(CONFIG) $(ARGS)

test: $(STAMP)
	@echo "[test] compiling the rules kernels, if no compiled copy is cached (about half a minute the first time)"
	@$(PY) -m train.warm_up
	@echo "[test] the default suite in $(JOBS) processes: some minutes"
	$(PY) -m pytest -n $(JOBS) --dist loadfile $(ARGS)

test-slow: $(STAMP)
	@echo "[test-slow] the tests marked slow: this can take hours"
	$(PY) -m pytest -m slow $(ARGS)

# The kernels are measured by the tests marked nojit, with the compiler off; the rest of envs/ by its suite without the
# long comparisons, which take ten times as long when every line is traced.
# Unsigned arithmetic wraps on purpose there, which only interpreted NumPy warns about.
coverage: $(STAMP)
	@rm -f .coverage
	@echo "[coverage] envs/ as compiled"
	$(PY) -m pytest tests/envs tests/scripts -q -n $(JOBS) --dist loadfile --cov --cov-report= \
	    -k "not played_to_the_end and not python_chess and not fairy_stockfish" $(ARGS)
	@echo "[coverage] envs/ interpreted: the tests marked nojit"
	NUMBA_DISABLE_JIT=1 $(PY) -m pytest tests/envs -q -m nojit -W default --cov --cov-append --cov-report=
	$(PY) -m coverage report --fail-under=95

lint: $(STAMP)
	$(PY) -m ruff check .
	$(PY) -m mypy

bench: $(STAMP)
	$(PY) scripts/bench.py $(ARGS)

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* htmlcov
	find envs models train scripts tests -name __pycache__ -type d -prune -exec rm -rf {} +
