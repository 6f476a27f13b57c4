"""Does training on the GPU of this machine give the numbers of the CPU?

Usage: python benchmarks/check_gpu.py [--device auto|cuda|cpu] [--nodes 3000] [--epochs 3]

A GPN+ is trained twice on minibatches of a synthetic graph, with equal dropout: on the CPU by the
rules for CPUs, and on the device by the rules for GPUs, in float64 and in float32. Losses and
predictions are compared, and one line is printed. The exit code is 0 if they agree, 1 if they do
not, and 2 if there is no GPU. `--device cpu` compares the two rules on the CPU.
"""

import argparse
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from gpn_scale.config import (
    DiffusionConfig,
    EncoderConfig,
    MinibatchConfig,
    PPRConfig,
    RunConfig,
    TrainConfig,
)
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import stratified_split
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.device import CPU_RULE, GPU_RULE, forced_rule, pick_device
from gpn_scale.errors import ConfigError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.prediction import Prediction
from precompute.build import build_store

DIFFUSION = DiffusionConfig(teleport=0.2, steps=10)
LIMITS = {torch.float64: 1e-6, torch.float32: 2e-2}
"""Largest relative difference of losses and alpha_0, and absolute one of probabilities.

In float32, Adam makes differences of single roundings grow from step to step."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a short training computes."""

    losses: list[float]
    prediction: Prediction
    seconds: float


def main() -> None:
    """Compare and print one line; exit with 1 if results differ, with 2 without a GPU."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="auto", help="auto, cuda, cuda:1, ... or cpu")
    parser.add_argument("--nodes", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    try:
        device = pick_device("cuda" if options.device == "auto" else options.device)
    except ConfigError as error:
        sys.stderr.write(
            f"{error}; on a machine without a GPU, `--device cpu` compares the rules for GPUs with "
            "those for CPUs\n"
        )
        sys.exit(2)
    settings = SyntheticConfig(nodes=options.nodes, classes=6, features=32)
    graph = stratified_split(synthetic_graph(settings), train=0.3, val=0.1, rng_seed=1)
    with TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        build_store(graph, PPRConfig(diffusion=DIFFUSION, k=16, clusters=8), store)
        agrees, line = compared(graph, store, device, options.epochs)
    print(f"{device_name(device)}: {line}")
    if not agrees:
        sys.exit(1)


def compared(graph: Graph, store: Path, device: torch.device, epochs: int) -> tuple[bool, str]:
    """Return whether device and CPU agree, and the line that says how closely."""
    cpu = torch.device("cpu")
    texts, agrees = [], True
    for dtype, limit in LIMITS.items():
        with forced_rule(replace(CPU_RULE, hashed_noise=True)):
            expected = trained(graph, store, cpu, dtype, epochs)
        with device_rules(device):
            outcome = trained(graph, store, device, dtype, epochs)
        gaps = differences(outcome, expected)
        agrees = agrees and all(gap <= limit for gap in gaps.values())
        shown = ", ".join(f"{name} {gap:.0e}" for name, gap in gaps.items())
        name = str(dtype).removeprefix("torch.")
        texts.append(f"{name}: {shown} (at most {limit:.0e}; {outcome.seconds:.1f} s)")
    verdict = "agrees with the CPU" if agrees else "DIFFERS from the CPU"
    return agrees, f"{verdict}; {'; '.join(texts)}"


def device_rules(device: torch.device) -> AbstractContextManager[Any]:
    """Return a context in which the device follows the rules for GPUs."""
    return forced_rule(GPU_RULE) if device.type == "cpu" else nullcontext()


def trained(
    graph: Graph, store: Path, device: torch.device, dtype: torch.dtype, epochs: int
) -> Outcome:
    """Train a GPN+ for a few epochs of several steps, and predict all nodes."""
    config = RunConfig(
        model="GPN+",
        mode="minibatch",
        encoder=EncoderConfig(hidden=64, layers=3, latent=16, dropout=0.3, batch_norm=True),
        diffusion=DIFFUSION,
        minibatch=MinibatchConfig(batch_size=64, tail_nodes=512),
        train=TrainConfig(epochs=epochs),
    )
    losses: list[float] = []
    began = time.monotonic()
    classifier = GPNClassifier(config, device=str(device), dtype=dtype)
    classifier.fit(graph, store=store, observe=lambda record: losses.append(record.loss))
    prediction = classifier.predict(graph, store=store)
    return Outcome(losses, prediction, time.monotonic() - began)


def differences(outcome: Outcome, expected: Outcome) -> dict[str, float]:
    """Return the largest differences by name; a missing number counts as infinite."""
    got, true = outcome.prediction, expected.prediction
    gaps = {
        "loss": np.abs(np.divide(outcome.losses, expected.losses) - 1.0),
        "alpha_0": np.abs(np.divide(got.alpha_0, true.alpha_0) - 1.0),
        "probabilities": np.abs(got.probabilities - true.probabilities),
    }
    return {name: float(np.nan_to_num(gap, nan=np.inf).max()) for name, gap in gaps.items()}


def device_name(device: torch.device) -> str:
    """Return the name of the device for the line."""
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return f"{device}, by the rules for GPUs"


if __name__ == "__main__":
    main()
