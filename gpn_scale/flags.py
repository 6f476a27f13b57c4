"""Flags of the command line that stand for arguments of the library.

Library errors name arguments of Python calls. A command prints the flags that set them as well.
"""

from gpn_scale.errors import GpnScaleError

FLAGS = {
    "clusters": "--clusters N",
    "data_dir": "--data-dir DIR",
    "dataset": "--dataset NAME",
    "device": "--device NAME",
    "datasets": "--datasets A,B",
    "existing": "--resume or --overwrite",
    "experiments": "--experiment NAME[,NAME]",
    "fractions": "--fractions A,B",
    "inits": "--inits M",
    "k": "--k K",
    "left_out_classes": "--left-out-classes N",
    "memory_bytes": "--memory-budget GB",
    "models": "--models A,B",
    "nodes": "--nodes FILE",
    "out": "--out PATH",
    "paper": "--paper DIR",
    "processes": "--processes P",
    "resume": "--resume",
    "roots": "--roots all",
    "overwrite": "--overwrite",
    "splits": "--splits N",
    "store": "--ppr STORE",
    "studies": "--studies A,B",
}
"""Flag of each argument; fields of a configuration (`section.field`) are set with `--set`."""


def with_flags(error: GpnScaleError) -> str:
    """Return the error's message, followed by the flags of the arguments that it names.

    >>> from gpn_scale.errors import ConfigError
    >>> with_flags(ConfigError("k is 0, expected at least 1", arguments=("k",)))
    'k is 0, expected at least 1 (on the command line: --k K)'
    """
    flags = [_flag(name) for name in error.arguments]
    known = ", ".join(flag for flag in flags if flag)
    return f"{error} (on the command line: {known})" if known else str(error)


def _flag(argument: str) -> str:
    if "." in argument:
        return f"--set {argument}=VALUE"
    return FLAGS.get(argument, "")
