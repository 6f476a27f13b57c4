# Two commands do everything from a fresh clone: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA_DIR ?= data
DEMO := runs/demo

.PHONY: help install demo test check results-exact clean

help:
	@echo "make demo           install, precompute, train on the embedded graph, show what it does not know"
	@echo "make test           install and run all tests"
	@echo "make check          install and run ruff and mypy"
	@echo "make results-exact  reproduce the table of docs/results.md (DATA_DIR=$(DATA_DIR))"
	@echo "make clean          remove the virtual environment and the demo's output"

install: $(VENV)/installed

# The constraints file pins the tested versions; a changed requirement installs again.
$(VENV)/installed: pyproject.toml constraints.txt
	@echo "installing into $(VENV), which takes a minute or two ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: install
	$(BIN)/python -m precompute --dataset synthetic --k 32 --out $(DEMO)/store --overwrite
	OMP_NUM_THREADS=1 $(BIN)/torchrun --standalone --nproc_per_node 2 launch/train.py --dataset synthetic --mode minibatch --ppr $(DEMO)/store --out $(DEMO)/run --overwrite
	@echo "open $(DEMO)/run/report.html to see which nodes the model does not know, and why"

test: install
	$(BIN)/python -m pytest -n auto

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

results-exact: install
	$(BIN)/python benchmarks/results_exact.py --data-dir $(DATA_DIR) --write docs/results.md

clean:
	rm -rf $(VENV) $(DEMO)
