"""Minibatch mode against the exact model that it approximates."""

from typing import get_args

import numpy as np
import pytest
import torch

from gpn_scale.config import (
    DiffusionConfig,
    EncoderConfig,
    MinibatchConfig,
    PPRConfig,
    RunConfig,
    TailKind,
    TrainConfig,
)
from gpn_scale.data.splits import class_prior
from gpn_scale.errors import ConfigError, StoreError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.inference.cluster_summary import num_tracked_clusters
from gpn_scale.nn.model import GPN
from gpn_scale.ppr.store import PPRStore
from gpn_scale.train.minibatch_task import MinibatchTask
from gpn_scale.train.objective import EvidenceObjective
from gpn_scale.train.task import ExactTask
from precompute.build import build_store
from precompute.resources import Resources
from tests.ppr.stored import write_store

CPU = torch.device("cpu")
RESOURCES = Resources(threads=1, memory_bytes=1 << 30)


def stored(graph, path, diffusion, k, clusters=4, roots=None, **options):
    config = PPRConfig(diffusion=diffusion, k=k, clusters=clusters, **options)
    build_store(graph, config, path, roots=roots, resources=RESOURCES)
    return PPRStore.open(path)


def run_config(diffusion=None, *, dropout=0.0, train=None, **minibatch):
    return RunConfig(
        model="GPN",
        mode="minibatch",
        encoder=EncoderConfig(hidden=8, latent=4, dropout=dropout),
        diffusion=diffusion or DiffusionConfig(),
        minibatch=MinibatchConfig(**minibatch),
        train=train or TrainConfig(epochs=3, warmup_steps=1),
    )


def model_for(graph, config, num_clusters):
    return GPN(
        config,
        num_features=graph.num_features,
        class_prior_C=torch.from_numpy(class_prior(graph)),
        generator=torch.Generator().manual_seed(3),
        num_clusters=num_clusters,
    ).double()


def exact_task(graph, config):
    objective = EvidenceObjective(config.train.entropy_weight)
    return ExactTask(graph, config, objective, CPU, torch.float64)


def losses_and_gradients(task, model):
    model.zero_grad()
    losses = list(task.losses(model, None, 1))
    loss = sum(losses) / len(losses)
    loss.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    return loss.item(), gradients


@pytest.fixture(scope="module")
def all_rows(small_graph, tmp_path_factory):
    """A function (diffusion, maker) -> store with every entry of every row, made once each."""
    made = {}

    def store(diffusion, maker="oracle"):
        if (diffusion, maker) not in made:
            folder = tmp_path_factory.mktemp("store")
            size = small_graph.num_nodes
            if maker == "oracle":
                rows = write_store(str(folder), small_graph, diffusion, k=size, clusters=4)
            else:
                push = {"method": "push", "push_tolerance": 1e-11}
                rows = stored(small_graph, folder, diffusion, k=size, **push)
            made[diffusion, maker] = rows
        return made[diffusion, maker]

    return store


# The engine sums in float32, and its cut masses are rounded up to float16.
@pytest.mark.parametrize(("maker", "tolerance"), [("oracle", 1e-6), ("engine", 2e-5)])
@pytest.mark.parametrize("tail", ["clustered", "stationary", "renormalised", "truncated"])
@pytest.mark.parametrize("steps", [10, "inf"])
@pytest.mark.parametrize("normalisation", ["sym", "rw"])
def test_with_all_entries_it_is_the_exact_model(
    small_graph, all_rows, normalisation, steps, tail, maker, tolerance
):
    diffusion = DiffusionConfig(
        teleport=0.2, normalisation=normalisation, steps=steps, tolerance=1e-9
    )
    config = run_config(diffusion, tail=tail, tail_nodes=small_graph.num_nodes)
    task = MinibatchTask(small_graph, config, all_rows(diffusion, maker), CPU, torch.float64)
    model = model_for(small_graph, config, num_tracked_clusters(task.tail))
    loss, gradients = losses_and_gradients(task, model)
    exact = exact_task(small_graph, config)
    expected, exact_gradients = losses_and_gradients(exact, model)
    assert loss == pytest.approx(expected, rel=tolerance)
    for name, gradient in exact_gradients.items():
        bound = tolerance * gradient.abs().max().item()
        torch.testing.assert_close(gradients[name], gradient, rtol=0.0, atol=bound)
    validation, truth = task.validate(model), exact.validate(model)
    assert validation.cross_entropy == pytest.approx(truth.cross_entropy, rel=tolerance)
    assert validation.accuracy == truth.accuracy


def test_batches_add_up_to_the_whole(small_graph, all_rows):
    """Without dropout and weight changes, the mean of scaled batch losses is the full sum."""
    config = run_config(batch_size=7, tail="truncated")
    task = MinibatchTask(small_graph, config, all_rows(config.diffusion), CPU, torch.float64)
    model = model_for(small_graph, config, 1)
    batches = list(task.loader.epoch(1))
    assert task.num_steps == len(batches) > 1
    total = sum(task.loss(model, batch, None).item() for batch in batches)
    exact, _ = losses_and_gradients(exact_task(small_graph, config), model)
    assert total == pytest.approx(exact, rel=1e-6)
    scaled = [loss.item() for loss in task.losses(model, None, 1)]
    sizes = [len(batch.root_global) for batch in batches]
    weighted = sum(loss * size for loss, size in zip(scaled, sizes, strict=True)) / sum(sizes)
    assert weighted == pytest.approx(exact, rel=1e-6)


def test_the_clustered_tail_has_a_gradient_and_is_nearer_to_the_truth(small_graph, tmp_path):
    diffusion = DiffusionConfig()
    store = stored(small_graph, tmp_path / "store", diffusion, k=4, clusters=8)
    gap = {}
    exact_config = run_config(diffusion)
    exact = exact_task(small_graph, exact_config)
    for tail in ("clustered", "truncated"):
        config = run_config(diffusion, tail=tail, tail_nodes=small_graph.num_nodes)
        task = MinibatchTask(small_graph, config, store, CPU, torch.float64)
        model = model_for(small_graph, config, num_tracked_clusters(task.tail))
        _, gradients = losses_and_gradients(task, model)
        _, truth = losses_and_gradients(exact, model)
        gap[tail] = sum((gradients[name] - truth[name]).norm() for name in truth).item()
    assert gap["clustered"] < 0.5 * gap["truncated"]


def test_the_same_seed_gives_the_same_weights_whatever_the_workers(small_graph, tmp_path):
    store = stored(small_graph, tmp_path / "store", DiffusionConfig(), k=8)
    states = []
    for workers in (0, 2):
        config = run_config(dropout=0.5, batch_size=16, workers=workers, tail_nodes=32)
        classifier = GPNClassifier(config, device="cpu").fit(small_graph, store=store)
        states.append(classifier.state())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize("tail", get_args(TailKind))
def test_every_tail_trains(small_graph, tmp_path, tail):
    store = stored(small_graph, tmp_path / "store", DiffusionConfig(), k=8)
    config = run_config(tail=tail, batch_size=16, tail_nodes=64)
    records = []
    classifier = GPNClassifier(config, device="cpu")
    classifier.fit(small_graph, store=store, observe=records.append)
    assert len(records) == 3  # the one warm-up step is in the first
    assert all(np.isfinite(record.loss) for record in records)
    prediction = classifier.predict(small_graph)
    assert np.isfinite(prediction.alpha_0).all()


def test_facts_of_batches(small_graph, tmp_path):
    store = stored(small_graph, tmp_path / "store", DiffusionConfig(), k=8)
    task = MinibatchTask(small_graph, run_config(batch_size=8), store, CPU)
    facts = task.facts()
    assert facts["k"] == 8
    assert facts["batch_size"] == 8
    assert facts["steps_per_epoch"] == -(-len(small_graph.split.train) // 8)
    supports = [
        {*store.rows(roots).ids.tolist(), *roots.tolist()} for roots in task.loader.epoch_roots(1)
    ]
    assert facts["encodings_per_epoch"] == sum(map(len, supports))
    distinct = len(set.union(*supports))
    assert facts["repeated_encodings"] == 1 - distinct / facts["encodings_per_epoch"]


def test_drawn_neighbours_are_refused(small_graph, tmp_path):
    store = stored(small_graph, tmp_path / "store", DiffusionConfig(), k=8)
    with pytest.raises(ConfigError, match=r"minibatch.neighbours is 5, expected 'all'") as caught:
        MinibatchTask(small_graph, run_config(neighbours=5), store, CPU)
    assert caught.value.arguments == ("minibatch.neighbours",)


@pytest.mark.parametrize("subset", ["train", "val"])
def test_roots_without_rows_are_refused(small_graph, tmp_path, subset):
    missing = getattr(small_graph.split, subset)[3]
    roots = np.setdiff1d(np.arange(small_graph.num_nodes), [missing])
    store = stored(small_graph, tmp_path / "store", DiffusionConfig(), k=8, roots=roots)
    with pytest.raises(StoreError, match=f"node {missing} is not among the 299 roots"):
        GPNClassifier(run_config(), device="cpu").trainer(small_graph, store)


@pytest.mark.parametrize(("size", "message"), [(0, "is 0, expected at least 1"), (301, "is 301")])
def test_batch_sizes_out_of_range_are_refused(small_graph, tmp_path, size, message):
    store = stored(small_graph, tmp_path / "store", DiffusionConfig(), k=8)
    with pytest.raises(ConfigError, match=f"minibatch.batch_size {message}"):
        GPNClassifier(run_config(batch_size=size), device="cpu").trainer(small_graph, store)
