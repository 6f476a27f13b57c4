"""How long does a single new node or a what-if change take, before and with `LivePredictor`?

    python benchmarks/bench_live.py [--nodes 200000] [--classes 40] [--requests 50] [--model FILE]

Without --model, a GPN+ is trained for an epoch on a synthetic graph with hubs; how good it is makes
no difference here. With --model, the model and the graph are those of a finished run. A request is
one new node with 5 random neighbours and the features of a random node, or one existing node
with other features, one edge more and one edge less. Before: `GPNClassifier.predict_new`, and
`build_graph` with `GPNClassifier.predict` of all nodes. After: `LivePredictor` with a mapped table.
Requests take turns in one process. Milliseconds are wall time, and time of the processor for a
machine that does other work. Prints one JSON line.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

RNG_SEED = 1
NEIGHBOURS = 5


def trained_on(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return a classifier and its graph."""
    from gpn_scale.config import RunConfig, TrainConfig
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.data.splits import prepare_graph, stratified_split
    from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
    from gpn_scale.estimator import GPNClassifier

    if options.model is not None:
        classifier = GPNClassifier.load(options.model, device="cpu")
        config = classifier.config
        graph = prepare_graph(load_graph(config.data.dataset, options.data_dir), config)
        return classifier, classifier.aligned(graph).graph
    shape = {"nodes": options.nodes, "classes": options.classes, "degree": options.degree}
    graph = synthetic_graph(SyntheticConfig(**shape, features=128, degree_exponent=2.1))
    graph = stratified_split(graph, train=0.1, val=0.1, rng_seed=RNG_SEED)
    config = RunConfig(train=TrainConfig(epochs=options.epochs))
    classifier = GPNClassifier(config, device="cpu").fit(graph)
    return classifier, classifier.aligned(graph).graph


def live_predictor(classifier: Any, graph: Any, folder: Path) -> Any:
    """Return the predictor with a mapped table."""
    import numpy as np

    from gpn_scale.inference.live import LivePredictor
    from gpn_scale.inference.node_values import node_values_into, num_columns

    shape = (graph.num_nodes, num_columns(classifier.trained))
    path = folder / "values.npy"
    table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    node_values_into(classifier.trained, graph, table)
    return LivePredictor(
        classifier.trained,
        graph,
        classifier.contract,
        surprise=classifier.surprise_of(graph),
        table=np.load(path, mmap_mode="r"),
    )


def rebuilt(graph: Any, node: int, features: Any, added: int, removed: int) -> Any:
    """Return the changed graph, built anew."""
    import numpy as np

    from gpn_scale.data.building import build_graph

    source = np.repeat(np.arange(graph.num_nodes), graph.out_degree)
    ends = np.stack([source, graph.indices], 1)
    lost = ((ends == [node, removed]) | (ends == [removed, node])).all(1)
    ends = np.concatenate([ends[~lost], [[node, added]]])
    changed = build_graph(ends[:, 0], ends[:, 1], num_nodes=graph.num_nodes)
    everyone = graph.features.copy()
    everyone[node] = features
    return replace(graph, indptr=changed.indptr, indices=changed.indices, features=everyone)


def requests_of(graph: Any, count: int) -> list[dict[str, Any]]:
    """Return random requests."""
    import numpy as np

    rng = np.random.default_rng(RNG_SEED)
    connected = np.flatnonzero(graph.out_degree > 0)
    requests = []
    for node in rng.choice(connected, count, replace=False).tolist():
        neighbours = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
        others = np.setdiff1d(rng.choice(graph.num_nodes, 100), [*neighbours, node])
        requests.append(
            {
                "node": node,
                "features": np.asarray(graph.features[rng.integers(graph.num_nodes)], np.float32),
                "neighbours": rng.choice(graph.num_nodes, NEIGHBOURS, replace=False),
                "added": int(others[0]),
                "removed": int(neighbours[0]),
            }
        )
    return requests


def summary(times: list[tuple[float, float]]) -> dict[str, float]:
    """Return milliseconds of all requests of a kind."""
    import numpy as np

    wall, processor = np.array(times).T * 1e3
    return {
        "median_ms": round(float(np.median(wall)), 1),
        "p99_ms": round(float(np.quantile(wall, 0.99)), 1),
        "median_processor_ms": round(float(np.median(processor)), 1),
        "p99_processor_ms": round(float(np.quantile(processor, 0.99)), 1),
        "requests": len(times),
    }


def elapsed(job: Callable[[], Any]) -> tuple[float, float]:
    """Return seconds of wall time and of processor time."""
    began = time.perf_counter(), time.process_time()
    job()
    return time.perf_counter() - began[0], time.process_time() - began[1]


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return everything that is printed."""
    import torch

    torch.set_num_threads(options.threads)
    classifier, graph = trained_on(options)
    live = live_predictor(classifier, graph, folder)
    requests = requests_of(graph, options.requests + 1)
    times: dict[str, list[tuple[float, float]]] = {}
    widths = []
    for place, request in enumerate(requests):
        new = request["features"][None], [request["neighbours"]]
        change = request["node"], request["features"], request["added"], request["removed"]
        edges = {"add_edges": [request["added"]], "remove_edges": [request["removed"]]}

        def before_new(new: Any = new) -> None:
            classifier.predict_new(graph, *new)

        def before_change(change: Any = change) -> None:
            classifier.predict(rebuilt(graph, *change))

        def after_new(new: Any = new) -> None:
            got = live.new(*new)
            widths.append(float((got.alpha_0_upper / got.alpha_0_lower)[0]) - 1.0)

        def after_change(request: Any = request, edges: Any = edges) -> None:
            live.changed(request["node"], features=request["features"], **edges)

        jobs = {"after new node": after_new, "after what-if": after_change}
        if place <= options.slow_requests:
            jobs |= {"before new node": before_new, "before what-if": before_change}
        for name, job in jobs.items():
            taken = elapsed(job)
            if place:  # the first request warms up
                times.setdefault(name, []).append(taken)
    moments = {name: summary(seconds) for name, seconds in times.items()}
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "classes": graph.num_classes,
        "largest_degree": int(graph.out_degree.max()),
        "threads": options.threads,
        "load_average": round(os.getloadavg()[0], 1),
        "widest_interval_relative": max(widths[1:]),
        "before": {name[7:]: value for name, value in moments.items() if name[0] == "b"},
        "after": {name[6:]: value for name, value in moments.items() if name[0] == "a"},
    }


def main() -> None:
    """Measure and print one JSON line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--classes", type=int, default=40)
    parser.add_argument("--degree", type=float, default=14.0, help="mean number of neighbours")
    parser.add_argument("--epochs", type=int, default=1, help="epochs of training")
    parser.add_argument("--requests", type=int, default=50, help="requests of each kind")
    parser.add_argument("--slow-requests", type=int, default=3, help="of them, also before")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--model", type=Path, help="a model file, in place of a synthetic graph")
    parser.add_argument("--data-dir", type=Path, default=Path("data"), help="folder of its graph")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(options, Path(folder))))


if __name__ == "__main__":
    main()
