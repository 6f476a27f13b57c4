"""The files of a run, read and checked: configuration, epochs, report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from gpn_scale import __version__
from gpn_scale.block_checksums import has_hash
from gpn_scale.checked_json import read_checked_json
from gpn_scale.config import RunConfig
from gpn_scale.errors import ConfigError, FileError, RunError
from gpn_scale.evaluation.report import Report
from gpn_scale.json_shapes import check_shape
from gpn_scale.page.facts import TrainingCurves
from gpn_scale.reading import read_json
from gpn_scale.train.metrics_log import read_metrics
from gpn_scale.train.run_directory import RunDirectory

_POINTS = 600
"""Largest number of points of a training curve."""
_AGAIN = "train again to get a page"
_NUMBERS = {str: (float, None)}
_INTERVALS = {str: [float, float]}
_SHAPE = {
    "dataset": str,
    "mode": str,
    "config": dict,
    "fingerprint": str,
    "graph": {"nodes": int, "edges": int, "features": int, "classes": int, "train_nodes": int}
    | {"fingerprint": str, "summary?": {"edges": int}},
    "seconds": _NUMBERS,
    "peak_rss_bytes": int,
    "epochs": int,
    "best_epoch": int,
    "minibatch": dict,
    "ranks": {"seconds?": _NUMBERS},
    "metrics": {
        "test": {name: (float, None) for name in ("accuracy", "ece", "brier", "nll")}
        | {"accuracy_largest_class?": (float, None)}
    },
    "ood": dict,
    "parts": {str: {"epochs": int, "best_epoch": int}},
    "calibration": dict,
    "intervals": {
        "test?": _INTERVALS,
        "ood?": {str: ([float, float], {str: ([float, float], _INTERVALS)})},
    },
    "warnings": [str],
    "left_out": [str],
    "files?": {str: str},
}
"""What the page uses of `report.json`."""
_METRICS = {str: {str: float}}
_CHANGE = {"run": str, "model": str, "nodes": {str: int}, "before": _METRICS, "after": _METRICS}
"""What it uses of the entry `warm_start`, unless that is empty."""
_LATER_FIELDS = {"files", "warm_start"}
"""Fields that reports of this version may be without, since they were written before."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunRecord:
    """The files of a run that the page needs."""

    config: RunConfig
    training: TrainingCurves
    report: Report | None
    """None if the run is not finished."""


def read_run(directory: RunDirectory) -> RunRecord:
    """Read the files of a run, finished or not.

    Raises:
        RunError: the directory holds no run, or a file is damaged or of another version.
    """
    if not directory.config.exists():
        raise RunError(
            f"{directory.path} holds no run: {directory.config.name} is missing, expected a "
            "directory that training has written to",
            arguments=("run",),
        )
    config, report = _config(directory.config), None
    if directory.report.exists() and directory.model.exists():
        report = _report(directory.report)
        if config.to_dict() != report.config:
            raise RunError(
                f"{directory.config} is not the configuration that {directory.report.name} was "
                f"made with, so one of them is damaged: {_AGAIN}"
            )
        check_unchanged(report, directory.metrics)
    return RunRecord(config=config, training=_curves(directory.metrics), report=report)


def check_unchanged(report: Report, path: Path) -> None:
    """Refuse a file that is another one than when the report was written.

    Raises:
        RunError: it has changed or cannot be read.
    """
    wanted = report.files.get(path.name)
    try:
        is_same = wanted is None or has_hash(path, wanted)
    except (OSError, FileError) as error:
        raise RunError(f"{path} cannot be read ({error}): {_AGAIN}") from error
    if not is_same:
        raise RunError(
            f"{path} is damaged: its checksum is another one than in the run's report: {_AGAIN}"
        )


def _config(path: Path) -> RunConfig:
    try:
        return RunConfig.from_dict(_values(path))
    except ConfigError as error:
        raise RunError(
            f"{path} is not a configuration of version {__version__} ({error}), so another version "
            f"has written it: {_AGAIN}"
        ) from error


def _report(path: Path) -> Report:
    try:
        values = read_checked_json(path)
    except FileError as error:
        raise RunError(f"{error}: {_AGAIN}") from error
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error}): {_AGAIN}") from error
    version = values.get("version")
    if version != __version__:
        raise RunError(
            f"{path} was written by version {version}, this is version {__version__}: {_AGAIN}"
        )
    expected = {field.name for field in fields(Report)}
    if different := (expected ^ values.keys()) - _LATER_FIELDS:
        raise RunError(
            f"{path} is damaged or of another version (field {min(different)!r}): {_AGAIN}"
        )
    try:
        check_shape(values, _SHAPE, path.name)
        if change := values.get("warm_start"):
            check_shape(change, _CHANGE, f"{path.name}.warm_start")
            if different := change.keys() - _CHANGE.keys():
                raise FileError(f"{path.name}.warm_start has an entry {min(different)!r}")
    except FileError as error:
        raise RunError(f"{path} is damaged ({error}): {_AGAIN}") from error
    return Report(**values)


def _values(path: Path) -> dict[str, Any]:
    try:
        values = read_json(path, allow_nan=True)
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}): {_AGAIN}") from error
    if not isinstance(values, dict):
        raise RunError(f"{path} holds {type(values).__name__}, expected an object: {_AGAIN}")
    return values


def _curves(path: Path) -> TrainingCurves:
    try:
        lines = [
            line
            for line in read_metrics(path)
            if "part" not in line or line["part"] == "features"  # earlier versions had no parts
        ]
        return training_curves(lines)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{path} cannot be read ({type(error).__name__}: {error}), so it is damaged or of "
            f"another version: {_AGAIN}"
        ) from error


def training_curves(epochs: Sequence[Mapping[str, Any]]) -> TrainingCurves:
    """Return the curves of one part's epochs, each with the fields of an `EpochRecord`."""
    best = int(epochs[-1]["best_epoch"]) if epochs else 0
    keep = np.unique(np.linspace(0, len(epochs) - 1, min(_POINTS, len(epochs))).astype(int))
    names = ("epoch", "loss", "val_cross_entropy", "val_accuracy")
    columns = {name: np.array([epochs[i][name] for i in keep], np.float64) for name in names}
    return TrainingCurves(best_epoch=best, **columns)
