"""Flags of the command line that stand for arguments of the library.

Library errors name arguments of Python calls. A command prints the flags that set them as well.
"""

from collections.abc import Mapping

from gpn_scale.errors import GpnScaleError

FLAGS = {
    "build_store": "python -m precompute ... --out STORE",
    "class_sets": "--class-sets A,B",
    "clusters": "--clusters P",
    "confidence": "--confidence C",
    "data.left_out_classes": "--left-out-classes N|paper",
    "data_dir": "--data-dir DIR",
    "dataset": "--dataset NAME",
    "datasets": "--datasets A,B",
    "device": "--device NAME",
    "error_among_answered": "--error-among-answered E",
    "existing": "--resume or --overwrite",
    "existing=overwrite": "python -m precompute ... --overwrite",
    "existing=resume": "python -m precompute ... --resume",
    "experiments": "--experiment NAME[,NAME]",
    "explain": "--explain M",
    "fractions": "--fractions A,B",
    "inits": "--inits M",
    "k": "--k K",
    "keep": "--keep N",
    "label_next": "--label-next B",
    "left_out_classes": "--left-out-classes N|paper",
    "memory_bytes": "--memory-budget GB",
    "method": "--method auto|sweep|push",
    "mode": "--mode exact|minibatch",
    "model": "--model GPN+|GPN",
    "models": "--models A,B",
    "nodes": "--nodes FILE",
    "out": "--out PATH",
    "overwrite": "--overwrite",
    "paper": "--paper DIR",
    "png": "--png",
    "processes": "--processes P",
    "push_tolerance": "--push-tolerance E",
    "review": "--review N",
    "roots=None": "python -m precompute ... --roots all --overwrite",
    "rows": "--ppr STORE",
    "run": "--run RUN",
    "split.rng_seed": "--split-seed S",
    "splits": "--splits N",
    "store": "--ppr STORE",
    "studies": "--studies A,B",
    "sweep_tolerance": "--sweep-tolerance E",
    "sweeps": "--sweeps N",
    "train.epochs": "--epochs E",
    "train.rng_seed": "--seed S",
}
"""Flag or command for each argument; other configuration fields (`section.field`) have `--set`."""

PRECOMPUTE_FLAGS = FLAGS | {
    "diffusion.normalisation": "--normalisation sym|rw",
    "diffusion.self_loops": "--self-loops on|off",
    "diffusion.steps": "--steps K|inf",
    "diffusion.teleport": "--teleport T",
    "target": "--target-mass M or --target-recall R",
}
"""The same for `python -m precompute`, which has a flag for each field of the diffusion."""


def with_flags(error: GpnScaleError, flags: Mapping[str, str] = FLAGS) -> str:
    """Return the error's message, followed by the flags of the arguments that it names.

    Args:
        error: Its `arguments` are looked up in `flags`; those without a flag are left out.
        flags: Flag of each argument in the command that prints the message.

    >>> from gpn_scale.errors import ConfigError
    >>> with_flags(ConfigError("k is 0, expected at least 1", arguments=("k",)))
    'k is 0, expected at least 1 (on the command line: --k K)'
    >>> with_flags(ConfigError("2 is above 1", arguments=("encoder.dropout",)))
    '2 is above 1 (on the command line: --set encoder.dropout=VALUE)'
    """
    named = dict.fromkeys(_flag(name, flags) for name in error.arguments)
    hint = ", ".join(flag for flag in named if flag)
    return f"{error} (on the command line: {hint})" if hint else str(error)


def _flag(argument: str, flags: Mapping[str, str]) -> str:
    if argument in flags:
        return flags[argument]
    return f"--set {argument}=VALUE" if "." in argument else ""
