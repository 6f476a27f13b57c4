"""Safetensors files with JSON in their header, and a trainer's whole state in such a file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.optim import Optimizer

from gpn_scale.block_checksums import text_checksum
from gpn_scale.config import RunConfig
from gpn_scale.errors import RunError
from gpn_scale.field_types import shown
from gpn_scale.files import write_bytes
from gpn_scale.reading import check_file, parse_json
from gpn_scale.train.trainer import Trainer

FORMAT = 1
_FACTS: dict[str, tuple[type, ...]] = {
    "config": (dict,),
    "graph": (str,),
    "epoch": (int,),
    "step": (int,),
    "loss_sum": (int, float),
    "best_epoch": (int,),
    "best_cross_entropy": (int, float, type(None)),
}
"""Entries of a checkpoint besides its tensors, with their types."""
_MOST_STEPS = 1 << 53
_CHECKSUM = "checksum"
_MAY_DIFFER = {"train.patience", "opinion.patience", "flow.memory_mib", "minibatch.workers"}
_MAY_DIFFER |= {"flow.compiled"}
"""Fields that may change the length, memory or speed of training, but not its steps."""


def save_tensors(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Replace `path` atomically with the tensors, with `facts` as JSON in the file's header.

    Equal contents give equal bytes: the header has a single entry, since safetensors would write
    several in random order. It includes a checksum of all tensors and facts.
    """
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    facts = parse_json(json.dumps({"format": FORMAT, **facts}), "facts", allow_nan=True)
    header = {"facts": json.dumps(facts | {_CHECKSUM: _checksum(stored, facts)})}
    write_bytes(path, save(stored, header))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and facts that `save_tensors` wrote.

    Files of earlier versions have no checksum and are not checked.

    Raises:
        RunError: the file is missing, damaged or of another format.
    """
    try:
        check_file(path)
        with safe_open(path, framework="pt") as file:
            facts = parse_json(
                (file.metadata() or {}).get("facts", "{}"), "its header", allow_nan=True
            )
            if not isinstance(facts, dict):
                raise ValueError("its header is not an object")
            stored_format = facts.get("format")
            if stored_format != FORMAT:
                raise RunError(
                    f"{path} has format {stored_format!r}, expected {FORMAT!r}: "
                    "it was written by another version, train again"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        wanted = facts.pop(_CHECKSUM, None)
        if wanted is not None and (actual := _checksum(tensors, facts)) != wanted:
            raise RunError(
                f"{path} is damaged: its checksum is {actual}, expected {wanted}; remove it and "
                "train again"
            )
        del facts["format"]
        return tensors, facts
    except FileNotFoundError:
        raise RunError(f"{path} does not exist, expected a file written by training") from None
    except (SafetensorError, OSError, KeyError, ValueError, RuntimeError, TypeError) as error:
        raise RunError(f"{path} cannot be read ({error}); remove it and train again") from error


def _checksum(tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> str:
    """Return a hash of all names, types, shapes, values and facts."""
    parts: list[str | memoryview] = [json.dumps(facts, sort_keys=True)]
    for name, tensor in sorted(tensors.items()):
        parts.append(f"{name} {_described(tensor)} ")
        parts.append(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return text_checksum(*parts)


def check_tensors(
    source: Path | str, tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor]
) -> None:
    """Refuse tensors that differ from those expected in name, shape or type.

    Args:
        source: Origin of the tensors, for messages.
        tensors: The tensors.
        expected: Tensors of the expected names, shapes and types.

    Raises:
        RunError: they differ; the message names the first that does.
    """
    for name in sorted(tensors.keys() | expected.keys()):
        got, wanted = (_described(each.get(name)) for each in (tensors, expected))
        if got != wanted:
            raise RunError(
                f"{source} has {got} for {name!r}, expected {wanted}: it belongs to another model "
                "or version; train again"
            )


def _described(tensor: Tensor | None) -> str:
    return "nothing" if tensor is None else f"{tensor.dtype} of shape {list(tensor.shape)}"


def save_checkpoint(path: Path, trainer: Trainer, config: RunConfig, graph: str) -> None:
    """Write everything that `restore_checkpoint` needs; `graph` is the graph's fingerprint."""
    trainer.catch_up()
    state = trainer.state
    tensors = {f"model.{name}": value for name, value in trainer.model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in state.best_state.items()}
    for index, slots in trainer.optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{index}.{name}": value for name, value in slots.items()}
    tensors["generator"] = trainer.generator.get_state()
    facts = {
        "config": config.to_dict(),
        "graph": graph,
        "epoch": state.epoch,
        "step": state.step,
        "loss_sum": state.loss_sum,
        "best_epoch": state.best_epoch,
        "best_cross_entropy": state.best_cross_entropy if state.best_epoch else None,
        "seconds": state.seconds,
    }
    save_tensors(path, tensors, facts)


def restore_checkpoint(path: Path, trainer: Trainer, config: RunConfig, graph: str) -> None:
    """Set `trainer` to the state of the saved one.

    Raises:
        RunError: the file cannot be read, or belongs to another configuration or graph.
    """
    tensors, facts = load_tensors(path)
    _check_same_run(path, facts, config, graph)
    _check_counts(path, facts, trainer.task.num_steps)
    steps = facts["epoch"] * trainer.task.num_steps + facts["step"]
    optimiser = trainer.new_optimiser(trainer.phase(max(steps, 1)))
    check_tensors(path, tensors, _expected(trainer, optimiser, tensors))
    state = trainer.state
    state.epoch, state.best_epoch = facts["epoch"], facts["best_epoch"]
    state.step, state.loss_sum = facts["step"], facts["loss_sum"]
    seconds = facts.get("seconds", 0.0)  # earlier versions did not count them
    state.seconds = float(seconds) if isinstance(seconds, int | float) else 0.0
    if facts["best_cross_entropy"] is not None:
        state.best_cross_entropy = facts["best_cross_entropy"]
    state.best_state = _below("best.", tensors)
    trainer.model.load_state_dict(_below("model.", tensors))
    slots: dict[int, dict[str, Tensor]] = {}
    for key, value in _below("optimiser.", tensors).items():
        index, name = key.split(".")
        slots.setdefault(int(index), {})[name] = value
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": slots, "param_groups": groups})
    trainer.optimiser = optimiser
    try:
        trainer.generator.set_state(tensors["generator"])
    except RuntimeError as error:
        raise RunError(
            f"{path} has a damaged generator ({error}); remove it and train again"
        ) from error


def _expected(
    trainer: Trainer, optimiser: Optimizer, tensors: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Return tensors as a checkpoint with these names must hold; only shapes and types count."""
    state = trainer.model.state_dict()
    expected = {f"model.{name}": value for name, value in state.items()}
    if _below("best.", tensors):  # none before the first epoch of the main phase
        expected |= {f"best.{name}": value for name, value in state.items()}
    parameters = [each for group in optimiser.param_groups for each in group["params"]]
    for index, parameter in enumerate(parameters):
        if _below(f"optimiser.{index}.", tensors):  # none before the first step
            slots = {"step": torch.zeros(()), "exp_avg": parameter, "exp_avg_sq": parameter}
            expected |= {f"optimiser.{index}.{name}": value for name, value in slots.items()}
    return expected | {"generator": trainer.generator.get_state()}


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key[len(prefix) :]: t for key, t in tensors.items() if key.startswith(prefix)}


def _check_same_run(path: Path, facts: dict[str, Any], config: RunConfig, graph: str) -> None:
    if "epoch" not in facts:
        raise RunError(f"{path} is a model file, expected a training checkpoint")
    for key, kinds in _FACTS.items():
        if key not in facts or type(facts[key]) not in kinds:
            given = shown(facts[key]) if key in facts else "nothing"
            raise RunError(
                f"{path} has {given} for {key!r}: it is damaged; remove it and train again"
            )
    if facts["graph"] != graph:
        raise RunError(
            f"{path} was trained on another graph, split or store (fingerprint {facts['graph']}, "
            f"now {graph}): use the same data, or overwrite the run",
            arguments=("overwrite",),
        )
    # A checkpoint may be older than some fields, which then have their defaults.
    configs = (RunConfig.from_dict(facts["config"]), config)
    saved, now = (_flat(each.to_dict()) for each in configs)
    may_differ = _MAY_DIFFER
    if "cosine" not in (config.train.schedule, config.opinion.schedule):
        # Otherwise the learning rate depends on the number of epochs.
        may_differ = may_differ | {"train.epochs", "opinion.epochs"}
    for key in sorted(saved.keys() | now.keys()):
        if key not in may_differ and saved.get(key) != now.get(key):
            raise RunError(
                f"{path} was trained with {key}={saved.get(key)}, now it is {now.get(key)}: "
                "use the same configuration to resume, or overwrite the run",
                arguments=("overwrite",),
            )


def _check_counts(path: Path, facts: dict[str, Any], num_steps: int) -> None:
    """Refuse counts that no training has, with which it would skip steps or never stop."""
    most = {"epoch": _MOST_STEPS, "best_epoch": facts["epoch"], "step": num_steps}
    for key, bound in most.items():
        if not 0 <= facts[key] <= bound:
            raise RunError(
                f"{path} has {shown(facts[key])} for {key!r}, expected 0 to {bound:,}: it is "
                "damaged; remove it and train again"
            )


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= (
            _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        )
    return flat
