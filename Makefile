# `make help` lists the commands. Everything that a fresh machine lacks is set up by the first command that needs it.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
PYTHON ?= python3
PY := .venv/bin/python
CACHE := $(or $(LLM_SERVING_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/llm-serving)
LEVEL ?=
TARGET ?=
STACK ?= dev
OUT ?= rendered/$(STACK)
UV := $(PY) -m uv pip compile --quiet --generate-hashes --python-version 3.11 --no-annotate --no-header --no-emit-index-url --no-emit-find-links
LOCKS := requirements requirements-dev components/weights/staging/requirements policies/requirements sandbox/images/envoy sandbox/images/vllm-router

.PHONY: help
help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/make \1\t\2/' | expand -t 16

.PHONY: up
up: .venv/.ready ## the dev environment, up to an answered request (KUBECONFIG=… uses your own cluster)
	@$(PY) -m sandbox.dev up

.PHONY: down
down: .venv/.ready ## take the dev environment down and leave nothing
	@$(PY) -m sandbox.dev down

.PHONY: test
test: .venv/.ready policies/.venv/.ready ## every check; LEVEL=unit|program|engine|cluster|serving|vendor TARGET=dev|eks-b300 narrow it
	@$(if $(LEVEL)$(TARGET),,$(MAKE) lint)
	@$(if $(filter unit program vendor,$(LEVEL)),,$(PY) -m sandbox.packages && $(PY) -m sandbox.toolchain build && $(PY) -m sandbox.images)
	@$(if $(filter-out vendor,$(LEVEL)),,$(PY) -m sandbox.engine_wheels || echo "test: without the engines' wheels, what reads them counts as not run" >&2)
	@$(PY) -m pytest --numprocesses 2 --dist loadscope --no-loadscope-reorder $(if $(LEVEL)$(TARGET),-m "$(LEVEL)$(if $(and $(LEVEL),$(TARGET)), and )$(subst -,_,$(TARGET))")

.PHONY: lint
lint: .venv/.ready ## form, types, dependencies
	@$(PY) -m pip check
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy --cache-dir $(CACHE)/mypy

.PHONY: render
render: .venv/.ready ## every resource of STACK=NAME as a file in OUT=DIR, without credentials
	@$(PY) -m stacks.render --stack $(STACK) --out $(OUT)

.PHONY: bench
bench: .venv/.ready ## every benchmark, one JSON line each
	@$(PY) -m benchmarks

.PHONY: docs
docs: .venv/.ready ## write the generated parts of the docs anew
	@$(PY) -m docs.generate

.PHONY: graph
graph: .venv/.ready ## a picture of the environment STACK=NAME (Mermaid), drawn from its resources
	@$(PY) -m stacks.graph --stack $(STACK)

.PHONY: lock
lock: .venv/.ready ## resolve every *.in into its hash-locked *.txt
	@for name in $(LOCKS); do echo "$$name.txt"; $(UV) $$name.in --output-file $$name.txt; done

.venv/.ready: requirements-dev.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else f"python3 is {v[0]}.{v[1]}; 3.11 to 3.13 is needed. Say which one: make PYTHON=python3.11 …")'
	@echo "python: making .venv from requirements-dev.txt (about 2 min)" >&2
	@$(PYTHON) -m venv --clear .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-dev.txt
	@touch $@

policies/.venv/.ready: policies/requirements.txt
	@echo "python: making policies/.venv from policies/requirements.txt" >&2
	@$(PYTHON) -m venv --clear policies/.venv
	@policies/.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement policies/requirements.txt
	@policies/.venv/bin/python -m pip check
	@touch $@
