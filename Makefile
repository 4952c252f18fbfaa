# Two commands do everything on a machine that has Python, make and git: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= auto

# Many packages have left Python 3.10 behind: there pip chooses versions itself.
PINNED = $(shell $(BIN)/python -c 'import sys; sys.version_info < (3, 11) or print("--constraint constraints.txt")')
# Errors are shown; warnings are about somebody else's package index.
INSTALL = $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check $(PINNED)

.PHONY: demo test dist bench lint venv clean
.DEFAULT_GOAL := demo

demo: .venv/.ready-demo  ## what zoomrank does, in half a minute
	@$(BIN)/zoomrank demo
	@echo
	@echo 'In this folder, before all of that: . $(BIN)/activate'

test: venv lint      ## every check that guards main
	$(BIN)/pytest -n $(WORKERS)

dist: venv           ## what would be published, in dist/, checked
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m tools.check_dist dist

bench: venv          ## every number in docs/benchmarks.md
	$(BIN)/python -m bench

.PHONY: docs
docs: venv           ## the documentation, in site/: open site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

venv: .venv/.ready   ## everything, also what tests need

# The demo needs four packages; tests need a hundred. hatchling stays in .venv, so that nothing is built in isolation
# with versions that nobody chose.
.venv/.ready-demo: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v >= (3, 10) or sys.exit("zoomrank needs Python 3.10 or newer; this is %d.%d. Try: make PYTHON=python3.12 ..." % v)'
	@echo 'Installing NumPy, SciPy and Numba into .venv: about half a minute, once.'
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	@$(INSTALL) hatchling editables
	@$(INSTALL) --no-build-isolation --editable .
	@touch $@

.venv/.ready: .venv/.ready-demo
	@echo 'Installing everything that tests need into .venv: a few minutes, once.'
	@$(INSTALL) --no-build-isolation --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist
