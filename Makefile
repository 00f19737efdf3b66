# The words of the work. Everything lives in .venv beside this file; nothing else is touched.

PYTHON ?= python3
# torch without CUDA comes from here; with none given, from PyPI alone
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
# tests of one thread each, several at a time; those of a file stay together
PYTEST := .venv/bin/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test quick test-portable fuzz check bench sanitize settings format clean rows

help: ## show these words
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

demo: .venv/runtime.stamp ## set up, then train, score and use a small model
	.venv/bin/unrolled demo

test: .venv/dev.stamp ## run every test
	$(PYTEST)

quick: .venv/dev.stamp ## run all but the longest tests: under a minute
	$(PYTEST) -m 'not trains and not slow'

test-portable: .venv/dev.stamp ## run what depends on arithmetic as on other machines
	tools/test-portable.sh

fuzz: .venv/dev.stamp ## hunt for tracebacks: N cases of each kind, from SEED on
	.venv/bin/python tests/faults/fuzz.py $(or $(N),500) $(or $(SEED),0)

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

rows: .venv/runtime.stamp ## write docs/notes.md anew, and print what of the notes is not shown yet
	.venv/bin/python tools/rows.py

settings: .venv/runtime.stamp ## write docs/settings.md anew
	.venv/bin/python tools/settings-page.py

format: .venv/dev.stamp ## format the code and mend what ruff can mend
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

clean: ## remove .venv and every cache
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/torch.stamp: constraints.txt
	@PYTHON='$(PYTHON)' TORCH_INDEX='$(TORCH_INDEX)' tools/set-up.sh torch
	@touch $@

.venv/runtime.stamp: .venv/torch.stamp pyproject.toml
	@tools/set-up.sh runtime
	@touch $@

.venv/dev.stamp: .venv/runtime.stamp
	@tools/set-up.sh dev
	@touch $@
