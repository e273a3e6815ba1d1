# Everything runs from a fresh clone with only Python 3.11, git and make:
# the first target that needs it installs uv into .tools and the locked set into .venv.
SHELL := /bin/bash
PYTHON ?= python3
UV_VERSION := 0.13.7
UV := .tools/bin/uv
BIN := .venv/bin
EXTRAS := --extra dev --extra envs --extra report
PYTEST := $(BIN)/python -m pytest
export UV_PROJECT_ENVIRONMENT := .venv
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.cache/jax
# Both test workers, and the processes they start, compile much the same: kept from 0.2 s on, not 1 s.
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0.2

.PHONY: help oracles third-party demo test lint types pytest wide slow peers bench bench-versus size-power bench-learning docs torch browser release-check clean

help: ## say what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(UV):
	@echo "== installing uv $(UV_VERSION) into .tools"
	@$(PYTHON) -m venv .tools && .tools/bin/pip install -q --disable-pip-version-check uv==$(UV_VERSION)

.venv/.synced: pyproject.toml uv.lock | $(UV)
	@echo "== installing the locked environment into .venv"
	@$(UV) sync --quiet --locked --inexact $(EXTRAS)
	@touch $@

demo: .venv/.synced ## the main job: see the sure path being taken
	@$(BIN)/surefoot demo

lint: .venv/.synced ## ruff, and that imports go downwards
	@echo "== ruff"
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@echo "== import-linter"
	@$(BIN)/lint-imports --no-logo --cache-dir .cache/imports

types: .venv/.synced ## mypy
	@echo "== mypy"
	@$(BIN)/mypy

# Nearly all the time goes into compiling, and most of that into making programs fast that run once.
# So quick and wide tests compile without it, but for those of bits, rounding and the headline.
pytest wide: export XLA_FLAGS ?= --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false
pytest: .venv/.synced ## the quick tests
	@echo "== pytest (quick)"
	@$(PYTEST) -q -n 2 --dist loadfile -m "not slow and not wide and not optimised"
	@echo "== pytest (quick, compiled as users compile)"
	@XLA_FLAGS= $(PYTEST) -q -n 2 --dist loadfile -m "optimised and not slow" \
	  $$(grep -rl --include='*.py' 'mark\.optimised' tests | sort -r)

test: lint ## ruff, mypy and the quick tests
	@$(MAKE) --no-print-directory -j 2 types pytest

wide: .venv/.synced ## whole runs, pages and processes, each with a small agent
	@echo "== pytest (wide)"
	@$(PYTEST) -q -n 2 --dist loadfile -m "wide and not slow and not optimised"

slow: .venv/.synced ## the slow tests
	@echo "== pytest (slow)"
	@$(PYTEST) -q -n 2 --dist loadfile -m slow

torch: .venv/.synced ## the CPU build of torch, beside the lock
	@$(BIN)/python -c "import torch" 2>/dev/null || { \
	  echo "== installing torch (CPU) into .venv"; \
	  .tools/bin/pip --python $(BIN)/python install -q --disable-pip-version-check torch==2.13.0; }

peers: .venv/.synced ## libraries that tests compare with or adapt to, beside the lock's default set
	@echo "== installing peers (sb3-contrib, tianshou, ray, wandb, arch, pot, skfolio, mkdocs)"
	@$(UV) sync --quiet --locked --inexact $(EXTRAS) --extra bench --extra sb3 \
	  --extra tianshou --extra ray --extra wandb --extra tensorboard --extra docs --extra browser --extra data

third-party: .venv/.synced ## environments of others that tests train in, beside the lock
	@$(BIN)/python -c "import minigrid, highway_env, minatar" 2>/dev/null || { \
	  echo "== installing environments (minigrid, highway-env, MinAtar) into .venv"; \
	  .tools/bin/pip --python $(BIN)/python install -q --disable-pip-version-check \
	    minigrid==3.2.0 highway-env==1.12.1 minatar==1.0.15; }

ORACLES := .oracles/bin/python
oracles: $(ORACLES) ## GPL packages that tests compare with, in an environment of their own

$(ORACLES): | $(UV)
	@echo "== installing oracles (pysdtest, deepsig) into .oracles"
	@$(UV) venv -q --python $(PYTHON) .oracles
	@$(UV) pip install -q --python $(ORACLES) pysdtest==0.0.21 matplotlib deepsig==1.2.8

browser: ## Chromium and its driver (Debian's), with which tests open and click reports
	@{ command -v chromium && command -v chromedriver; } >/dev/null || { \
	  echo "== installing chromium"; apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null; }

REJAX := .rejax/bin/python
$(REJAX): | $(UV)
	@echo "== installing rejax into .rejax"
	@$(UV) venv -q --python $(PYTHON) .rejax
	@$(UV) pip install -q --python $(REJAX) rejax==0.1.3 gymnax==0.0.9

bench: .venv/.synced ## side-by-side benchmarks
	@$(MAKE) --no-print-directory torch peers oracles third-party $(REJAX)
	@$(BIN)/python -c "import geomloss" 2>/dev/null || \
	  .tools/bin/pip --python $(BIN)/python install -q --no-deps geomloss==0.3.1
	@$(BIN)/python -m benchmarks

bench-versus: .venv/.synced ## this tree against another checkout: make bench-versus OTHER=../surefoot-0.1.0
	@$(BIN)/python -m benchmarks.versus $(OTHER)

size-power: .venv/.synced ## level and power of the dominance tests by simulation (an hour of CPU)
	@$(BIN)/python -m benchmarks.size_power

bench-learning: .venv/.synced ## learning curves beside sb3-contrib's QR-DQN (hours; goes on where it was stopped)
	@$(MAKE) --no-print-directory torch peers third-party
	@$(BIN)/python -m benchmarks.learning

docs: .venv/.synced ## the documentation, built offline into site/
	@$(UV) sync --quiet --locked --inexact $(EXTRAS) --extra docs
	@$(BIN)/python tools/pages.py
	@$(BIN)/python tools/pictures.py
	@$(BIN)/mkdocs build --strict

release-check: .venv/.synced ## wheel and sdist, installed without the lock into fresh environments
	@$(BIN)/python tools/release.py

clean: ## remove what the targets made, the environment included
	rm -rf .venv .oracles .rejax .tools .cache site build dist
