"""Hyper-parameter studies of the paper's appendix: fields, and the values that each takes.

The paper shows entropy weight and weight decay as plots without their values; those here are ours.
"""

from collections.abc import Sequence

from gpn_scale.errors import ConfigError

STUDIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "latent": ("encoder.latent", ("6", "10", "16")),
    "radial-layers": ("flow.radial_layers", ("6", "10", "16")),
    "teleport": ("diffusion.teleport", ("0.05", "0.1", "0.2")),
    "budget": ("evidence.budget", ("latent", "latent_classes")),
    "entropy": ("train.entropy_weight", ("0", "1e-5", "1e-4", "1e-3", "1e-2", "1e-1")),
    "weight-decay": ("train.weight_decay", ("0", "1e-4", "5e-4", "1e-3", "1e-2", "1e-1")),
}
"""Studies by name: the key of a field, and its values as texts."""
STUDY_EXPERIMENTS = ("clean", "left-out-classes", "isolated")
"""Experiments of every study."""


def studied_models(models: Sequence[str], studies: str) -> list[str]:
    """Return each model with each value of the studies, one field changed at a time.

    Args:
        models: Names of models, without changes in brackets.
        studies: Names of studies separated by commas, or `all`.

    Raises:
        ConfigError: a study does not exist, or a model has changes in brackets.
    """
    names = list(STUDIES) if studies == "all" else [name for name in studies.split(",") if name]
    for name in names:
        if name not in STUDIES:
            raise ConfigError(
                f"studies got {name!r}, expected names among {', '.join(STUDIES)}, or all",
                arguments=("studies",),
            )
    for model in models:
        if "[" in model:
            raise ConfigError(
                f"hyper-parameter studies take models without brackets, got {model!r}",
                arguments=("models",),
            )
    return [
        f"{model}[{field}={value}]"
        for model in models
        for field, values in (STUDIES[name] for name in names)
        for value in values
    ]
