# Two commands do everything; both set up .venv first, once.
#
#   make audit    audit the bundled real model; writes report.html and report.json
#   make test     linters, types, import directions and the whole test suite
#   make soak     the same properties over far more random programs, and every mutant
#   make theorems  compiles the theorems of proofs/ with Coq, which nothing else needs
#   make release  the sdist and the wheels in dist/, each installed and used without a C compiler
#
# Python 3.11 or later and make are all that must be there. pip reads its own settings (PIP_INDEX_URL
# and so on) from the environment. Another interpreter: make test PYTHON=python3.12

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python -m
TORCH := torch==2.13.0
PYTHON ?= python3
WORKERS ?= 2
ARGS ?=
HTML ?= report.html
JSON ?= report.json

# pip says what it downloads: a first run takes minutes, and a silent one looks as if it hung.
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(RUN) pip install --no-warn-script-location -c constraints.txt

# A stamp is named after what it vouches for: the requirements, the pins, what is compiled, and where the tree stands.
KERNELS := src/orderproof/encodings/kernels
KEY := $(shell { cat pyproject.toml recheck/pyproject.toml constraints.txt hatch_build.py $(KERNELS)/*.[ch] 2>/dev/null; echo "$(CURDIR)"; } | cksum | tr -c '0-9\n' '-')
DEV := $(VENV)/.installed-dev-$(KEY)
DEMO := $(VENV)/.installed-demo-$(KEY)
ENOUGH_FOR_DEMO := $(firstword $(wildcard $(DEV)) $(DEMO))

# One torch thread a worker: the workers are the parallelism. Nothing is fetched at run time. Bytecode is kept, because
# the tests start the command many times.
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 HF_HUB_OFFLINE=1 PYTHONDONTWRITEBYTECODE=

.PHONY: help install audit test soak theorems docs lint format coverage release clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1|\2/p' Makefile | while IFS='|' read -r name text; do \
	  printf '%-16s%s\n' "$$name" "$$text"; done

audit: $(ENOUGH_FOR_DEMO) ## audit the bundled model, or ARGS="SUBJECT --law causal"; writes report.html and report.json
	@$(BIN)/orderproof audit --html $(HTML) --json $(JSON) $(ARGS)

test: lint ## linters, types, import directions, then the test suite; ARGS="-k causal" goes to pytest
	@$(TEST_ENV) $(RUN) pytest -q -n $(WORKERS) --dist worksteal -m "not slow" $(ARGS)

soak: $(DEV) ## the long runs behind the suite: thousands of random programs, every mutant (half an hour and more)
	@$(TEST_ENV) $(RUN) pytest -q -n $(WORKERS) -m slow $(ARGS)

theorems: ## compile the theorems of proofs/ with Coq, and print the axioms of each
	@$(PYTHON) tools/theorems.py $(ARGS)

docs: $(DEV) ## the documentation as a site in site/, offline and strict; open site/index.html
	@NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --quiet --strict

install: $(DEV) ## the environment in .venv, with what the tests need

lint: $(DEV) ## ruff, mypy and import directions
	@$(RUN) ruff check .
	@$(RUN) ruff format --check --quiet . || { echo "not formatted as ruff would: run make format"; exit 1; }
	@$(BIN)/lint-imports --no-logo
	@$(RUN) mypy

format: $(DEV) ## let ruff fix and format
	@$(RUN) ruff check --fix .
	@$(RUN) ruff format .

coverage: $(DEV) ## the test suite once more, with branches counted
	@$(TEST_ENV) $(RUN) coverage run -m pytest -q -n $(WORKERS) $(ARGS)
	@$(RUN) coverage combine --quiet
	@$(RUN) coverage report

release: $(DEV) ## build the sdist and the wheels into dist/, install each without a compiler and use it
	@$(BIN)/python tools/release.py --torch $(TORCH)

clean: ## remove .venv, caches and reports
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.* \
	  dist build site report.html report.json
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An install that was cut short leaves .installing behind and is started afresh. torch comes first and by itself:
# asked for by version only, and so never replaced by a build that brings gigabytes of CUDA along.
$(VENV)/.installed-%-$(KEY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "orderproof needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) --version 2>&1 | tail -n 1)." \
	    "Try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) lacks the venv module; install it (Debian and Ubuntu: apt install python3-venv)." >&2; exit 2; }
	@if [ -e $(VENV)/.installing ] || ! $(RUN) pip --version >/dev/null 2>&1; then \
	  echo "step 1 of 3: creating $(VENV)"; $(PYTHON) -m venv --clear $(VENV); fi
	@touch $(VENV)/.installing
	@echo "step 2 of 3: installing $(TORCH) (some 200 MB; minutes on a slow line)"
	@$(PIP) $(TORCH)
	@echo "step 3 of 3: installing orderproof[$*] and what it needs, with the versions of constraints.txt"
	@$(PIP) -q hatchling editables
	@$(PIP) -q --no-build-isolation -e ./recheck
	@$(PIP) --no-build-isolation -e '.[$*]'
	@rm -f $(VENV)/.installed-$*-* $(VENV)/.installing
	@touch $@
	@echo "installed; later runs of make start at once"
