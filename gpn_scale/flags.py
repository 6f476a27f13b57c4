"""Flags of the command line that stand for arguments of the library.

Library errors name arguments of Python calls. A command prints the flags that set them as well.
"""

from collections.abc import Mapping

from gpn_scale.errors import GpnScaleError

FLAGS = {
    "build_store": "gpn-precompute ... --out STORE",
    "class_sets": "--class-sets A,B",
    "clusters": "--clusters P",
    "confidence": "--confidence C",
    "config": "--config FILE",
    "data.left_out_classes": "--left-out-classes N|paper",
    "data_dir": "--data-dir DIR",
    "dataset": "--dataset NAME",
    "datasets": "--datasets A,B",
    "device": "--device NAME",
    "error_among_answered": "--error-among-answered E",
    "existing": "--resume or --overwrite",
    "existing=overwrite": "gpn-precompute ... --overwrite",
    "existing=resume": "gpn-precompute ... --resume",
    "experiments": "--experiment NAME[,NAME]",
    "explain": "--explain M",
    "finish_store": "gpn-precompute finish STORE",
    "fractions": "--fractions A,B",
    "inits": "--inits M",
    "k": "--k K",
    "keep": "--keep N",
    "label_next": "--label-next B",
    "left_out_classes": "--left-out-classes N|paper",
    "memory_bytes": "--memory-budget GB",
    "method": "--method auto|sweep|push",
    "metrics": "--metrics A,B",
    "mode": "--mode exact|minibatch",
    "model": "--model GPN+|GPN",
    "models": "--models A,B",
    "nodes": "--nodes FILE",
    "out": "--out PATH",
    "overwrite": "--overwrite",
    "paper": "--paper DIR",
    "plugins": "--plugin FILE",
    "png": "--png",
    "processes": "--processes P",
    "push_tolerance": "--push-tolerance E",
    "repair_store": "gpn-precompute repair STORE",
    "resume": "--resume",
    "review": "--review N",
    "roots=None": "gpn-precompute ... --roots all --overwrite",
    "rows": "--ppr STORE",
    "rows_normalisation": "gpn-precompute ... --overwrite --normalisation sym|rw",
    "rows_self_loops": "gpn-precompute ... --overwrite --self-loops on|off",
    "rows_steps": "gpn-precompute ... --overwrite --steps K|inf",
    "rows_teleport": "gpn-precompute ... --overwrite --teleport T",
    "run": "--run RUN",
    "split.rng_seed": "--split-seed S",
    "splits": "--splits N",
    "store": "--ppr STORE",
    "studies": "--studies A,B",
    "sweep_tolerance": "--sweep-tolerance E",
    "sweeps": "--sweeps N",
    "train.epochs": "--epochs E",
    "train.rng_seed": "--seed S",
    "update_store": "gpn-precompute update STORE --dataset NEW",
    "warm_start": "--warm-start RUN",
}
"""Flag or command for each argument; other configuration fields (`section.field`) have `--set`."""

PRECOMPUTE_FLAGS = FLAGS | {
    "changes": "--changes FILE",
    "diffusion.normalisation": "--normalisation sym|rw",
    "diffusion.self_loops": "--self-loops on|off",
    "diffusion.steps": "--steps K|inf",
    "diffusion.teleport": "--teleport T",
    "part": "--part I/N",
    "target": "--target-mass M or --target-recall R",
    "tolerance": "--tolerance E",
    "write_graph": "--write-graph DIR/NEW",
}
"""The same for `gpn-precompute`, which has a flag for each field of the diffusion."""


IMPORT_FLAGS = FLAGS | {
    "directed": "--directed",
    "drop": "--drop COL,...",
    "edges": "--edges FILE",
    "id": "--id COL",
    "kinds": "--kinds COL=KIND,...",
    "label": "--label COL",
    "like": "--like DIR/OLD",
    "missing": "--missing flag|fill|refuse",
    "order": "--order like|table",
    "source": "--source COL",
    "split": "--split COL",
    "structural_features": "--structural-features auto|on|off",
    "target": "--target COL",
    "unknown_ids": "--unknown-ids refuse|add|drop",
    "weight": "--weight COL",
}
"""The same for the import of tables."""

COMPARE_FLAGS = FLAGS | {
    "compare": "--compare A B",
    "graph_a": "--graphs DATASET_A DATASET_B",
    "graph_b": "--graphs DATASET_A DATASET_B",
    "graphs": "--graphs DATASET_A DATASET_B",
}
"""The same for comparisons of two runs or tables."""

NEW_NODES_FLAGS = FLAGS | {
    name: IMPORT_FLAGS[name] for name in ("id", "source", "target", "weight")
}
"""The same for predictions, which may be of new nodes in tables."""

SERVE_FLAGS = FLAGS | {
    "decisions": "--decisions FILE",
    "host": "--host HOST",
    "max_body": "--max-body SIZE",
    "max_new_nodes": "--max-new-nodes N",
    "max_nodes": "--max-nodes N",
    "poll_seconds": "--poll-seconds S",
    "port": "--port PORT",
    "request_seconds": "--request-seconds S",
    "token_file": "--token-file FILE",
    "workers": "--workers W",
}
"""The same for the service."""


def with_flags(error: GpnScaleError, flags: Mapping[str, str] = FLAGS) -> str:
    """Return the error's message, followed by the flags of the arguments that it names.

    Args:
        error: Its `arguments` are looked up in `flags`; those without a flag are left out. An
            argument with a value, `name=value`, gives its flag with this value.
        flags: Flag of each argument in the command that prints the message.

    >>> from gpn_scale.errors import ConfigError
    >>> with_flags(ConfigError("k is 0, expected at least 1", arguments=("k",)))
    'k is 0, expected at least 1 (on the command line: --k K)'
    >>> with_flags(ConfigError("2 is above 1", arguments=("encoder.dropout",)))
    '2 is above 1 (on the command line: --set encoder.dropout=VALUE)'
    >>> with_flags(ConfigError("0.2 is not 0.1", arguments=("diffusion.teleport=0.2",)))
    '0.2 is not 0.1 (on the command line: --set diffusion.teleport=0.2)'
    """
    named = dict.fromkeys(_flag(name, flags) for name in error.arguments)
    hint = ", ".join(flag for flag in named if flag)
    message = error.sentence
    between = "\n" if error.is_table else " "  # below a table of faults
    return f"{message}{between}(on the command line: {hint})" if hint else message


def _flag(argument: str, flags: Mapping[str, str]) -> str:
    if argument in flags:
        return flags[argument]
    name, _, value = argument.partition("=")
    if name in flags and value:
        return f"{flags[name].rpartition(' ')[0]} {value}"
    return f"--set {name}={value or 'VALUE'}" if "." in name else ""
