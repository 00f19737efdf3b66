# The words of the work. Everything lives in .venv beside this file; nothing else is touched.

PYTHON ?= python3

PIP := .venv/bin/python -m pip
INSTALL := $(PIP) install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test check bench sanitize format clean

help: ## show these words
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

demo: .venv/runtime.stamp ## set up, then train, score and use a small model
	.venv/bin/unrolled demo

test: .venv/dev.stamp ## run every test
	.venv/bin/python -m pytest

check: .venv/dev.stamp ## format, lint, types, architecture
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy --strict src/unrolled
	.venv/bin/python -m pytest -q tests/test_architecture.py

bench: .venv/runtime.stamp ## run every benchmark
	@set -e; for file in $(sort $(wildcard benchmarks/*.py)); do \
	  echo "== $$file"; .venv/bin/python "$$file" || [ $$? -eq 2 ]; \
	done # those that need a corpus say so and exit with 2

sanitize: ## run the C++ tests under the sanitisers
	csrc/tests/run.sh build/sanitize

format: .venv/dev.stamp ## format the code and mend what ruff can mend
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

clean: ## remove .venv and every cache
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# torch first and alone: with it in place, no other package can ask for a CUDA build.
.venv/torch.stamp: constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) torch
	touch $@

.venv/runtime.stamp: .venv/torch.stamp pyproject.toml
	$(INSTALL) --editable '.[demo]'
	touch $@

.venv/dev.stamp: .venv/torch.stamp pyproject.toml
	$(INSTALL) --editable '.[dev]'
	touch .venv/runtime.stamp $@
