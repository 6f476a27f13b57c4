"""Size of a model, computed before any of its memory is allocated."""

from gpn_scale.config import RunConfig
from gpn_scale.errors import ConfigError
from gpn_scale.memory import physical_bytes

_TRAINING_BYTES = 16
"""Bytes per parameter in training: its value, its gradient and Adam's two moments."""


def parameter_count(config: RunConfig, num_features: int, num_classes: int) -> int:
    """Return the number of parameters of all parts of a model.

    Args:
        config: Configuration; uses the sections encoder, flow and, for GPN+, opinion.
        num_features: Number of feature columns.
        num_classes: Number of classes.
    """
    encoder = config.encoder
    count = _perceptron(config, num_features, encoder.latent)
    count += config.flow.radial_layers * num_classes * (encoder.latent + 2)
    if config.model == "GPN+":
        count += _perceptron(config, num_features, num_classes)
    return count


def check_model_size(config: RunConfig, num_features: int, num_classes: int) -> None:
    """Refuse a model that this machine could not train.

    Raises:
        ConfigError: its parameters need more memory than the machine has.
    """
    count = parameter_count(config, num_features, num_classes)
    needed, present = _TRAINING_BYTES * count, physical_bytes()
    if needed > present:
        encoder = config.encoder
        raise ConfigError(
            f"the model would have {count:,} parameters, which take {needed / 1e9:,.1f} GB in "
            f"training, but this machine has {present / 1e9:,.1f} GB: lower encoder.hidden "
            f"({encoder.hidden:,}), encoder.latent ({encoder.latent:,}), encoder.layers "
            f"({encoder.layers:,}) or flow.radial_layers ({config.flow.radial_layers:,})",
            arguments=("encoder.hidden", "encoder.latent"),
        )


def _perceptron(config: RunConfig, num_inputs: int, num_outputs: int) -> int:
    hidden, layers = config.encoder.hidden, config.encoder.layers
    widths = [*[hidden] * (layers - 1), num_outputs]
    count = (num_inputs + 1) * widths[0] + sum((hidden + 1) * width for width in widths[1:])
    return count + (2 * hidden * (layers - 1) if config.encoder.batch_norm else 0)
