"""The model of a step's memory against the peak that torch's allocator counts."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gpn_scale.config import (
    DiffusionConfig,
    EncoderConfig,
    MinibatchConfig,
    RunConfig,
    TrainConfig,
)
from gpn_scale.data.splits import stratified_split
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.device import GPU_RULE, SCRATCH_SHARE, forced_rule
from gpn_scale.estimator import GPNClassifier
from gpn_scale.nn import flow
from gpn_scale.train.device_batch import DeviceBatch
from gpn_scale.train.step_memory import StepSize
from tests.peak_memory import peak_bytes
from tests.ppr.stored import write_store

PAGE = Path(__file__).parents[2] / "docs" / "gpu.md"
DIFFUSION = DiffusionConfig(teleport=0.2, steps=3)
K, CLUSTERS = 8, 4


@pytest.mark.parametrize("share", [1.0, 0.3], ids=["flows at once", "flows in parts"])
@pytest.mark.parametrize(
    ("classes", "hidden", "latent", "features"),
    [(3, 64, 8, 16), (12, 16, 4, 4), (6, 32, 16, 48)],
)
def test_a_step_takes_what_the_model_says(
    tmp_path, monkeypatch, classes, hidden, latent, features, share
):
    settings = SyntheticConfig(nodes=1200, classes=classes, features=features, unseen_classes=0)
    graph = stratified_split(synthetic_graph(settings), train=0.4, val=0.05, rng_seed=1)
    parameters = DIFFUSION.store_parameters
    write_store(str(tmp_path), graph, DIFFUSION, k=K, clusters=CLUSTERS, parameters=parameters)
    config = RunConfig(
        model="GPN",
        mode="minibatch",
        encoder=EncoderConfig(hidden=hidden, layers=3, latent=latent, dropout=0.5, batch_norm=True),
        diffusion=DIFFUSION,
        minibatch=MinibatchConfig(batch_size=200, tail_nodes=100),
        train=TrainConfig(epochs=1),
    )
    with forced_rule(GPU_RULE):
        trainer = GPNClassifier(config).trainer(graph, tmp_path)
        task, model = trainer.task, trainer.model
        batch = next(task.loader.epoch(1))
        on_host = DeviceBatch.on_host(batch, graph.labels, torch.float32)
        noise = task._noise(trainer.generator, 0)
        model.train()
        size = StepSize(
            features=features,
            hidden=hidden,
            hidden_layers=2,
            latent=latent,
            classes=classes,
            roots=batch.num_roots,
            nodes_per_root=len(batch.support_global) / batch.num_roots,
            tail_nodes=0,
            k=K,
            clusters=CLUSTERS,
        )
        scratch = int(share * size.nodes * size.flow_bytes_per_node)
        monkeypatch.setattr(flow, "scratch_bytes", lambda device: scratch)
        peak = peak_bytes(lambda: task.joined_loss(model, on_host, noise).backward())
    assert size.nodes == len(batch.support_global)
    assert size.parameters == sum(p.numel() for p in model.parameters())
    # Two batches, the parameters and their moments are there before the step begins.
    batch_bytes = sum(tensor.nbytes for tensor in on_host.tensors())
    before = 2 * batch_bytes + 3 * 4 * size.parameters
    assert 0.85 < (peak + before) / size.bytes(scratch) < 1.05


ARXIV = StepSize(features=128, hidden=256, hidden_layers=2, latent=16, classes=40)


@pytest.mark.parametrize("gigabytes", [1, 8, 80])
def test_the_largest_batches_fit_and_one_root_more_does_not(gigabytes):
    memory = gigabytes * 10**9
    scratch = int(SCRATCH_SHARE * memory)
    most, whole = ARXIV.most_roots(memory), ARXIV.whole_roots(memory)
    assert 0 < whole < most
    for roots, fits in ((most, True), (most + 1, False)):
        assert (replace(ARXIV, roots=roots).bytes(scratch) <= 0.8 * memory) == fits
    for roots, fits in ((whole, True), (whole + 1, False)):
        nodes = replace(ARXIV, roots=roots).nodes
        assert (nodes * ARXIV.flow_bytes_per_node <= scratch) == fits


def test_nothing_fits_into_nothing():
    assert ARXIV.most_roots(1) == ARXIV.whole_roots(1) == 0


def test_the_page_shows_what_the_model_says():
    """Every row of the table of docs/gpu.md: KB per node and root, then two batches per GPU."""
    number = re.compile(r"[\d,.]*\d")
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if " KB | " in line]
    assert len(rows) >= 4
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        features, hidden, latent, classes = (int(each) for each in cells[1].split(","))
        size = StepSize(
            features=features, hidden=hidden, hidden_layers=2, latent=latent, classes=classes
        )
        shown = [
            float(each.replace(",", "")) for cell in cells[2:] for each in number.findall(cell)
        ]
        expected = [size.bytes_per_node / 1e3, size.bytes_per_root / 1e3]
        for gigabytes in (8, 16, 24, 80):
            memory = gigabytes * 10**9
            expected += [size.whole_roots(memory), size.most_roots(memory)]
        np.testing.assert_allclose(shown, expected, rtol=0.02)
