"""Tables of a matrix of runs -> one page, with the curves of the shifts as plots."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gpn_scale.experiments.tables import Entry, cell_text
from gpn_scale.files import write_text
from gpn_scale.page.charts import Line, curves
from gpn_scale.page.document import document, write_plots
from gpn_scale.page.markup import escaped, tag
from gpn_scale.page.parts import Section, columns, figure, paragraph, table
from gpn_scale.page.svg import Plot, percent_label

_CURVES = {
    "accuracy": "accuracy",
    "ece": "calibration error (ECE)",
    "aleatoric_confidence": "aleatoric confidence, relative to clean",
    "epistemic_confidence": "epistemic confidence, relative to clean",
}
_RELATIVE = ("aleatoric_confidence", "epistemic_confidence")
_MEANING = {
    "clean": "All classes known, graph as it is.",
    "misclassification": "How well each score finds the wrong predictions among the test nodes.",
    "left-out-classes": "Some classes were not known in training; their nodes are to be found.",
    "isolated": "Single nodes whose features were replaced by noise, one at a time.",
    "feature-shift": "A share of all nodes has features of noise.",
    "edge-shift": "A share of all edges was moved: at random, or by DICE to mislead.",
}


def write_matrix_page(path: Path, entries: Sequence[Entry], *, done: int, cells: int) -> None:
    """Writes the page, and its plots beside it in `plots/`.

    Args:
        path: The HTML file.
        entries: All numbers.
        done: Cells that have results.
        cells: Cells that were asked for.
    """
    sections = [_overview(entries, done, cells)]
    for experiment in dict.fromkeys(entry.experiment for entry in entries):
        own = [entry for entry in entries if entry.experiment == experiment]
        shifts = any("@clean" in entry.metric for entry in own)
        sections.append(_shift_section(experiment, own) if shifts else _section(experiment, own))
    write_plots(path.parent / "plots", sections)
    title = "How the models compare"
    write_text(path, document(title, "Graph Posterior Networks", tag("h1", title), sections))


def _overview(entries: Sequence[Entry], done: int, cells: int) -> Section:
    datasets = dict.fromkeys(entry.dataset for entry in entries)
    models = dict.fromkeys(entry.model for entry in entries)
    words = [f"{done} of {cells} trainings have results; graphs: {', '.join(datasets) or 'none'}; "]
    words.append(f"models: {', '.join(models) or 'none'}.")
    body = paragraph("".join(words))
    if done < cells:
        body += paragraph(
            f"{cells - done} are missing: the same call again runs them and makes this page anew.",
            "warning",
        )
    body += paragraph(
        "Shares are in percent, with the standard error of the mean over splits and "
        "initialisations; in brackets the paper's figure and the difference to it."
    )
    return Section("overview", "Overview", body)


def _section(experiment: str, entries: Sequence[Entry]) -> Section:
    """Metrics down, graphs and models across."""
    heads = list(dict.fromkeys((entry.dataset, entry.model) for entry in entries))
    by_place = {(entry.metric, entry.dataset, entry.model): entry for entry in entries}
    rows = [
        [escaped(metric.replace("_", " "))]
        + [escaped(cell_text(by_place.get((metric, *head)))) for head in heads]
        for metric in dict.fromkeys(entry.metric for entry in entries)
    ]
    header = ["metric", *(f"{dataset}, {model}" for dataset, model in heads)]
    body = paragraph(_MEANING.get(experiment, "")) + table(header, rows, experiment)
    return Section(_anchor(experiment), experiment.replace("-", " ").capitalize(), body)


def _shift_section(experiment: str, entries: Sequence[Entry]) -> Section:
    """Curves over the share that is changed: a plot per graph, kind of shift and quantity."""
    plots = [
        plot
        for dataset in dict.fromkeys(entry.dataset for entry in entries)
        for kind in _kinds(entries)
        for quantity in _CURVES
        if (plot := _curve(experiment, dataset, kind, quantity, entries)) is not None
    ]
    body = paragraph(_MEANING.get(experiment, ""))
    body += columns(*(figure(plot, "0 % is the graph as it is.") for plot in plots))
    heading = experiment.replace("-", " ").capitalize()
    return Section(_anchor(experiment), heading, body, tuple(plots))


def _kinds(entries: Sequence[Entry]) -> list[str]:
    settings = (entry.metric.partition("@")[2] for entry in entries)
    return list(dict.fromkeys(s.rpartition("_")[0] for s in settings if s != "clean"))


def _curve(
    experiment: str, dataset: str, kind: str, quantity: str, entries: Sequence[Entry]
) -> Plot | None:
    lines = []
    for model in dict.fromkeys(entry.model for entry in entries if entry.dataset == dataset):
        means = {
            entry.metric.removeprefix(f"{quantity}@"): entry.mean
            for entry in entries
            if (entry.dataset, entry.model) == (dataset, model)
            and entry.metric.startswith(f"{quantity}@")
        }
        clean = means.get("clean")
        if clean is None or math.isnan(clean):
            continue
        points = {0.0: clean} | {
            float(setting.rpartition("_")[2]): mean
            for setting, mean in means.items()
            if setting.rpartition("_")[0] == kind
        }
        scale = clean if quantity in _RELATIVE else 100.0
        shares = np.array(sorted(points))
        values = np.array([points[share] for share in sorted(points)]) / (scale or 1.0)
        lines.append(Line(shares, values, model))
    if not lines:
        return None
    return curves(
        _anchor(f"{experiment}-{dataset}-{kind}-{quantity}"),
        f"{dataset}, {kind}: {_CURVES[quantity]}",
        lines[:4],
        f"share changed ({kind})",
        _CURVES[quantity],
        x_label=percent_label,
        y_label=percent_label,
        include=(0.0, 1.0),
    )


def _anchor(text: str) -> str:
    """A name for ids and files."""
    return "".join(letter if letter.isalnum() else "-" for letter in text)
