"""Which nodes should be labelled next, so that accuracy and detection gain most?

    python benchmarks/label_next.py --datasets CoraML,CiteSeer --data-dir DIR --values FILE
        [--seeds 5] [--counts 20,50,100] [--epochs E] [--strategies A,B]

A GPN+ is trained, each strategy chooses nodes to label by its prediction, and the model is trained
again with their labels. Candidates are a random half of the test nodes of known classes, and
accuracy is measured on the other half. That is done once with all classes, for accuracy, and once
with left-out classes, for the AUC-ROC of p_known on them. A seed is a split and an initialisation.
--values gets a line for every training, and trainings that the file has are not made again, so that
an interrupted study continues where it was.

Prints a Markdown table per graph: means over seeds with standard errors, in percent.
"""

import argparse
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpn_scale.cli.evaluate_options import split_datasets
from gpn_scale.config import RunConfig, override
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.data.splits import LEFT_OUT_MARK, prepare_graph
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.metrics import accuracy, auroc
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.recipes import LEFT_OUT_CLASSES, paper_dataset, recipe_for
from gpn_scale.triage.label_next import label_next
from gpn_scale.triage.trust import trust_of

BEFORE = "before"
"""Name of the training without further labels."""
Array = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Case:
    """A trained model, and the nodes that may be labelled and that are measured."""

    graph: Graph
    config: RunConfig
    prediction: Prediction
    candidates: NodeIds
    measured: NodeIds
    rng_seed: int

    def top(self, score_N: Array, count: int) -> NodeIds:
        """Return the candidates with the largest scores."""
        order = np.argsort(-score_N[self.candidates], kind="stable")
        return np.asarray(self.candidates[order[:count]])

    def covering(
        self,
        uncertainty_N: Array,
        count: int,
        *,
        full: float | None = None,
        factor_N: Array | None = None,
    ) -> NodeIds:
        """Return the candidates that cover most uncertainty."""
        return label_next(
            self.graph,
            self.config.diffusion,
            uncertainty_N,
            count,
            candidates=self.candidates,
            full=full,
            factor_N=factor_N,
        ).node

    def own_and_covering(self, uncertainty_N: Array, count: int) -> NodeIds:
        """Return candidates that are uncertain themselves and cover most uncertainty."""
        return self.covering(uncertainty_N, count, factor_N=uncertainty_N)

    @property
    def unknown(self) -> Array:
        """1 - p_known of all nodes."""
        assert self.prediction.p is not None
        return 1.0 - self.prediction.p.known


def _random(case: Case, count: int) -> NodeIds:
    order = np.random.default_rng(case.rng_seed).permutation(case.candidates)
    return np.asarray(order[:count])


STRATEGIES: Mapping[str, Callable[[Case, int], NodeIds]] = {
    "random": _random,
    "aleatoric": lambda case, count: case.top(case.prediction.aleatoric, count),
    "epistemic": lambda case, count: case.top(case.prediction.epistemic, count),
    "1 - p_known": lambda case, count: case.top(case.unknown, count),
    "1 - trust": lambda case, count: case.top(1 - trust_of(case.prediction), count),
    "coverage": lambda case, count: case.covering(np.ones(case.graph.num_nodes), count),
    "coverage x (1 - trust)": lambda case, count: case.covering(
        1 - trust_of(case.prediction), count
    ),
    "coverage x (1 - probability)": lambda case, count: case.covering(
        1 + case.prediction.aleatoric, count
    ),
    "coverage x (1 - p_known)": lambda case, count: case.covering(case.unknown, count),
    "own x coverage x (1 - trust)": lambda case, count: case.own_and_covering(
        1 - trust_of(case.prediction), count
    ),
    "own x coverage x (1 - probability)": lambda case, count: case.own_and_covering(
        1 + case.prediction.aleatoric, count
    ),
    "coverage x (1 - trust), plain weights": lambda case, count: case.covering(
        1 - trust_of(case.prediction), count, full=1.0
    ),
}
"""Strategies by name; each returns so many candidates, the first one first."""


@dataclass(frozen=True, slots=True)
class Key:
    """One training."""

    dataset: str
    seed: int
    left_out: bool
    strategy: str
    count: int


Values = dict[Key, float]
"""Accuracy, or the AUC-ROC of left-out classes, of each training."""


def main() -> None:
    """Make all trainings that are missing, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--datasets",
        default="synthetic:nodes=2000,classes=6,unseen_classes=0",
        help="names of graphs, with commas",
    )
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds (default: 5)")
    parser.add_argument("--counts", default="20,50,100", help="numbers of labels (20,50,100)")
    parser.add_argument("--strategies", help=f"of {', '.join(STRATEGIES)} (default: all)")
    parser.add_argument("--left-out-classes", type=int, help="number (default: the paper's, or 2)")
    parser.add_argument("--epochs", type=int, help="maximum number; default: the recipe's")
    parser.add_argument("--values", type=Path, required=True, help="JSON lines of all trainings")
    options = parser.parse_args()
    names = list(STRATEGIES) if options.strategies is None else options.strategies.split(",")
    counts = [int(count) for count in options.counts.split(",")]
    values = stored(options.values)
    datasets = list(split_datasets(options.datasets))
    for dataset in datasets:
        graph = load_graph(dataset, options.data_dir)
        for seed in range(1, options.seeds + 1):
            for left_out in (False, True):
                measure(graph, dataset, seed, left_out, names, counts, options, values)
    for dataset in datasets:
        print("\n".join(table(dataset, names, counts, values)))


def measure(
    graph: Graph,
    dataset: str,
    seed: int,
    left_out: bool,
    names: list[str],
    counts: list[int],
    options: argparse.Namespace,
    values: Values,
) -> None:
    """Make the trainings of a graph, a seed and a setting that are missing."""
    keys = [Key(dataset, seed, left_out, name, count) for name in names for count in counts]
    keys.append(Key(dataset, seed, left_out, BEFORE, 0))
    if all(key in values for key in keys):
        return
    case = trained_case(graph, dataset, seed, left_out, options)
    store(options.values, keys[-1], measured(case, case.prediction, left_out), values)
    for name in names:
        chosen = STRATEGIES[name](case, max(counts))
        for count in counts:
            key = Key(dataset, seed, left_out, name, count)
            if key not in values:
                prediction = labelled_prediction(case, chosen[:count])
                store(options.values, key, measured(case, prediction, left_out), values)


def trained_case(
    graph: Graph, dataset: str, seed: int, left_out: bool, options: argparse.Namespace
) -> Case:
    """Train the first model, and divide the test nodes."""
    changes = [("split.rng_seed", f"{seed}"), ("train.rng_seed", f"{seed}")]
    if options.epochs is not None:
        changes.append(("train.epochs", f"{options.epochs}"))
    if left_out:
        default = LEFT_OUT_CLASSES.get(paper_dataset(dataset) or "", 2)
        changes.append(("data.left_out_classes", f"{options.left_out_classes or default}"))
    config = override(recipe_for(dataset, graph), changes)
    graph = prepare_graph(graph, config)
    assert graph.split is not None
    known = np.setdiff1d(graph.split.test, graph.marked)
    known = np.random.default_rng(seed).permutation(known)
    prediction = GPNClassifier(config, device="cpu").fit(graph).predict(graph)
    halves = np.sort(known[::2]), np.sort(known[1::2])
    return Case(graph, config, prediction, *halves, rng_seed=seed)


def labelled_prediction(case: Case, nodes: NodeIds) -> Prediction:
    """Return the prediction of a model that is trained with the labels of `nodes` as well."""
    split = case.graph.split
    assert split is not None
    more = replace(
        split, train=np.union1d(split.train, nodes), test=np.setdiff1d(split.test, nodes)
    )
    graph = case.graph.with_split(more)
    return GPNClassifier(case.config, device="cpu").fit(graph).predict(graph)


def measured(case: Case, prediction: Prediction, left_out: bool) -> float:
    """Return the accuracy, or with left-out classes the AUC-ROC of p_known."""
    if not left_out:
        rows = prediction.probabilities[case.measured]
        return accuracy(rows, case.graph.labels[case.measured])
    assert prediction.p is not None
    unknown = case.graph.marks[LEFT_OUT_MARK]
    nodes = np.concatenate([case.measured, unknown])
    return auroc(np.arange(len(nodes)) >= len(case.measured), -prediction.p.known[nodes])


def stored(path: Path) -> Values:
    """Return the trainings that the file has; a line that was cut off is left out."""
    values: Values = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            *facts, value = json.loads(line)
            values[Key(*facts)] = value
        except ValueError:
            continue
    return values


def store(path: Path, key: Key, value: float, values: Values) -> None:
    """Keep the value of a training, here and in the file."""
    values[key] = value
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    # A line that an interruption has cut off gets an end of its own.
    end = "" if not text or text.endswith("\n") else "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{end}{json.dumps([*astuple(key), value])}\n")


def table(dataset: str, names: list[str], counts: list[int], values: Values) -> list[str]:
    """Return the lines of a graph's table."""
    seeds = sorted({key.seed for key in values if key.dataset == dataset})
    heads = [f"{what}, {count} labels" for what in ("accuracy", "left-out") for count in counts]
    counted = "1 seed" if len(seeds) == 1 else f"{len(seeds)} seeds"
    lines = [f"## {dataset}, {counted}", "", f"| strategy | {' | '.join(heads)} |"]
    lines.append("|" + "---|" * (1 + len(heads)))
    for name in (BEFORE, *names):
        cells = []
        for left_out in (False, True):
            for count in counts:
                wanted = 0 if name == BEFORE else count
                keys = [Key(dataset, seed, left_out, name, wanted) for seed in seeds]
                cells.append(_cell([values[key] for key in keys if key in values]))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def _cell(numbers: list[float]) -> str:
    if len(numbers) < 2:
        return f"{100 * numbers[0]:.1f}" if numbers else ""
    error = float(np.std(numbers, ddof=1)) / math.sqrt(len(numbers))
    return f"{100 * float(np.mean(numbers)):.1f} ± {100 * error:.1f}"


if __name__ == "__main__":
    main()
