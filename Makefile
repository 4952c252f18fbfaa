# Two commands do everything on a machine that has Python, make and git: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= auto

.PHONY: demo test venv bench lint clean
.DEFAULT_GOAL := demo

demo: venv           ## what zoomrank does, in half a minute
	$(BIN)/zoomrank demo

test: venv lint      ## every check that guards main
	$(BIN)/pytest -n $(WORKERS)

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

venv: .venv/.ready

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; v = sys.version_info[:2]; (3, 11) <= v <= (3, 13) or sys.exit("zoomrank needs Python 3.11 to 3.13; this is %d.%d. Try: make PYTHON=python3.12 ..." % v)'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
