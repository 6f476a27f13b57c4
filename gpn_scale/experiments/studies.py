"""Hyper-parameter studies of the paper's appendix: fields, and the values that each is given.

Those of entropy weight and weight decay are figures there, whose values are not told.
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
STUDY_EXPERIMENTS = ("clean", "left-out-classes", "isolated")


def studied_models(models: Sequence[str], studies: str) -> list[str]:
    """Each model with each value of the studies, one changed at a time.

    Args:
        models: Names without changes of their own.
        studies: Names separated by commas, or `all`.

    Raises:
        ConfigError: there is no such study, or a model has changes already.
    """
    names = list(STUDIES) if studies == "all" else [name for name in studies.split(",") if name]
    for name in names:
        if name not in STUDIES:
            raise ConfigError(
                f"--studies got {name!r}, expected some of {', '.join(STUDIES)}, or all"
            )
    for model in models:
        if "[" in model:
            raise ConfigError(
                f"hyper-parameters studies models by name, got {model!r}: leave out its brackets"
            )
    return [
        f"{model}[{field}={value}]"
        for model in models
        for field, values in (STUDIES[name] for name in names)
        for value in values
    ]
