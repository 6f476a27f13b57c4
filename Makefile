# Two commands do everything from a fresh clone: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA_DIR ?= data
DEMO := runs/demo
MATRIX := runs/paper
PAPER := $(if $(PAPER_DIR),--paper $(PAPER_DIR))
EVALUATE := --processes $(shell nproc) --data-dir $(DATA_DIR) $(PAPER) --out $(MATRIX)
TASKS := clean,misclassification,isolated,left-out-classes
COMPARED := LP,GKDE,VGCN,APPNP,RGCN,DropEdge,VGCN-Dropout,VGCN-Energy,GKDE-GCN,VGCN-BNN,VGCN-Ensemble,Matern-GGP,GPN

.PHONY: help install demo test check results comparison clean

help:
	@echo "make demo           install, precompute, train on the embedded graph, show what it does not know"
	@echo "make test           install and run all tests"
	@echo "make check          install and run ruff and mypy"
	@echo "make results        train the matrix of docs/results.md and write it (DATA_DIR=$(DATA_DIR) PAPER_DIR=...)"
	@echo "make comparison     train the paper's comparison models and write docs/comparison.md (the same)"
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

# Finished runs are kept: stopped at any moment, the same call goes on. The ablation shares GPN's runs.
results: install
	$(BIN)/python launch/evaluate.py --experiment ablation --datasets CoraML --models GPN --splits 5 --inits 2 $(EVALUATE)
	$(BIN)/python launch/evaluate.py --experiment all --datasets CoraML,CiteSeer,AmazonPhotos,CoauthorCS --models GPN,GPN-minibatch --splits 5 --inits 2 $(EVALUATE)
	$(BIN)/python benchmarks/results_paper.py --matrix $(MATRIX) $(PAPER) --write docs/results.md
	$(BIN)/python benchmarks/paper_readings.py --matrix $(MATRIX) --data-dir $(DATA_DIR) $(PAPER) --write docs/results.md

# GGP stays on CoraML: the paper's did not finish on larger graphs either.
comparison: install
	$(BIN)/python launch/evaluate.py --experiment $(TASKS) --datasets CoraML --models $(COMPARED),GGP --splits 3 --inits 2 $(EVALUATE)
	$(BIN)/python launch/evaluate.py --experiment $(TASKS) --datasets AmazonPhotos --models $(COMPARED) --splits 2 --inits 1 $(EVALUATE)
	$(BIN)/python benchmarks/results_models.py --matrix $(MATRIX) $(PAPER) --write docs/comparison.md

clean:
	rm -rf $(VENV) $(DEMO)
