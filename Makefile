# Two commands do everything on a machine that has Python, make and git: `make demo` and `make test`.
# Tests have two tiers: `make test` takes minutes; `make test-all` adds those that are marked `full`.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= auto

# Exact versions, except on Python 3.10, which many packages have left behind: there pip chooses. Errors are shown;
# warnings would be about the package index.
PINNED = import sys; sys.version_info < (3, 11) or print("--constraint constraints.txt")
INSTALL = $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check $$($(BIN)/python -c '$(PINNED)')

# Workers take tests from each other: what is left at the end is shared, and modules stay together until then.
PYTEST = $(BIN)/pytest -n $(WORKERS) --dist worksteal --durations=20

.PHONY: demo test test-full test-all dist bench lint venv kernels clean
.DEFAULT_GOAL := demo

demo: .venv/.ready-demo  ## what zoomrank does, in half a minute
	@$(BIN)/zoomrank demo
	@echo
	@echo 'In this folder, before all of that: . $(BIN)/activate'

test: venv           ## checks of minutes: lint, types, units, the service on SQLite, what stores must do
	@$(MAKE) --no-print-directory --jobs=2 lint kernels  # beside each other: compiling leaves a core idle at its end
	$(PYTEST) -m 'not full'

test-full: venv kernels  ## the rest: kills, both stores, every page in a browser, Ray, wheel, site, deployment, long seeds
	$(PYTEST) -m full

test-all: test test-full  ## every check that guards main

kernels: venv        ## kernels that most tests need, compiled once before workers start
	@$(BIN)/zoomrank compile

dist: venv           ## what would be published, in dist/, checked
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m tools.check_dist dist

bench: venv          ## every number in docs/benchmarks.md
	$(BIN)/python -m research bench

.PHONY: docs
docs: venv           ## the documentation, in site/: open site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.lint_words

venv: .venv/.ready   ## everything, also what tests need

# The demo needs four packages; tests need a hundred. hatchling stays in .venv, so that nothing is built with
# unpinned versions. Packages are compiled to bytecode for tests only, on all cores: the demo imports few modules.
.venv/.ready-demo: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v >= (3, 10) or sys.exit("zoomrank needs Python 3.10 or newer; this is %d.%d. Try: make PYTHON=python3.12 ..." % v)'
	@echo 'Installing NumPy, SciPy and Numba into .venv: half a minute, once.'
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	@$(INSTALL) --no-compile hatchling editables
	@$(INSTALL) --no-compile --no-build-isolation --editable .
	@touch $@

.venv/.ready: .venv/.ready-demo
	@echo 'Installing everything that tests need into .venv: a few minutes, once.'
	@$(INSTALL) --no-compile --no-build-isolation --editable '.[dev]'
	@$(BIN)/python -m compileall -q -q -j 0 .venv/lib || true  # packages have files that are for other Pythons
	@touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist
