"""`log_run`: logs a finished run to MLflow; the only module that imports mlflow (extra [mlflow]).

A run directory has all that a tracking server wants, so that training needs no server: it is logged
afterwards, as often and from wherever one likes.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpn_scale.errors import RunError
from gpn_scale.extras import check_extra
from gpn_scale.reading import read_json
from gpn_scale.train.metrics_log import read_metrics
from gpn_scale.train.run_directory import RunDirectory

MOST_PARAMETERS, MOST_METRICS = 100, 1000
"""Numbers of values that MLflow takes in one request."""

_CURVES = ("loss", "val_cross_entropy", "val_accuracy")
_RESULTS = ("metrics", "ood", "seconds")
"""Sections of report.json whose numbers are logged."""
_FORBIDDEN = re.compile(r"[^\w\-. :/]", re.ASCII)
"""Characters that names of metrics must not have."""
_LONGEST_NAME, _LONGEST_VALUE = 250, 6000


def log_run(
    run: Path | str,
    *,
    experiment: str = "gpn-scale",
    name: str | None = None,
    tracking_uri: str | None = None,
    files: bool = True,
) -> str:
    """Log a finished run directory to MLflow, and return the id of the new MLflow run.

    Parameters are all fields of the configuration, such as `train.epochs`. Metrics per epoch are
    `loss`, `val_cross_entropy` and `val_accuracy`, those of the opinion under `opinion/`. Final
    figures are those of report.json, such as `test/accuracy`, `ood/auroc_p_known` and
    `seconds/train`; numbers that are not finite are left out. Files are the configuration,
    `metrics.jsonl`, the reports with their plots, the predictions and the model.

    >>> log_run("runs/mine")
    Traceback (most recent call last):
        ...
    gpn_scale.errors.RunError: runs/mine holds no finished run (report.json is missing): train first

    Args:
        run: The run directory.
        experiment: Name of the MLflow experiment, which is created if it does not exist.
        name: Name of the MLflow run; by default that of the run directory.
        tracking_uri: Where to log; None for what MLflow is set to (`MLFLOW_TRACKING_URI`).
        files: Whether to log the files too.

    Raises:
        RunError: MLflow is not installed or refuses, or the directory holds no finished run.
        FileError: a file of the run cannot be read.
    """
    directory = RunDirectory(Path(run))
    if not directory.report.exists() or not directory.config.exists():
        raise RunError(
            f"{directory.path} holds no finished run ({directory.report.name} is missing): train "
            "first",
            arguments=("run",),
        )
    check_extra("mlflow", "logging to MLflow")
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    settings = list(_leaves(_object(directory.config)))
    report = _object(directory.report)
    numbers = [*_curves(directory), *_results(report)]
    label = directory.path.resolve().name if name is None else name
    try:
        client = MlflowClient(tracking_uri)
        logged = client.create_run(_experiment(client, experiment), run_name=label)
        _log_values(client, logged, settings, numbers)
        client.set_tag(logged.info.run_id, "gpn_scale.version", str(report.get("version")))
        for path in _files(directory) if files else ():
            folder = None if path.parent == directory.path else path.parent.name
            client.log_artifact(logged.info.run_id, str(path), folder)
        client.set_terminated(logged.info.run_id)
    except (MlflowException, OSError) as error:
        raise RunError(
            f"MLflow refused the run {directory.path} ({error}): check tracking_uri and "
            "MLFLOW_TRACKING_URI, then log the run again by log_run",
            arguments=("tracking_uri",),
        ) from error
    return str(logged.info.run_id)


def _experiment(client: Any, name: str) -> str:
    existing = client.get_experiment_by_name(name)
    return str(client.create_experiment(name) if existing is None else existing.experiment_id)


def _log_values(
    client: Any,
    logged: Any,
    settings: Sequence[tuple[str, Any]],
    numbers: Sequence[tuple[str, float, int]],
) -> None:
    from mlflow.entities import Metric, Param

    run_id, milliseconds = logged.info.run_id, logged.info.start_time
    parameters = [Param(key, str(value)[:_LONGEST_VALUE]) for key, value in settings]
    for start in range(0, len(parameters), MOST_PARAMETERS):
        client.log_batch(run_id, params=parameters[start : start + MOST_PARAMETERS])
    metrics = [Metric(key, value, milliseconds, step) for key, value, step in numbers]
    for start in range(0, len(metrics), MOST_METRICS):
        client.log_batch(run_id, metrics=metrics[start : start + MOST_METRICS])


def _object(path: Path) -> dict[str, Any]:
    values = read_json(path)
    if not isinstance(values, dict):
        raise RunError(f"{path} holds a {type(values).__name__}, expected an object: train again")
    return values


def _curves(directory: RunDirectory) -> Iterator[tuple[str, float, int]]:
    """Yield name, value and epoch of the numbers of every epoch."""
    for line in read_metrics(directory.metrics):
        prefix = "" if line.get("part", "features") == "features" else f"{line['part']}/"
        for name in _CURVES:
            if _is_number(line.get(name)):
                yield prefix + name, float(line[name]), line["epoch"]


def _results(report: Mapping[str, Any]) -> Iterator[tuple[str, float, int]]:
    """Yield the numbers of the report at the epoch whose weights were kept."""
    epoch = report.get("best_epoch")
    step = epoch if isinstance(epoch, int) else 0
    for section in _RESULTS:
        prefix = "" if section == "metrics" else f"{section}/"
        for key, value in _leaves(report.get(section) or {}, "/"):
            if _is_number(value):
                yield _FORBIDDEN.sub("_", prefix + key)[:_LONGEST_NAME], float(value), step


def _leaves(values: Mapping[str, Any], separator: str = ".") -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of everything that is not an object itself."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            inner = _leaves(value, separator)
            yield from ((f"{key}{separator}{path}", leaf) for path, leaf in inner)
        else:
            yield key, value


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def _files(directory: RunDirectory) -> list[Path]:
    paths = [directory.config, directory.metrics, directory.report, directory.report_markdown]
    paths += [directory.page, directory.predictions, directory.model]
    paths += sorted(directory.plots.glob("*")) if directory.plots.is_dir() else []
    return [path for path in paths if path.is_file()]
