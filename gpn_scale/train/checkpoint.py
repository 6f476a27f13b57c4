"""A trainer's whole state in one safetensors file, its JSON in the header; written atomically."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import Optimizer

from gpn_scale.config import RunConfig
from gpn_scale.errors import RunError
from gpn_scale.files import replacing
from gpn_scale.train.trainer import Trainer

FORMAT = 1
_MAY_DIFFER = {"train.patience", "flow.memory_mib", "minibatch.workers"}
"""Fields that change length, memory or speed of training but, up to round-off, not its path."""


def save_tensors(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Replaces `path` by the tensors, with `facts` as JSON in the file's header.

    Equal contents are equal bytes: one entry of the header, since safetensors writes several in an
    order of chance.
    """
    header = {"facts": json.dumps({"format": FORMAT, **facts})}
    with replacing(path) as temporary:
        save_file({k: v.detach().cpu().contiguous() for k, v in tensors.items()}, temporary, header)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `save_tensors` wrote.

    Raises:
        RunError: the file is missing, damaged or of another format.
    """
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {}).get("facts", "{}"))
            found = facts.pop("format", None)
            if found != FORMAT:
                raise RunError(
                    f"{path} has format {found!r}, expected {FORMAT!r}: "
                    "it was written by another version, train again"
                )
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}, facts
    except FileNotFoundError:
        raise RunError(f"{path} does not exist, expected a file written by training") from None
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}); remove it and train again") from error


def check_tensors(path: Path, found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Refuses the tensors of a file that differ from those expected in name, shape or type.

    Raises:
        RunError: they do; the first that does is named.
    """
    for name in sorted(found.keys() | expected.keys()):
        got, wanted = (_described(tensors.get(name)) for tensors in (found, expected))
        if got != wanted:
            raise RunError(
                f"{path} has {got} for {name!r}, expected {wanted}: it is of another model or "
                "version, train again"
            )


def _described(tensor: Tensor | None) -> str:
    return "nothing" if tensor is None else f"{tensor.dtype} of shape {list(tensor.shape)}"


def save_checkpoint(path: Path, trainer: Trainer, config: RunConfig, graph: str) -> None:
    """Everything that `restore_checkpoint` needs; `graph` is the graph's fingerprint."""
    progress = trainer.progress
    tensors = {f"model.{name}": value for name, value in trainer.model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in progress.best_state.items()}
    for index, slots in trainer.optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{index}.{name}": value for name, value in slots.items()}
    tensors["generator"] = trainer.generator.get_state()
    best = progress.best_cross_entropy
    facts = {
        "config": config.to_dict(),
        "graph": graph,
        "epoch": progress.epoch,
        "step": progress.step,
        "loss_sum": progress.loss_sum,
        "best_epoch": progress.best_epoch,
        "best_cross_entropy": best if progress.best_epoch else None,
    }
    save_tensors(path, tensors, facts)


def restore_checkpoint(path: Path, trainer: Trainer, config: RunConfig, graph: str) -> None:
    """Puts `trainer` where the saved one was.

    Raises:
        RunError: the file cannot be used, or is of another configuration or graph.
    """
    tensors, facts = load_tensors(path)
    _check_same_run(path, facts, config, graph)
    steps = facts["epoch"] * trainer.task.num_steps + facts["step"]
    optimiser = trainer.new_optimiser(trainer.phase(max(steps, 1)))
    check_tensors(path, tensors, _expected(trainer, optimiser, tensors))
    progress = trainer.progress
    progress.epoch, progress.best_epoch = facts["epoch"], facts["best_epoch"]
    progress.step, progress.loss_sum = facts["step"], facts["loss_sum"]
    if facts["best_cross_entropy"] is not None:
        progress.best_cross_entropy = facts["best_cross_entropy"]
    progress.best_state = _below("best.", tensors)
    trainer.model.load_state_dict(_below("model.", tensors))
    slots: dict[int, dict[str, Tensor]] = {}
    for key, value in _below("optimiser.", tensors).items():
        index, name = key.split(".")
        slots.setdefault(int(index), {})[name] = value
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": slots, "param_groups": groups})
    trainer.optimiser = optimiser
    trainer.generator.set_state(tensors["generator"])


def _expected(
    trainer: Trainer, optimiser: Optimizer, tensors: dict[str, Tensor]
) -> dict[str, Tensor]:
    """What a checkpoint with the names of `tensors` must hold; only shapes and types count."""
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
    if facts["graph"] != graph:
        raise RunError(
            f"{path} was trained on another graph, split or store (fingerprint {facts['graph']}, "
            f"now {graph}): use the same data, or --overwrite to start anew"
        )
    saved, now = _flat(facts["config"]), _flat(config.to_dict())
    may_differ = _MAY_DIFFER
    if config.train.schedule == "constant":  # else the learning rate depends on them
        may_differ = may_differ | {"train.epochs"}
    for key in sorted(saved.keys() | now.keys()):
        if key not in may_differ and saved.get(key) != now.get(key):
            raise RunError(
                f"{path} was trained with {key}={saved.get(key)}, now it is {now.get(key)}: "
                "give the same options to resume, or --overwrite to start anew"
            )


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= (
            _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        )
    return flat
