# Everything runs through .venv, which `setup` makes from hash-locked requirements.
PYTHON ?= python3
BIN := .venv/bin
SETUP := .venv/.setup
# Tests start hundreds of programs; each compiles every module anew where this is set.
unexport PYTHONDONTWRITEBYTECODE
# More for pytest, such as `make test ARGS="-k tiers"`.
ARGS ?=
# Five workers for two cores; labs of one kind share a worker, so each fabric is built once.
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadgroup

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-long test-older-kube test-all verify cover check fmt bench docs screenshots fuzz quality referee referee-live golden proto proto-check proto-lint lock lab-deps kube-assets live-schedulers chart-tools manifests image wheel clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(SETUP) ## Make .venv with every dependency; quick when it is up to date

$(SETUP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Toponaut needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { \
	  echo "$(PYTHON) lacks venv: on Debian and Ubuntu, apt-get install python3-venv" >&2; exit 1; }
	@echo "setting up .venv: a minute, once"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(SETUP) ## A made-up cluster from cables to a placed job; no root, no cluster
	@PATH="$(CURDIR)/$(BIN):$$PATH" tools/demo

test: $(SETUP) ## Every kind of test, in minutes; lists what is skipped and the command that enables it
	@$(PYTEST) -m "not long" $(ARGS)

test-long: $(SETUP) ## What `make test` leaves out: long tests, and every example of each law
	@EXAMPLES=all $(PYTEST) -m "long or hypothesis" $(ARGS)

test-older-kube: $(SETUP) ## The tests that depend on what Kubernetes serves, on version 1.36
	@KUBEBUILDER_ASSETS="$$(tools/kube-assets --where older)" $(PYTEST) -m "served and not long" tests/daemonset tests/kube $(ARGS)

test-all: $(SETUP) ## All tests, with every example of each law
	@EXAMPLES=all $(PYTEST) $(ARGS)

# What decides where jobs run must be covered more closely than what reads and prints.
DECIDING := topology/*,generator/placement/*,generator/reconcile/hypernode_plan.py
cover: $(SETUP) ## The tests without the labs, and how much of the branches they cover
	@EXAMPLES=all $(PYTEST) -q -m "not lab" --cov --cov-report= $(ARGS)
	@$(BIN)/coverage report --skip-covered --fail-under=95 --include="$(DECIDING)"
	@$(BIN)/coverage report --skip-covered --fail-under=85 --omit="$(DECIDING),generator/rpc/toponaut/*"

check: $(SETUP) proto-check ## Formatting, lint, types, import direction, generated code
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

fmt: $(SETUP) ## Format, and mend what can be mended
	@$(BIN)/ruff check --fix --exit-zero --quiet .
	@$(BIN)/ruff format .

verify: $(SETUP) ## A slice of the grid of damaged fabrics; fails on a tree that is silently wrong
	@$(BIN)/python -m tests.verify --grid quick --seeds 2 $(ARGS)

bench: $(SETUP) ## Times and memory against their goals: every mix of sources at 1,024 to 200,000 HCAs, a replica, an agent, placements
	@$(BIN)/python -m tests.bench.sources $(ARGS)
	@$(BIN)/python -m tests.bench.hostile
	@$(BIN)/python -m tests.bench.hostile_reports
	@$(BIN)/python -m tests.bench.agent_at_rest
	@$(BIN)/python -m tests.bench.cluster
	@$(BIN)/python -m tests.bench.placing
	@$(BIN)/python -m tests.bench.gangs
	@$(BIN)/python -m tests.bench.rpc

# Of each parser.
SECONDS ?= 20
fuzz: $(SETUP) .venv/.fuzz ## Fuzz every parser, SECONDS=20 each; ARGS="--keep lldpdu" for one
	@$(BIN)/python -m tests.fuzz --seconds $(SECONDS) $(ARGS)

.venv/.fuzz: requirements/fuzz.txt $(SETUP)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/fuzz.txt
	@touch $@

docs: .venv/.docs ## Build the site and the man pages in build/docs; a broken link fails
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b dirhtml docs build/docs/site
	@$(BIN)/sphinx-build --quiet --fail-on-warning -b man docs build/docs/man
	@echo "build/docs/site/index.html and build/docs/man"

screenshots: $(SETUP) ## Draw each view of the page in Chromium, and record the first commands, for the docs
	@$(BIN)/python -m tests.lab.page.screenshots
	@$(BIN)/python -m tests.docs.recording

.venv/.docs: requirements/docs.txt $(SETUP)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

referee: .venv/referee/.setup ## Prove the kept optima of batches anew with CP-SAT, minutes; ARGS=--draw draws them
	@.venv/referee/bin/python tools/referee $(ARGS)

# An environment of its own: the solver wants an older protobuf than the product.
.venv/referee/.setup: requirements/referee.txt $(SETUP)
	@$(PYTHON) -m venv .venv/referee
	@.venv/referee/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/referee.txt
	@touch $@

referee-live: $(SETUP) ## Compare the engine with real schedulers, 25 minutes; ARGS="--nodes 64" for 5
	@$(BIN)/python -m tests.live $(ARGS)

quality: $(SETUP) ## Measure the placements of every preset and live scheduler, 25 minutes; ARGS=--write
	@$(BIN)/python -m tests.quality $(ARGS)

golden: $(SETUP) ## Run all tests, or ARGS=FILES, and rewrite their expected files; review the diff
	@$(PYTEST) --golden $(ARGS)

proto: $(SETUP) ## Regenerate the gRPC code from its proto files
	@PATH="$(CURDIR)/$(BIN):$$PATH" tools/proto

proto-check: $(SETUP) ## Fail where the generated gRPC code differs from its proto files
	@PATH="$(CURDIR)/$(BIN):$$PATH" tools/proto --check

proto-lint: ## Lint the proto files with buf: 3 minutes for the first time (Go 1.26)
	@tools/proto-lint

lock: $(SETUP) ## Rewrite requirements/ from pyproject.toml; UPGRADE=1 takes newer versions
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/lock.txt
	@PATH="$(CURDIR)/$(BIN):$$PATH" tools/lock $(if $(UPGRADE),--upgrade)

lab-deps: ## Install what the lab tests need (Debian, Ubuntu; root)
	@tools/lab-deps

kube-assets: ## Build what the API-server lab runs: 15 to 35 minutes, once (Go 1.26)
	@tools/kube-assets

live-schedulers: ## Build Kueue's manager and Volcano's scheduler, for make referee-live (Go 1.26)
	@tools/kube-assets kueue volcano
	@tools/kube-assets --newer

chart-tools: ## Provide what checks the chart: 4 to 10 minutes, once (Go 1.26)
	@tools/chart-tools

manifests: ## Render daemonset/manifests/ from the chart, and copy the CRDs into it
	@tools/manifests

image: $(SETUP) ## Build the images for amd64 and arm64 (root); ARGS=--archives also as files
	@tools/images $(ARGS)

wheel: $(SETUP) ## Build dist/toponaut-*.whl
	@$(BIN)/hatchling build -t wheel

clean: ## Remove caches and what was built; .venv stays
	@rm -rf build dist demo-out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find agent generator runtime topology tests -name __pycache__ -type d -prune -exec rm -rf {} +
