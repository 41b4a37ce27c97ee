# Two commands do everything: make demo, make test. Nothing is installed again while these files stay as they are.
PYTHON ?= python3
VENV := .venv
OUT := runs/digits
RUN := $(VENV)/bin
INSTALL := PIP_CONSTRAINT=constraints.txt $(RUN)/pip install --disable-pip-version-check --quiet --constraint constraints.txt

# Compiled modules are kept, also where the environment says otherwise: every command of a test would compile them again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-slow sanitize lint format bench docs sbom clean

demo: $(VENV)/.installed
	$(RUN)/wonderland fit digits --out $(OUT)

test: $(VENV)/.installed-test lint
	OMP_NUM_THREADS=1 $(RUN)/python -m pytest -n 2 --dist worksteal

test-slow: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 $(RUN)/python -m pytest -m slow -n 2 --dist worksteal

# Every C++ kernel under the address and undefined behaviour sanitizers; part of test-slow too.
sanitize: $(VENV)/.installed-test
	OMP_NUM_THREADS=3 $(RUN)/python -m tests.ops.sanitize

lint: $(VENV)/.installed-test
	$(RUN)/ruff check --quiet .
	$(RUN)/ruff format --quiet --check .
	$(RUN)/pyright

format: $(VENV)/.installed-test
	$(RUN)/ruff check --fix --quiet .
	$(RUN)/ruff format --quiet .

bench: $(VENV)/.installed-test
	$(RUN)/python -m bench.tables

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(RUN)/mkdocs build --strict --quiet

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.torch: constraints.txt | $(VENV)/bin/python
	$(INSTALL) torch
	touch $@

$(VENV)/.installed: pyproject.toml constraints.txt $(VENV)/.torch
	$(INSTALL) --editable '.[datasets]'
	touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt $(VENV)/.torch
	$(INSTALL) --editable '.[test]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml constraints.txt $(VENV)/.torch
	$(INSTALL) --editable '.[docs]'
	touch $@

sbom: $(VENV)/.installed-test
	$(RUN)/python -m bench.sbom

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
