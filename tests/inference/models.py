"""Untrained models for tests of inference, which does not care how good a model is."""

import torch

from gpn_scale.config import DiffusionConfig, EncoderConfig, FlowConfig, RunConfig
from gpn_scale.inference.trained_model import TrainedModel
from gpn_scale.nn.model import GPN

CPU = torch.device("cpu")


def network_for(graph, num_classes=3, *, dtype=torch.float64, batch_norm=True, layers=2) -> GPN:
    """A small network with moments of batch normalisation that change something."""
    config = RunConfig(
        model="GPN",
        encoder=EncoderConfig(hidden=5, layers=layers, latent=2, batch_norm=batch_norm),
        flow=FlowConfig(radial_layers=2),
    )
    generator = torch.Generator().manual_seed(graph.num_nodes)
    prior_C = torch.rand(num_classes, generator=generator, dtype=torch.float64) + 0.1
    network = GPN(
        config,
        num_features=graph.num_features,
        class_prior_C=prior_C / prior_C.sum(),
        generator=generator,
    ).double()
    for norm in network.encoder.norms:
        norm.running_mean.uniform_(-1, 1, generator=generator)
        norm.running_var.uniform_(0.5, 2, generator=generator)
    return network.to(dtype)


def trained_model(
    graph, num_classes=3, *, diffusion=None, scaling="none", dtype=torch.float64, **network
) -> TrainedModel:
    """A model for the graph's features, on the CPU."""
    model = network_for(graph, num_classes, dtype=dtype, **network)
    return TrainedModel(model, scaling, diffusion or DiffusionConfig(), CPU, dtype)
