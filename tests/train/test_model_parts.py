"""Parts of a model as tensors by name, and tensors that are refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.config import EncoderConfig, RunConfig
from gpn_scale.errors import RunError
from gpn_scale.evaluation.known_calibration import KnownCalibration
from gpn_scale.evaluation.temperature import NodeTemperature
from gpn_scale.train.model_parts import ModelParts, NetworkSizes
from gpn_scale.train.new_trainer import new_network, new_opinion
from tests.inference.models import drawn_calibration

PLUS = RunConfig(encoder=EncoderConfig(hidden=8, latent=4, batch_norm=True, layers=3))
GPN = replace(PLUS, model="GPN")
SIZES = NetworkSizes(8, 3, 4)


def parts_of(config=PLUS, *, dtype=torch.float64, clusters=4, calibration=None) -> ModelParts:
    generator = torch.Generator().manual_seed(1)
    network = new_network(config, 8, torch.full((3,), 1 / 3), clusters, generator).to(dtype)
    if config.model == "GPN":
        return ModelParts(network)
    opinion = new_opinion(config, 8, 3, generator).to(dtype)
    if clusters:
        opinion.cluster_PS = torch.randn(clusters, 4, generator=generator, dtype=dtype)
    return ModelParts(network, opinion, calibration or drawn_calibration())


def restored(tensors, config=PLUS, sizes=SIZES, dtype=torch.float64):
    return ModelParts.restored(config, sizes, dtype, tensors, "memory")


def assert_equal_states(first, second):
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("clusters", [0, 4])
@pytest.mark.parametrize("config", [PLUS, GPN], ids=["GPN+", "GPN"])
def test_all_parts_come_back(config, clusters, dtype):
    state = parts_of(config, dtype=dtype, clusters=clusters).state()
    again = restored(state, config, replace(SIZES, num_clusters=clusters), dtype)
    assert_equal_states(again.state(), state)
    assert not again.network.training
    if config.model == "GPN":
        assert (again.opinion, again.calibration) == (None, None)
    else:
        assert not again.opinion.training
        assert again.calibration.tempering == drawn_calibration().tempering


def test_a_calibration_without_scores_comes_back():
    state = parts_of(calibration=KnownCalibration(NodeTemperature(2.5), {}, {}, 7)).state()
    again = restored(state).calibration
    assert again.tempering == NodeTemperature(2.5)
    assert (again.scores, again.num_nodes) == ({}, 7)


def test_a_calibration_of_before_has_one_temperature():
    state = parts_of().state()
    del state[SLOPE]
    assert restored(state).calibration.tempering == NodeTemperature(1.7)


def test_a_part_without_scores_has_no_surroundings():
    whole = drawn_calibration()
    scores = {name: s for name, s in whole.scores.items() if name != "label_absence"}
    around = {part: s for part, s in whole.surroundings.items() if part != "labels"}
    state = parts_of(calibration=KnownCalibration(NodeTemperature(1.0), scores, around, 40)).state()
    assert restored(state).calibration.surroundings.keys() == around.keys()
    with pytest.raises(RunError, match=r"for 'around.labels', expected nothing"):
        restored(state | {AROUND: torch.zeros(40)})


def test_names_of_a_gpn_are_those_of_its_network():
    parts, plus = parts_of(GPN), parts_of()
    assert_equal_states(parts.state(), parts.network.state_dict())
    prefixes = {name.split(".")[0] for name in plus.state().keys() - parts.state().keys()}
    assert prefixes == {"opinion", "calibration"}


def test_sizes_follow_from_a_graph_and_the_tensors(small_graph):
    state = parts_of(GPN).state()
    assert NetworkSizes.of(small_graph, state) == SIZES
    assert NetworkSizes.of(small_graph, {}).num_clusters == 0
    with pytest.raises(RunError, match=r"memory has torch.float64"):
        restored(state, GPN, replace(SIZES, num_classes=5))


def test_a_gpn_refuses_the_parts_of_gpn_plus():
    with pytest.raises(RunError, match=r"expected nothing: it belongs to another model"):
        restored(parts_of().state(), GPN)


TEMPERATURE, COUNT = "calibration.temperature", "calibration.num_nodes"
SLOPE = "calibration.temperature_slope"
AROUND = "calibration.around.labels"
ENERGY, FIRST = "calibration.scores.energy", "opinion.encoder.first.weight"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({TEMPERATURE: None}, "has nothing for 'temperature', expected"),
        ({TEMPERATURE: torch.tensor(0.0).double()}, "a temperature of 0.0, expected a positive"),
        ({TEMPERATURE: torch.tensor(-1.0).double()}, "a temperature of -1.0, expected a positive"),
        ({TEMPERATURE: torch.tensor(np.nan).double()}, "a temperature of nan, expected a positive"),
        ({TEMPERATURE: torch.tensor(np.inf).double()}, "a temperature of inf, expected a positive"),
        ({SLOPE: torch.tensor([np.nan, 0, 1]).double()}, "has nan, 0.0 and 1.0 as slope, mean"),
        (
            {SLOPE: torch.tensor([0.1, np.inf, 1]).double()},
            "expected finite numbers and a",
        ),
        (
            {SLOPE: torch.tensor([0.5, 0, 0]).double()},
            "has 0.5, 0.0 and 0.0 as slope",
        ),
        ({SLOPE: torch.zeros(2).double()}, r"of shape \[2\] for 'temperature_slope', expected"),
        ({TEMPERATURE: torch.tensor(1.0)}, "float32 of shape .* for 'temperature', expected"),
        ({COUNT: None}, r"of shape \[40\] for 'around.*, expected .* shape \[0\]"),
        ({COUNT: torch.tensor(39)}, r"of shape \[40\] for 'around.*, expected .* shape \[39\]"),
        ({COUNT: torch.tensor(-3)}, r"of shape \[40\] for 'around.*, expected .* shape \[0\]"),
        ({COUNT: torch.tensor(2**60)}, r"of shape \[40\] for 'around"),
        ({COUNT: torch.tensor([40, 40])}, "for '(num_nodes|around.*)', expected"),
        ({COUNT: torch.tensor(40.0)}, "for '(num_nodes|around.*)', expected"),
        ({ENERGY: torch.zeros(40).double()}, "float64 .* for 'scores.energy', expected"),
        ({ENERGY: torch.full((40,), np.nan)}, "values 'energy' of validation nodes that are not"),
        ({AROUND: None}, "has nothing for 'around.labels', expected"),
        ({AROUND: torch.zeros(39)}, r"of shape \[39\] for 'around.labels', expected"),
        ({AROUND: torch.full((40,), np.inf)}, "values 'labels' of validation nodes that are not"),
        ({"calibration.around.mood": torch.zeros(40)}, "for 'around.mood', expected nothing"),
        ({"calibration.scores.mood": torch.zeros(40)}, "for 'scores.mood', expected nothing"),
        ({"calibration.more": torch.zeros(1)}, "for 'more', expected nothing"),
        ({FIRST: None}, "has nothing for 'encoder.first.weight', expected"),
        ({FIRST: torch.zeros(8, 9).double()}, "for 'encoder.first.weight', expected"),
        ({"opinion.cluster_PS": torch.zeros(5, 4).double()}, "for 'cluster_PS', expected"),
    ],
)
def test_damaged_and_foreign_tensors_are_refused_in_one_sentence(changes, message):
    state = parts_of().state() | {name: t for name, t in changes.items() if t is not None}
    for name in (name for name, tensor in changes.items() if tensor is None):
        del state[name]
    with pytest.raises(RunError, match=message) as caught:
        restored(state)
    assert str(caught.value).startswith("memory has ")
    assert "\n" not in str(caught.value)
    assert "train again" in str(caught.value)


def test_a_gpn_plus_without_its_opinion_is_refused():
    features_alone = ModelParts(parts_of().network).state()
    with pytest.raises(RunError, match=r"this file has no opinion, expected one for model='GPN\+'"):
        ModelParts.restored(PLUS, SIZES, torch.float64, features_alone, "this file")
