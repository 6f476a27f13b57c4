"""Ranks that divide batches compute what one process does, up to the order of sums."""

import numpy as np
import pytest
import torch

from gpn_scale import distributed
from gpn_scale.config import (
    DiffusionConfig,
    EncoderConfig,
    MinibatchConfig,
    RunConfig,
    TrainConfig,
)
from gpn_scale.data.splits import stratified_split
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.distributed import World
from gpn_scale.errors import NumericalError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.nn.noise import NOISE_ROWS
from tests.distributed.ranks import run_ranks
from tests.ppr.stored import write_store

pytestmark = pytest.mark.ddp

# A last batch of one root, and supports that are no multiple of anything.
NODES, BATCH = 1400, 20
CLASSES, CLUSTERS, HIDDEN = 3, 4, 8
BUFFERS = ("_F", "running_mean", "running_var", "tracked", "log_prior_C", "mean_PC", "total_P")
DIFFUSION = DiffusionConfig(teleport=0.2, steps=3)
CANCELLED = {"encoder.first.bias", "encoder.further.0.bias"}
CANCELLED |= {f"encoder.norms.{depth}.running_mean" for depth in (0, 1)}
"""Batch-norm takes these biases out again: their gradients are round-off, which Adam blows up."""


def graph_and_config(tail="clustered", validation="exact", model="GPN"):
    settings = SyntheticConfig(nodes=NODES, classes=CLASSES, features=6, degree=4, isolated=0.02)
    graph = synthetic_graph(settings)
    graph = stratified_split(graph, train=0.05, val=0.05, rng_seed=1)
    return graph, RunConfig(
        model=model,
        mode="minibatch",
        encoder=EncoderConfig(hidden=HIDDEN, layers=3, latent=4, dropout=0.3, batch_norm=True),
        diffusion=DIFFUSION,
        minibatch=MinibatchConfig(
            batch_size=BATCH, tail=tail, tail_nodes=900, validation=validation
        ),
        train=TrainConfig(epochs=2, warmup_steps=2, schedule="cosine", weight_decay=0.01),
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    graph, _ = graph_and_config()
    folder = tmp_path_factory.mktemp("store")
    parameters = DIFFUSION.store_parameters
    write_store(str(folder), graph, DIFFUSION, k=6, clusters=CLUSTERS, parameters=parameters)
    return folder


def trained(world, store, tail, validation):
    """Losses, sums and gradients of the first step, scores, weights, predictions of a short run."""
    graph, config = graph_and_config(tail, validation)
    classifier = GPNClassifier(config, dtype=torch.float64, world=world)
    trainer = classifier.trainer(graph, store)
    gradients, sums = {}, []

    def observe_step(epoch, step, steps):
        if not gradients:
            distributed.dist.all_reduce = all_reduce
            gradients.update(
                {name: p.grad.numpy().copy() for name, p in trainer.model.named_parameters()}
            )

    all_reduce = distributed.dist.all_reduce

    def counted(tensor, **options):
        sums.append(tensor.numel())
        return all_reduce(tensor, **options)

    trainer.observe_step = observe_step
    distributed.dist.all_reduce = counted
    records = []
    classifier.fit_trainer(trainer, observe=records.append)
    prediction, evidence = classifier.predict_with_evidence(graph, store=store)
    return {
        "sums": sums,
        "steps": trainer.task.num_steps,
        "scores": np.array([(r.loss, r.val_cross_entropy, r.val_accuracy) for r in records]),
        "best_epoch": trainer.state.best_epoch,
        "gradients": {name: g for name, g in gradients.items() if name not in CANCELLED},
        "weights": {name: t.numpy() for name, t in trainer.model.state_dict().items()},
        "alpha_0": np.array(prediction.alpha_0),
        "probabilities": np.array(prediction.probabilities),
        "alone": np.array(prediction.alpha_0_no_network),
        "evidence": evidence.total,
    }


def expected_sums(trained_alone, tail):
    """Sizes of the sums over ranks of a step: six, of which only one is large.

    Before they were joined, there were eight: two for the moments of batch-norm and two for their
    gradients, two for the evidence of the whole support, one for the gradients, one for the loss.
    """
    moments, their_gradients = [3 * HIDDEN] * 2, [2 * HIDDEN] * 2
    clusters = {"clustered": CLUSTERS, "stationary": 1, "renormalised": 0}[tail]
    weights = trained_alone["weights"].items()
    parameters = sum(w.size for name, w in weights if not name.endswith(BUFFERS))
    roots_and_clusters = [(BATCH + clusters) * CLASSES]
    return [*moments, *roots_and_clusters, *their_gradients, parameters + 2]


def assert_equal(got, expected, tolerance, name=""):
    if isinstance(expected, dict):
        assert got.keys() == expected.keys()
        for key, value in expected.items():
            assert_equal(got[key], value, tolerance, f"{name}.{key}")
        return
    scale = np.abs(np.asarray(expected, float)[np.isfinite(expected)]).max(initial=1e-300)
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.parametrize(
    ("tail", "validation", "size"),
    [
        ("clustered", "exact", 2),
        ("clustered", "exact", 4),
        ("stationary", "rows", 2),
        ("renormalised", "exact", 2),
    ],
)
def test_any_number_of_ranks_trains_the_same_model(store, tail, validation, size):
    expected = trained(World(), store, tail, validation)
    assert expected["steps"] == 4, "a last batch of one root"
    assert 2 * NOISE_ROWS < NODES
    results = run_ranks(size, trained, store, tail, validation)
    for result in results:
        assert isinstance(result, dict), result
        assert result.pop("sums") == expected_sums(expected, tail)
        for part in ("steps", "best_epoch"):
            assert result.pop(part) == expected[part]
        predictions = {
            name: result.pop(name) for name in ("alpha_0", "probabilities", "alone", "evidence")
        }
        assert_equal(predictions, {name: expected[name] for name in predictions}, 1e-6)
        assert_equal(result["scores"], expected["scores"], 1e-7, "scores")
        assert_equal(result["gradients"], expected["gradients"], 1e-10)
        for name, weight in expected["weights"].items():
            if name not in CANCELLED:
                # Eight steps of Adam, which divides by gradients however small they are.
                assert_equal(result["weights"][name], weight, 1e-6, name)
    for result in results[1:]:  # and, among themselves, to the bit
        for name, weight in results[0]["weights"].items():
            np.testing.assert_array_equal(result["weights"][name], weight)


def trained_plus(world, store, validation):
    """Scores, weights of the opinion, calibration and prediction of a GPN+."""
    graph, config = graph_and_config(validation=validation, model="GPN+")
    records, classifier = [], GPNClassifier(config, dtype=torch.float64, world=world)
    classifier.fit(graph, store=store, observe=records.append)
    prediction = classifier.predict(graph, store=store)
    state = {name: t.numpy() for name, t in classifier.state().items()}
    arrays = ("probabilities", "alpha_0", "energy", "label_evidence")
    return {
        "parts": [record.part for record in records],
        "scores": np.array([(r.loss, r.val_cross_entropy) for r in records]),
        "state": {n: t for n, t in state.items() if n.startswith(("opinion.", "calibration."))},
        "prediction": {name: np.array(getattr(prediction, name)) for name in arrays},
        "p_values": np.stack([prediction.p_value(part) for part in (*prediction.p.parts, "known")]),
    }


@pytest.mark.parametrize(("validation", "size"), [("exact", 2), ("rows", 2), ("exact", 4)])
def test_ranks_train_calibrate_and_predict_the_same_gpn_plus(store, validation, size):
    expected = trained_plus(World(), store, validation)
    assert set(expected["parts"]) == {"features", "opinion"}
    assert "opinion.cluster_PS" in expected["state"]
    assert expected["p_values"].shape == (5, NODES)
    results = run_ranks(size, trained_plus, store, validation)
    for result in results:
        assert isinstance(result, dict), result
        assert result["parts"] == expected["parts"]
        assert_equal(result["scores"], expected["scores"], 1e-7, "scores")
        assert_equal(result["prediction"], expected["prediction"], 1e-5)
        for name, tensor in expected["state"].items():
            if name.removeprefix("opinion.") not in CANCELLED:
                assert_equal(result["state"][name], tensor, 1e-5, name)
        # Round-off may swap two neighbours in the order of the validation nodes, not more.
        step = 1.0 / (1 + expected["state"]["calibration.num_nodes"])
        np.testing.assert_allclose(result["p_values"], expected["p_values"], atol=4 * step)
        assert (result["p_values"] == expected["p_values"]).mean() > 0.98
    first, *others = results
    for other in others:  # among themselves, to the bit
        for name, tensor in first["state"].items():
            np.testing.assert_array_equal(other["state"][name], tensor)
        np.testing.assert_array_equal(other["p_values"], first["p_values"])


def poisoned(world, store):
    """What is raised, and how far training got, when the last rank's third loss is not a number."""
    graph, config = graph_and_config()
    trainer = GPNClassifier(config, world=world).trainer(graph, store)
    losses = trainer.task.losses

    def bad_losses(*arguments, **options):
        for number, loss in enumerate(losses(*arguments, **options), start=1):
            yield loss * float("nan") if world.rank == world.size - 1 and number == 3 else loss

    trainer.task.losses = bad_losses
    before = {}
    trainer.observe_step = lambda *_: before.update(trainer.model.state_dict())
    try:
        list(trainer.records())
    except NumericalError as error:
        finite = all(value.isfinite().all() for value in before.values() if value.dim() == 2)
        return str(error), trainer.state.step, finite
    return None


def test_a_loss_that_is_no_number_on_one_rank_stops_all_before_the_weights_move(store):
    first, second = run_ranks(2, poisoned, str(store))
    assert first == second
    message, step, finite = first
    assert "training loss is nan in step 3 of 4 of epoch 1" in message
    assert step == 2
    assert finite
