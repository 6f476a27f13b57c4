# From a fresh clone, `make demo` and `make test` need nothing but Python.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
OLDEST_TOOLS := altair httpx hypothesis mpich polars pytest torchmetrics
OLDEST_TESTS := tests/baselines tests/cli/test_train.py tests/data tests/evaluation tests/inference tests/models tests/nn tests/page tests/ppr tests/precompute/test_cli.py tests/precompute/test_repair.py tests/precompute/test_update.py tests/serve tests/train tests/triage tests/test_sklearn.py
OLDEST_IGNORED := --ignore tests/page/test_page_browser.py --ignore tests/serve/test_schemas.py
DATA_DIR ?= data
DEMO := runs/demo
RUNS ?= 2000
TRIALS ?= 5000
SEED ?= 1
SECONDS ?= 20
MATRIX := runs/paper
PAPER := $(if $(PAPER_DIR),--paper $(PAPER_DIR))
EVALUATE := --processes $(shell nproc) --data-dir $(DATA_DIR) $(PAPER) --out $(MATRIX)
TASKS := clean,misclassification,isolated,left-out-classes
COMPARED := LP,GKDE,VGCN,APPNP,RGCN,DropEdge,VGCN-Dropout,VGCN-Energy,GKDE-GCN,VGCN-BNN,VGCN-Ensemble,Matern-GGP,GPN
BOARD := runs/leaderboard
BOARD_TASKS := clean,misclassification,isolated,left-out-classes,left-out-false-alarms
BOARD_GRAPHS ?= CoraML,CiteSeer,AmazonPhotos,CoauthorCS
BOARD_MODELS ?= GPN+,GPN+-minibatch,GPN,APPNP,APPNP+GNNSafe,APPNP+GEBM,LP,LOP-GPN,EDL-GCN,CUQ-GNN,VGCN+EPN,VGCN-Energy
BOARD_SPLITS ?= 5
BOARD_SETS ?= 0,1,2,3,4
BOARD_MEASURED ?= benchmarks/results/leaderboard

.PHONY: help install demo test docs gallery test-oldest wheel-test faults hostile machine fuzz check coverage results comparison leaderboard clean

help:
	@echo "make demo           install, precompute, train on the embedded graph, show what the model does not know"
	@echo "make test           install and run all tests"
	@echo "make test-oldest    run a part of the tests with the oldest versions that pyproject.toml admits (PYTHON=python3.11)"
	@echo "make wheel-test     build sdist and wheel, install the wheel into an empty environment, run every command and the README there"
	@echo "make docs           install and build the documentation site into site/ (GALLERY=0: without running the gallery)"
	@echo "make gallery        install and run examples/gallery to notebooks and pictures in build/gallery (ONLY=\"01 05\" for some)"
	@echo "make faults         let every call that changes a file fail, and lose power after each, in all commands"
	@echo "make hostile        try commands with hostile options, files, names and machines (TRIALS=5000 SEED=1)"
	@echo "make machine        try random histories of a store: builds, kills, damage, repairs, readers, writers (RUNS=2000)"
	@echo "make fuzz           let coverage-guided fuzzing look for files that break a reader (SECONDS=20 for each of ten readers)"
	@echo "make check          install and run ruff and mypy"
	@echo "make coverage       install, run all tests and print the covered lines of every package"
	@echo "make results        train the matrix of docs/results.md and write it (DATA_DIR=$(DATA_DIR) PAPER_DIR=...)"
	@echo "make comparison     train the paper's comparison models and write docs/comparison.md (same variables)"
	@echo "make leaderboard    compare all models on five sets of left-out classes and write docs/leaderboard.md (DATA_DIR=...;"
	@echo "                    a part of it: BOARD_MODELS=GPN,APPNP BOARD_GRAPHS=CoraML BOARD_SPLITS=1 BOARD_SETS=0,1)"
	@echo "make clean          remove the virtual environment and the demo's output"

install: $(VENV)/installed

# The constraints file pins the tested versions; changing a requirement installs again.
$(VENV)/installed: pyproject.toml constraints.txt
	@echo "installing into $(VENV), which takes a minute or two ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e ".[dev,docs]"
	@touch $@

demo: install
	$(BIN)/python -m precompute --dataset synthetic --k 32 --out $(DEMO)/store --overwrite
	OMP_NUM_THREADS=1 $(BIN)/torchrun --standalone --nproc_per_node 2 launch/train.py --dataset synthetic --mode minibatch --ppr $(DEMO)/store --out $(DEMO)/run --overwrite
	@echo "open $(DEMO)/run/report.html to see which nodes the model does not know, and why"

test: install
	$(BIN)/python -m pytest -n auto

test-oldest: $(OLDEST)/installed
	OMP_NUM_THREADS=1 NUMBA_CACHE_DIR=$(OLDEST)/numba $(OLDEST)/bin/python -m pytest -m "not slow and not mpi and not ddp" $(OLDEST_TESTS) $(OLDEST_IGNORED)

$(OLDEST)/installed: pyproject.toml constraints-oldest.txt
	@$(PYTHON) -m venv $(OLDEST)
	@$(OLDEST)/bin/python -m pip install -qq --disable-pip-version-check -c constraints-oldest.txt -e ".[all]" $(OLDEST_TOOLS)
	@touch $@

wheel-test: install
	$(BIN)/python -m tests.wheel.clean_environment

# Warnings are errors, and so is whatever would be loaded from another host. The gallery runs while the site is built.
docs: install
	NO_MKDOCS_2_WARNING=1 OMP_NUM_THREADS=1 $(BIN)/python -m mkdocs build --clean
	@echo "open site/index.html"

gallery: install
	$(BIN)/python examples/run_gallery.py $(if $(ONLY),--only $(ONLY))

# Every call of the disk fails in every way, and power is lost after every call; the table goes to standard output.
faults: install
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults.everything

# Exits with 1 and lists all trials that did not end as promised, if there are any.
hostile: install
	OMP_NUM_THREADS=1 PYTHONPATH=. $(BIN)/python benchmarks/hostile_trials.py --trials $(TRIALS) --seed $(SEED)

machine: install
	STORE_MACHINE_RUNS=$(RUNS) $(BIN)/python -m pytest tests/ppr/test_store_machine.py tests/precompute/test_update_machine.py

# The corpus stays in runs/fuzz, so that the next call goes on from there.
fuzz: install
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e ".[fuzz]"
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/fuzz.py --work runs/fuzz --seconds $(SECONDS)

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Kernels count as covered only where Python runs them, so their tests run once without the compiler.
coverage: install
	rm -f .coverage .coverage.*
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n auto -m "not mpi and not slow" --cov --cov-report= tests/precompute
	$(BIN)/python -m pytest -n auto --cov --cov-append --cov-report=
	@for package in gpn_scale/[a-z]*/ precompute/; do \
		printf '%-24s %3s %%\n' "$$package" "$$($(BIN)/coverage report --include="$$package*" --format=total)"; \
	done
	@printf '%-24s %3s %%\n' "gpn_scale/*.py" "$$($(BIN)/coverage report --include='gpn_scale/*.py' --format=total)"
	@printf '%-24s %3s %%\n' "all" "$$($(BIN)/coverage report --format=total)"

# Finished runs are kept, so an interrupted call continues when repeated. The ablation shares GPN's runs.
results: install
	$(BIN)/python launch/evaluate.py --experiment ablation --datasets CoraML --models GPN --splits 5 --inits 2 $(EVALUATE)
	$(BIN)/python launch/evaluate.py --experiment all --datasets CoraML,CiteSeer,AmazonPhotos,CoauthorCS --models GPN,GPN-minibatch --splits 5 --inits 2 $(EVALUATE)
	$(BIN)/python benchmarks/results_paper.py --matrix $(MATRIX) $(PAPER) --write docs/results.md
	$(BIN)/python benchmarks/paper_readings.py --matrix $(MATRIX) --data-dir $(DATA_DIR) $(PAPER) --write docs/results.md

# GGP runs on CoraML only: the paper's did not finish on larger graphs either.
comparison: install
	$(BIN)/python launch/evaluate.py --experiment $(TASKS) --datasets CoraML --models $(COMPARED),GGP --splits 3 --inits 2 $(EVALUATE)
	$(BIN)/python launch/evaluate.py --experiment $(TASKS) --datasets AmazonPhotos --models $(COMPARED) --splits 2 --inits 1 $(EVALUATE)
	$(BIN)/python benchmarks/results_models.py --matrix $(MATRIX) $(PAPER) --write docs/comparison.md

# Trains what the measured cells of the repository and $(BOARD) lack. To train everything again, set BOARD_MEASURED= and remove
# $(BOARD), whose finished cells are kept.
leaderboard: install
	$(BIN)/python launch/evaluate.py --experiment $(BOARD_TASKS) --datasets $(BOARD_GRAPHS) --models $(BOARD_MODELS) --splits $(BOARD_SPLITS) --inits 1 --class-sets $(BOARD_SETS) --own-seeds $(if $(BOARD_MEASURED),--measured $(BOARD_MEASURED)) --processes $(shell nproc) --data-dir $(DATA_DIR) --out $(BOARD)
	$(BIN)/python benchmarks/leaderboard.py --matrix $(BOARD) --write docs/leaderboard.md --page $(BOARD)/leaderboard.html

clean:
	rm -rf $(VENV) $(OLDEST) $(DEMO)
