"""Tiny jobs of every kind with fixed seeds, and what they compute.

All that touches names and interfaces of the library stands in the first part of this file. Where
names within files change, such as those of tensors, `RECORDED_NAMES` leads from the new names to
the recorded ones.
"""

import contextlib
import io
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow.parquet import read_table
from safetensors.numpy import load_file

from gpn_scale.cli.evaluate import main as evaluate_main
from gpn_scale.cli.train import main as train_main
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import prepare_graph
from gpn_scale.estimator import GPNClassifier
from precompute.cli import main as precompute_main
from tests.cli.test_torchrun import finished, torchrun
from tests.precompute.test_mpi import MPIEXEC, REPOSITORY

Results = dict[str, Any]
"""Of one job: arrays, and single numbers, by name."""

# ---- Interfaces: what a redesign changes ---------------------------------------------------------

RECORDED_NAMES: dict[str, str] = {}
"""Pattern in names of today's arrays, columns and metrics -> what the record has in its place."""

GRAPH = "synthetic:nodes=300,classes=3,features=8,separation=2"
KNOWN_CLASSES_GRAPH = GRAPH + ",unseen_classes=0"
RIVALS = ("LP", "APPNP", "VGCN-Energy", "PPRGo")

STORE_OPTIONS = {
    "sweep": ["--method", "sweep", "--steps", "inf", "--k", "12", "--clusters", "4"],
    "push": ["--method", "push", "--steps", "inf", "--k", "24", "--clusters", "4"],
    "steps": ["--steps", "10", "--k", "8", "--clusters", "4"],
    "two-ranks": ["--steps", "inf", "--k", "12", "--clusters", "5", "--normalisation", "rw"],
}
PUSHED_ROOTS = (0, 3, 42, 77, 150, 151, 299)
TRAIN_OPTIONS = [
    "--dataset",
    GRAPH,
    "--threads",
    "1",
    "--epochs",
    "15",
    "--device",
    "cpu",
]
BATCH_OPTIONS = ["--set", "minibatch.batch_size=8", "--set", "minibatch.tail_nodes=64"]
BATCH_OPTIONS += ["--set", "train.schedule=constant", "--set", "opinion.schedule=constant"]
EVALUATE_OPTIONS = ["--datasets", KNOWN_CLASSES_GRAPH, "--splits", "1", "--inits", "1"]
EVALUATE_OPTIONS += ["--experiment", "clean,left-out-classes,isolated", "--left-out-classes", "1"]
EVALUATE_OPTIONS += ["--set", "train.epochs=15", "--threads", "1"]


def build_store(kind: str, store: Path, threads: int) -> None:
    """Builds one of `STORE_OPTIONS` by the command line, `two-ranks` under mpiexec."""
    options = ["--dataset", GRAPH, "--out", str(store), "--threads", str(threads)]
    options += STORE_OPTIONS[kind]
    if kind == "push":
        roots = store.parent / "roots.txt"
        roots.write_text("".join(f"{root}\n" for root in PUSHED_ROOTS))
        options += ["--roots", str(roots)]
    if kind != "two-ranks":
        run_main(precompute_main, options)
        return
    command = [str(MPIEXEC), "-n", "2", sys.executable, "-m", "precompute", *options]
    environment = os.environ | {"NUMBA_NUM_THREADS": str(threads)}
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, capture_output=True)


def store_arrays(store: Path) -> Results:
    """Every array of every shard, and the arrays beside the shards."""
    results: Results = {
        recorded_name(path.stem): np.load(path) for path in sorted(store.glob("*.npy"))
    }
    for path in sorted(store.glob("shard-*.ppr")):
        content = path.read_bytes()
        data = 8 + int.from_bytes(content[:8], "little")
        for name, place in json.loads(content[8:data])["arrays"].items():
            dtype, shape, start = np.dtype(place["dtype"]), place["shape"], data + place["offset"]
            array = np.frombuffer(content, dtype, math.prod(shape), start)
            results[f"{path.stem} {recorded_name(name)}"] = array.reshape(shape)
    return results


def train(kind: str, run: Path, store: Path | None) -> None:
    """Trains GPN in the mode `exact` or `minibatch`, or with `two-ranks` in minibatches of both.

    `plus` and `plus-minibatch` train GPN+.
    """
    model = "GPN+" if kind.startswith("plus") else "GPN"
    options = [*TRAIN_OPTIONS, "--model", model, "--out", str(run)]
    if store is not None:
        options += ["--mode", "minibatch", "--ppr", str(store), *BATCH_OPTIONS]
    if kind == "two-ranks":
        code, _, errors = finished(torchrun(*options))
        if code:
            raise RuntimeError(errors)
    else:
        run_main(train_main, options)


def run_results(run: Path) -> Results:
    """Weights, predictions of all nodes, and metrics of a training."""
    results: Results = {}
    for name, tensor in load_file(run / "model.safetensors").items():
        results[f"tensor {recorded_name(name)}"] = tensor
    table = read_table(run / "predictions.parquet")
    for name in table.column_names:
        column = table[name].to_numpy()
        if column.dtype == object or table[name].null_count:  # texts, or labels that may be absent
            column = np.array([str(value) for value in table[name].to_pylist()])
        results[f"column {recorded_name(name)}"] = column
    report = json.loads((run / "report.json").read_text())
    for section in ("epochs", "best_epoch", "metrics", "ood"):
        results |= flat_metrics(report[section], recorded_name(section))
    return results


def evaluate(model: str, matrix: Path) -> None:
    """Runs the cells of one model of an evaluation matrix."""
    run_main(evaluate_main, [*EVALUATE_OPTIONS, "--models", model, "--out", str(matrix)])


def cell_metrics(model: str, matrix: Path) -> Results:
    """The metrics of all cells of one model, by experiment."""
    results: Results = {}
    for cell in sorted((matrix / "cells").rglob("*.json")):
        if model in cell.parts:
            for experiment, metrics in json.loads(cell.read_text())["results"].items():
                results |= flat_metrics(metrics, experiment)
    return results


def load_model(run: Path) -> tuple[GPNClassifier, Graph]:
    """The saved classifier of a run, and the graph of its training with the run's split."""
    classifier = GPNClassifier.load(run / "model.safetensors", device="cpu")
    return classifier, prepare_graph(load_graph(GRAPH, Path("data")), classifier.config)


def predict_all(run: Path, store: Path) -> Results:
    """Predictions of all nodes by exact diffusion."""
    del store
    classifier, graph = load_model(run)
    return prediction_arrays(classifier.predict(graph))


def predict_rows(run: Path, store: Path) -> Results:
    """Predictions of some nodes from stored rows: intervals and contributors included."""
    classifier, graph = load_model(run)
    nodes = np.array([5, 0, 17, 5, 120, 299])
    rows = classifier.predict_nodes(graph, nodes, store, explain=3)
    assert rows.contributors is not None
    return {
        **prediction_arrays(rows.prediction),
        "alpha_0_lower": rows.alpha_0_lower,
        "alpha_0_upper": rows.alpha_0_upper,
        "contributor": rows.contributors.node,
        "contributor_share": rows.contributors.share,
        "contributor_weight": rows.contributors.weight,
        "contributor_class": rows.contributors.leading_class,
        "tail_share": rows.contributors.tail_share,
    }


def predict_new(run: Path, store: Path) -> Results:
    """Predictions of nodes that join the graph, one of them next to another."""
    del store
    classifier, graph = load_model(run)
    assert isinstance(graph.features, np.ndarray)
    features = graph.features[[3, 200]] + np.float32(0.1)
    neighbours = [[0, 7, 7], [graph.num_nodes, 12]]
    new = classifier.predict_new(graph, features, neighbours, tolerance=1e-3)
    return {
        **prediction_arrays(new.prediction),
        "alpha_0_lower": new.alpha_0_lower,
        "alpha_0_upper": new.alpha_0_upper,
    }


def prediction_arrays(prediction: Any) -> Results:
    """The arrays that a prediction holds."""
    return {
        "probabilities": prediction.probabilities,
        "probabilities_no_network": prediction.probabilities_no_network,
        "alpha_0": prediction.alpha_0,
        "alpha_0_no_network": prediction.alpha_0_no_network,
    }


# ---- Jobs ----------------------------------------------------------------------------------------


class Workshop:
    """Runs jobs in a folder; stores and trainings that several jobs need are made once.

    Args:
        folder: Where all that the jobs write goes.
        threads: Of each process that builds a store; training always has one.
    """

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self.folder = folder
        self.threads = threads

    def store(self, kind: str) -> Path:
        """A store of `STORE_OPTIONS`."""
        path = self.folder / f"store-{kind}"
        if not path.exists():
            build_store(kind, path, self.threads)
        return path

    def run(self, kind: str) -> Path:
        """The directory of a training."""
        path = self.folder / f"run-{kind}"
        if not path.exists():
            train(kind, path, None if kind in ("exact", "plus") else self.store("steps"))
        return path

    def results(self, job: str) -> Results:
        """What one of `JOBS` computes."""
        return JOBS[job](self)


def prediction_job(predict: Callable[[Path, Path], Results]) -> Callable[[Workshop], Results]:
    """A job that asks the same of the exactly trained model and of the one of minibatches."""

    def predict_of_both(workshop: Workshop) -> Results:
        return {
            f"{mode} {name}": value
            for mode in ("exact", "minibatch")
            for name, value in predict(workshop.run(mode), workshop.store("steps")).items()
        }

    return predict_of_both


def evaluation_job(model: str) -> Callable[[Workshop], Results]:
    """A job of one model's cells."""

    def metrics_of_cells(workshop: Workshop) -> Results:
        evaluate(model, workshop.folder / "matrix")
        return cell_metrics(model, workshop.folder / "matrix")

    return metrics_of_cells


JOBS: dict[str, Callable[[Workshop], Results]] = {
    **{f"store-{kind}": lambda w, k=kind: store_arrays(w.store(k)) for kind in STORE_OPTIONS},
    **{
        f"train-{kind}": lambda w, k=kind: run_results(w.run(k))
        for kind in ("exact", "minibatch", "two-ranks", "plus", "plus-minibatch")
    },
    "predict-all": prediction_job(predict_all),
    "predict-rows": prediction_job(predict_rows),
    "predict-new": prediction_job(predict_new),
    **{f"evaluate-{model}": evaluation_job(model) for model in ("GPN", "GPN+", *RIVALS)},
}


def run_main(main: Callable[[Sequence[str]], int], options: Sequence[str]) -> None:
    """Calls an entry point in this process and keeps its messages for the case of an error."""
    messages = io.StringIO()
    with contextlib.redirect_stdout(messages), contextlib.redirect_stderr(messages):
        code = main(options)
    if code:
        raise RuntimeError(messages.getvalue())


def recorded_name(name: str) -> str:
    """What the record calls an array, column or metric of today's files."""
    for pattern, recorded in RECORDED_NAMES.items():
        name = re.sub(pattern, recorded, name)
    return name


def flat_metrics(metrics: Any, prefix: str) -> Results:
    """Nested metrics by the path that leads to each of them."""
    if not isinstance(metrics, Mapping):
        return {prefix: metrics}
    results: Results = {}
    for name, value in metrics.items():
        results |= flat_metrics(value, f"{prefix} {recorded_name(name)}")
    return results
