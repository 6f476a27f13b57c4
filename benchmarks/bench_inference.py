"""What does predicting all nodes within a memory budget cost beyond its bare arithmetic?

    python benchmarks/bench_inference.py --dataset NAME --data-dir DIR --budgets-mib 4096 1024 300

The bare arithmetic is the forward pass from features to evidence in plain chunks, and K products of
torch's CSR matrix (int32 columns) with the whole evidence; nothing is read, scaled, normalised or
kept. Measurements take turns in one process. Peak memory of each budget is measured in a separate
process, above that with graph and model loaded. With `--mapped`, the graph is a folder of
memory-mapped arrays. Weights are random; features must be dense. Prints one JSON line.
"""

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

Setting = tuple[str, Path, Path | None]
"""Dataset, its directory, and the folder to map it from (None: read it into memory)."""
RNG_SEED = 1
BARE_CHUNK = 4096


def prepared(setting: Setting) -> tuple[Any, Any, Any]:
    """Return graph, configuration and model."""
    import torch

    from gpn_scale.data.datasets import load_graph
    from gpn_scale.data.graph_folder import open_graph
    from gpn_scale.nn.model import GPN
    from gpn_scale.recipes import recipe_for

    dataset, data_dir, folder = setting
    graph = load_graph(dataset, data_dir) if folder is None else open_graph(folder)
    config = recipe_for(dataset, graph)
    generator = torch.Generator().manual_seed(RNG_SEED)
    prior_C = torch.full((graph.num_classes,), 1.0 / graph.num_classes)
    model = GPN(config, num_features=graph.num_features, class_prior_C=prior_C, generator=generator)
    return graph, config, model.eval()


def predict(graph: Any, config: Any, model: Any, memory_bytes: int) -> Any:
    """Predict all nodes within the budget."""
    import torch

    from gpn_scale.inference.all_nodes import predict_all
    from gpn_scale.inference.trained_model import TrainedModel

    scaling, cpu = config.data.feature_scaling, torch.device("cpu")
    trained = TrainedModel(model, scaling, config.diffusion, cpu, torch.float32)
    return predict_all(trained, graph, memory_bytes=memory_bytes)


def measure_memory(arguments: tuple[Setting, int]) -> dict[str, int]:
    """Return the peak memory of one prediction above that of graph and model."""
    from gpn_scale.memory import resident_bytes

    setting, memory_bytes = arguments
    graph, config, model = prepared(setting)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak
    before = resident_bytes()[0]
    predict(graph, config, model, memory_bytes)
    peak = resident_bytes()[1]
    return {"rss_before_mib": before >> 20, "rss_added_mib": (peak - before) >> 20}


def measure_seconds(
    setting: Setting, budgets: list[int], repeats: int
) -> tuple[dict[str, list[float]], int]:
    """Return the seconds of every repeat by job, and the number of diffusion steps."""
    import torch

    from gpn_scale.diffusion.power_iteration import config_steps, exact_diffusion

    graph, config, model = prepared(setting)
    steps = config_steps(config.diffusion)
    transition = exact_diffusion(
        graph, config.diffusion, torch.device("cpu"), torch.float32
    ).transition
    features = torch.tensor(graph.features).float()  # dense datasets only
    evidence_NC = torch.rand(graph.num_nodes, graph.num_classes)

    @torch.no_grad()
    def bare_forward() -> None:
        for chunk in torch.split(features, BARE_CHUNK):
            model.feature_evidence(chunk)

    def bare_products() -> None:
        for _ in range(steps):
            transition.multiply(evidence_NC)

    jobs: dict[str, Callable[[], Any]] = {"forward": bare_forward, "products": bare_products}
    for budget in budgets:
        jobs[str(budget >> 20)] = partial(predict, graph, config, model, budget)
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()  # pages, threads and kernels are ready before the clock starts
    for _ in range(repeats):
        for name, job in jobs.items():
            began = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - began)
    return seconds, steps


def median_and_spread(seconds: list[float]) -> dict[str, float]:
    """Return the fastest, the median and the spread of all repeats."""
    ordered = sorted(seconds)
    return {
        "fastest": round(ordered[0], 3),
        "seconds": round(ordered[len(ordered) // 2], 3),
        "spread": round(ordered[-1] - ordered[0], 3),
    }


def options_of_command_line() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--dataset", required=True, help="name of a graph in --data-dir")
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--budgets-mib", type=int, nargs="+", default=[4096, 1024, 300])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--mapped", action="store_true")
    return parser.parse_args()


def main() -> None:
    """Measure one dataset and print one JSON line."""
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.data.graph_folder import save_graph

    options = options_of_command_line()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) if options.mapped else None
        if folder is not None:
            save_graph(load_graph(options.dataset, options.data_dir), folder)
        print(json.dumps(measure(options, (options.dataset, options.data_dir, folder))))


def measure(options: argparse.Namespace, setting: Setting) -> dict[str, Any]:
    """Return everything that is printed."""
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # also of the processes started below
    import torch

    from gpn_scale.inference.memory_plan import plan_inference

    torch.set_num_threads(options.threads)
    budgets = [mib << 20 for mib in options.budgets_mib]
    seconds, steps = measure_seconds(setting, budgets, options.repeats)
    graph = prepared(setting)[0]
    sizes = (graph.num_nodes, graph.num_edges, graph.num_classes)
    result: dict[str, Any] = {
        "dataset": options.dataset,
        "mapped": options.mapped,
        "threads": options.threads,
        "repeats": options.repeats,
        "steps": steps,
        "torch": torch.__version__,
        "bare": {name: median_and_spread(seconds[name]) for name in ("forward", "products")},
    }
    for budget in budgets:
        name = str(budget >> 20)
        # Ratios within each repeat, so that other work on the machine affects both alike.
        bare = map(sum, zip(seconds["forward"], seconds["products"], strict=True))
        ratios = sorted(mine / other for mine, other in zip(seconds[name], bare, strict=True))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            memory = pool.apply(measure_memory, ((setting, budget),))
        result[f"budget_{name}_mib"] = {
            **median_and_spread(seconds[name]),
            "ratio": round(ratios[len(ratios) // 2], 3),
            "ratio_of_fastest": round(
                min(seconds[name]) / (min(seconds["forward"]) + min(seconds["products"])), 3
            ),
            "ratio_range": [round(ratios[0], 3), round(ratios[-1], 3)],
            **memory,
            "plan": asdict(plan_inference(*sizes, budget, max_degree=int(graph.out_degree.max()))),
        }
    return result


if __name__ == "__main__":
    main()
