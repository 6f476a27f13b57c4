"""Does evidence survive an encoder that computes in bfloat16?

    python benchmarks/bench_bf16.py [--seeds 12] [--nodes 3000] [--epochs 80]

A GPN is trained in exact mode on the synthetic graph, with the encoder in float32. Then its encoder
predicts in bfloat16 (`applied`), a second model is trained with an encoder in bfloat16 (`trained`),
and a third in float32 with another seed (`other seed`), which shows the noise of training. Prints
a table: rank correlation with the first model's alpha_0, and differences from it in points, with
their standard errors over seeds. AUC-ROC is that of unknown nodes by alpha_0, with and without the
network.
"""

import argparse
import statistics
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from torch import Tensor

from gpn_scale.config import EncoderConfig, RunConfig, TrainConfig
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import stratified_split
from gpn_scale.device import GPU_RULE, forced_rule
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.nn.encoder import Encoder, Inputs
from gpn_scale.nn.noise import Noise

NAMES = ("accuracy", "AUC-ROC", "AUC-ROC without network")


@contextmanager
def encoders_in_bfloat16() -> Iterator[None]:
    """Let all encoders compute in bfloat16 within the block, and return float32."""
    plain = Encoder.forward

    def forward(self: Encoder, inputs: Inputs, noise: Noise | None = None) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return plain(self, inputs, noise).float()

    Encoder.forward = forward  # type: ignore[method-assign]
    try:
        yield
    finally:
        Encoder.forward = plain  # type: ignore[method-assign]


def scores(graph: Graph, prediction: Prediction) -> dict[str, float]:
    """Return accuracy and detection of unknown nodes, in percent."""
    known = np.setdiff1d(graph.split.test, graph.marked)
    known = known[graph.labels[known] >= 0]
    nodes = np.concatenate([known, graph.marked])
    is_unknown = np.isin(nodes, graph.marked)
    values = (
        (prediction.predicted_class[known] == graph.labels[known]).mean(),
        roc_auc_score(is_unknown, -prediction.alpha_0[nodes]),
        roc_auc_score(is_unknown, -prediction.alpha_0_no_network[nodes]),
    )
    return {name: 100.0 * float(value) for name, value in zip(NAMES, values, strict=True)}


def predictions(graph: Graph, seed: int, epochs: int) -> dict[str, Prediction]:
    """Return the predictions of the four kinds."""

    def fitted(rng_seed: int) -> GPNClassifier:
        encoder = EncoderConfig(hidden=64, layers=3, latent=16, batch_norm=True, dropout=0.5)
        train = TrainConfig(epochs=epochs, rng_seed=rng_seed)
        return GPNClassifier(RunConfig(model="GPN", encoder=encoder, train=train)).fit(graph)

    first = fitted(seed)
    results = {"float32": first.predict(graph), "other seed": fitted(seed + 100).predict(graph)}
    with encoders_in_bfloat16():
        results["applied"] = first.predict(graph)
        results["trained"] = fitted(seed).predict(graph)
    return results


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--nodes", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=80)
    options = parser.parse_args()
    whole = load_graph(f"synthetic:nodes={options.nodes},classes=5")
    ranks: dict[str, list[float]] = {kind: [] for kind in ("applied", "trained", "other seed")}
    gaps: dict[tuple[str, str], list[float]] = {(k, n): [] for k in ranks for n in NAMES}
    for seed in range(1, options.seeds + 1):
        graph = stratified_split(whole, train=0.1, val=0.1, rng_seed=seed)
        with forced_rule(GPU_RULE):  # its operations are torch's own, which follow autocast
            results = predictions(graph, seed, options.epochs)
        true = results["float32"]
        for kind, values in ranks.items():
            values.append(float(spearmanr(true.alpha_0, results[kind].alpha_0)[0]))
            for name, value in scores(graph, results[kind]).items():
                gaps[kind, name].append(value - scores(graph, true)[name])
    print("| encoder in bfloat16 | rank correlation | " + " | ".join(NAMES) + " |")
    print("|---" * (2 + len(NAMES)) + "|")
    for kind, values in ranks.items():
        cells = [f"{statistics.mean(values):.4f}"]
        for name in NAMES:
            each = gaps[kind, name]
            error = statistics.stdev(each) / len(each) ** 0.5 if len(each) > 1 else 0.0
            cells.append(f"{statistics.mean(each):+.2f} ± {error:.2f}")
        print(f"| {kind} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
