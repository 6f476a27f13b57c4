"""How much faster is the fused radial flow than the plain one, and how much memory does it save?

    python benchmarks/bench_flow.py [--nodes 20000] [--chunk-rows 512 768 1024 2048]

Variants take turns in one process (warm-up first, medians, spread = slowest - fastest): fused,
fused on one thread, plain. `free_cores` is the processor time per second that independent threads
got in the meantime: no speed-up by threads can exceed it. Peak memory above that before the call is
measured in a separate process for each variant. The plain variant is `RadialFlow.log_density` on
all nodes at once. Largest errors are against the plain variant in float64: of values relative to
1 + |value|, of gradients relative to the largest of their kind. Prints one JSON line.
`--chunk-rows` also times other chunk sizes, fused and fused on one thread.
"""

import argparse
import copy
import json
import multiprocessing
import threading
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor

from gpn_scale.memory import peak_rss_bytes, resident_bytes
from gpn_scale.nn.flow import RadialFlow
from gpn_scale.nn.radial_limits import chunk_rows

VARIANTS = ("fused", "plain")
TIMED = ("fused", "fused_one_thread", "plain")
PHASES = ("forward", "forward_backward")


def build(options: argparse.Namespace) -> tuple[RadialFlow, Tensor]:
    """Return a flow with initial weights and standard normal latent positions."""
    torch.set_num_threads(options.threads)
    generator = torch.Generator().manual_seed(options.rng_seed)
    flow = RadialFlow(
        num_classes=options.classes,
        latent=options.latent,
        radial_layers=options.layers,
        memory_mib=512,
        generator=generator,
    )
    return flow, torch.randn(options.nodes, options.latent, generator=generator)


def density_of(flow: RadialFlow, variant: str) -> Callable[[Tensor], Tensor]:
    """Return the function to measure."""
    return flow.log_density if variant == "plain" else flow


def run(flow: RadialFlow, z_ND: Tensor, variant: str, phase: str) -> list[Tensor]:
    """Return log-densities and, with the backward pass, the gradients of all inputs."""
    density = density_of(flow, variant)
    if phase == "forward":
        with torch.no_grad():
            return [density(z_ND)]
    z_ND = z_ND.detach().requires_grad_()
    value_NC = density(z_ND)
    gradients = torch.autograd.grad(value_NC.sum(), [z_ND, *flow.parameters()])
    return [value_NC.detach(), *gradients]


def elapsed(flow: RadialFlow, z_ND: Tensor, variant: str, phase: str) -> float:
    """Return the seconds of one run."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if variant == "fused_one_thread" else threads)
    began = time.perf_counter()
    run(flow, z_ND, variant, phase)
    seconds = time.perf_counter() - began
    torch.set_num_threads(threads)
    return seconds


def free_cores(threads: int) -> float:
    """Return the processor seconds per second that independent threads get."""

    def work() -> None:
        torch.set_num_threads(1)
        x = torch.ones(200_000)
        out = torch.empty_like(x)
        for _ in range(200):
            torch.exp(x, out=out)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    began, began_processor = time.perf_counter(), time.process_time()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    torch.set_num_threads(threads)
    return (time.process_time() - began_processor) / (time.perf_counter() - began)


def time_side_by_side(options: argparse.Namespace) -> dict[str, Any]:
    """Return medians and spreads; variants take turns, so other work affects all of them."""
    flow, z_ND = build(options)
    result: dict[str, Any] = {}
    for phase in PHASES:
        seconds: dict[str, list[float]] = {variant: [] for variant in TIMED}
        cores = []
        for repeat in range(options.repeats + 1):
            cores.append(free_cores(options.threads))
            for variant in TIMED:
                duration = elapsed(flow, z_ND, variant, phase)
                if repeat:  # the first is the warm-up
                    seconds[variant].append(duration)
        median = {variant: sorted(seconds[variant])[options.repeats // 2] for variant in TIMED}
        for variant in TIMED:
            result[f"{variant}_{phase}_seconds"] = median[variant]
            result[f"{variant}_{phase}_spread_seconds"] = max(seconds[variant]) - min(
                seconds[variant]
            )
        result[f"{phase}_speed_up"] = median["plain"] / median["fused"]
        result[f"{phase}_threads_speed_up"] = median["fused_one_thread"] / median["fused"]
        result[f"{phase}_free_cores"] = sorted(cores)[len(cores) // 2]
    return result


def time_chunks(options: argparse.Namespace) -> dict[str, dict[str, dict[int, float]]]:
    """Return median seconds of the fused variant by nodes per chunk."""
    flow, z_ND = build(options)
    variants = ("fused", "fused_one_thread")
    runs = list(product(variants, PHASES, options.chunk_rows))
    seconds: dict[Any, list[float]] = {key: [] for key in runs}
    for _ in range(options.repeats + 1):
        for variant, phase, rows in runs:
            flow.fused_rows = lambda _, rows=rows: rows
            seconds[variant, phase, rows].append(elapsed(flow, z_ND, variant, phase))
    result: dict[str, dict[str, dict[int, float]]] = {v: {p: {} for p in PHASES} for v in variants}
    for (variant, phase, rows), each in seconds.items():
        result[variant][phase][rows] = sorted(each[1:])[options.repeats // 2]
    return result


def measure_memory(task: tuple[argparse.Namespace, str, str]) -> int:
    """Return the peak bytes of one run above those before it."""
    options, variant, phase = task
    flow, z_ND = build(options)
    run(flow, z_ND[:100], variant, phase)  # excludes what torch loads lazily
    before = resident_bytes()[0]
    run(flow, z_ND, variant, phase)
    return peak_rss_bytes() - before


def errors(options: argparse.Namespace) -> dict[str, float]:
    """Return the largest errors of both variants in float32."""
    flow, z_ND = build(options)
    z_ND = z_ND[:2000]
    truth = run(copy.deepcopy(flow).double(), z_ND.double(), "plain", "forward_backward")
    result = {}
    for variant in VARIANTS:
        got = run(flow, z_ND, variant, "forward_backward")
        gaps = [(a.double() - b).abs() for a, b in zip(got, truth, strict=True)]
        relative = [gap.max() / true.abs().max() for gap, true in zip(gaps, truth, strict=True)]
        result[f"{variant}_value_error"] = float((gaps[0] / (1.0 + truth[0].abs())).max())
        result[f"{variant}_gradient_error"] = float(max(relative[1:]))
    return result


def main() -> None:
    """Measure times, memory and errors, and print one JSON line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--classes", type=int, default=40)
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--latent", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rng-seed", type=int, default=1)
    parser.add_argument("--chunk-rows", type=int, nargs="*", default=[])
    options = parser.parse_args()
    result = vars(options) | {"torch": torch.__version__}
    result |= {"fused_chunk_rows": chunk_rows(options.classes)}
    for phase in PHASES:
        for variant in VARIANTS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                extra = pool.apply(measure_memory, ((options, variant, phase),))
            result[f"{variant}_{phase}_extra_mib"] = round(extra / 2**20, 1)
        plain, fused = (result[f"{variant}_{phase}_extra_mib"] for variant in ("plain", "fused"))
        # Small inputs fit into memory that the process already has.
        result[f"{phase}_memory_ratio"] = plain / fused if fused > 0 else None
    result |= time_side_by_side(options) | errors(options)
    if options.chunk_rows:
        result["chunk_seconds"] = time_chunks(options)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
