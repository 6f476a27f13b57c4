import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import EncoderConfig, FlowConfig, RunConfig
from gpn_scale.errors import ConfigError
from gpn_scale.train import model_size
from gpn_scale.train.model_size import check_model_size, parameter_count
from gpn_scale.train.new_trainer import new_network, new_opinion


@given(
    st.sampled_from(["GPN", "GPN+"]),
    st.builds(
        EncoderConfig,
        hidden=st.integers(1, 9),
        layers=st.integers(1, 4),
        latent=st.integers(1, 5),
        batch_norm=st.booleans(),
    ),
    st.integers(0, 4),
    st.integers(1, 7),
    st.integers(1, 5),
)
def test_the_count_is_that_of_the_networks(
    model, encoder, radial_layers, num_features, num_classes
):
    flow = FlowConfig(radial_layers=radial_layers)
    config = RunConfig(model=model, encoder=encoder, flow=flow)
    parts = [new_network(config, num_features, torch.full((num_classes,), 1 / num_classes), 0)]
    parts += [new_opinion(config, num_features, num_classes)] if model == "GPN+" else []
    expected = sum(each.numel() for part in parts for each in part.parameters())
    assert parameter_count(config, num_features, num_classes) == expected


def test_a_model_that_the_machine_cannot_hold_is_refused(monkeypatch):
    config = RunConfig(encoder=EncoderConfig(hidden=1_000_000, layers=3))
    with pytest.raises(
        ConfigError,
        match=r"would have 2,0.* parameters, which take 32,0.* GB in training, but this machine "
        r"has .* GB: lower encoder\.hidden \(1,000,000\), ",
    ):
        check_model_size(config, 10, 3)
    check_model_size(RunConfig(), 10, 3)
    monkeypatch.setattr(model_size, "physical_bytes", lambda: 1000)
    with pytest.raises(ConfigError, match=r"but this machine has 0\.0 GB"):
        check_model_size(RunConfig(), 10, 3)
