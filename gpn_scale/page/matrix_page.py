"""The page of a matrix of trainings: tables of all metrics, charts of shifts and studies."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpn_scale.evaluation.metric_labels import metric_label
from gpn_scale.experiments.curves import (
    STUDIED,
    StudyCurve,
    shift_curves,
    study_curves,
)
from gpn_scale.experiments.tables import Entry, cell_text
from gpn_scale.files import write_text
from gpn_scale.page.document import document, write_charts
from gpn_scale.page.section import Figure, Section, section
from gpn_scale.page.shift_charts import shift_charts
from gpn_scale.page.study_charts import study_chart
from gpn_scale.page.texts import anchor

_MEANING = {
    "clean": "All classes are known and the graph is unchanged.",
    "misclassification": "How well each score detects the errors among the test nodes.",
    "left-out-classes": "Some classes were hidden in training; their nodes are the unknown nodes "
    "that each score should detect.",
    "left-out-false-alarms": "The fraction of known nodes that each score rejects when it rejects "
    "95 % of the unknown nodes; lower is better.",
    "isolated": "The features of single nodes were replaced by noise, one node at a time; each "
    "score should detect these nodes.",
    "feature-shift": "The features of a fraction of all nodes were replaced by noise.",
    "edge-shift": "A fraction of all edges was moved: at random, or by DICE to mislead the model.",
    "calibration": "Calibration at the temperature fitted to the validation nodes, and accuracy on "
    "the remaining test nodes when a fraction of them is rejected by a score.",
}


def write_matrix_page(
    path: Path,
    entries: Sequence[Entry],
    *,
    cells: int,
    missing: Sequence[str] = (),
    png: bool = False,
) -> None:
    """Write the page, and its charts next to it in `plots/`.

    Args:
        path: The HTML file.
        entries: All metrics.
        cells: Number of trainings that were requested.
        missing: A line for each training with missing results.
        png: Write charts as PNG files too.
    """
    studies = study_curves(entries)
    studied = {name for study in studies for name in study.models}
    plain = [entry for entry in entries if entry.model not in studied]
    sections = [_overview(entries, plain, cells, missing)]
    for experiment in dict.fromkeys(entry.experiment for entry in plain):
        own = [entry for entry in plain if entry.experiment == experiment]
        shifts = any("@clean" in entry.metric for entry in own)
        sections.append(_shift_section(experiment, own) if shifts else _section(experiment, own))
    if studies:
        sections.append(_study_section(studies))
    write_charts(path.parent / "plots", sections, png=png)
    title = "How the models compare"
    write_text(path, document(title, "Graph Posterior Networks", sections, heading=title))


def _overview(
    entries: Sequence[Entry], plain: Sequence[Entry], cells: int, missing: Sequence[str]
) -> Section:
    datasets = dict.fromkeys(entry.dataset for entry in entries)
    models = dict.fromkeys(entry.model for entry in plain)
    summary = f"{cells - len(missing)} of {cells} trainings have all their results; "
    summary += f"graphs: {', '.join(datasets) or 'none'}; models: {', '.join(models) or 'none'}."
    by_place = {(e.dataset, e.model, e.experiment, e.metric): e for e in plain}
    rows = [
        [
            f"{dataset}, {model}",
            *(cell_text(by_place.get((dataset, model, *place))) for place in STUDIED.values()),
        ]
        for dataset, model in dict.fromkeys((e.dataset, e.model) for e in plain)
    ]
    return section(
        "overview",
        "Overview",
        "matrix_overview.html",
        missing=missing,
        summary=summary,
        header=["graph, model", *STUDIED],
        rows=rows,
    )


def _section(experiment: str, entries: Sequence[Entry]) -> Section:
    """Return a table for each graph, with a row for each metric and a column for each model."""
    by_place = {(entry.dataset, entry.metric, entry.model): entry for entry in entries}
    tables: list[dict[str, Any]] = []
    for dataset in dict.fromkeys(entry.dataset for entry in entries):
        own = [entry for entry in entries if entry.dataset == dataset]
        models = list(dict.fromkeys(entry.model for entry in own))
        rows = [
            [metric_label(metric)]
            + [cell_text(by_place.get((dataset, metric, model))) for model in models]
            for metric in dict.fromkeys(entry.metric for entry in own)
        ]
        runs = {entry.runs for entry in own}
        count = f"{min(runs)}" if len(runs) == 1 else f"{min(runs)} to {max(runs)}"
        noun = "run" if runs == {1} else "runs"
        tables.append(
            {"header": ["", *models], "rows": rows, "caption": f"{dataset}, {count} {noun}"}
        )
    return section(
        anchor(experiment),
        _heading(experiment),
        "tables.html",
        text=_MEANING.get(experiment, ""),
        tables=tables,
        folded="",
    )


def _study_section(studies: Sequence[StudyCurve]) -> Section:
    figures = (Figure(study_chart(study), "The values are equally spaced.") for study in studies)
    tables = [
        {
            "header": [study.field, *STUDIED],
            "rows": [
                [value, *(cell_text(entry) for entry in row)]
                for value, row in zip(study.values, study.rows, strict=True)
            ],
            "caption": f"{study.dataset}, {study.model}",
        }
        for study in studies
    ]
    return section(
        "hyper-parameters",
        "Hyper-parameters",
        "tables.html",
        figures=tuple(figures),
        text="One field of the configuration is varied at a time; all other fields are those of "
        "the recipe. Bands are standard errors.",
        tables=tables,
        folded="Numbers",
    )


def _shift_section(experiment: str, entries: Sequence[Entry]) -> Section:
    """Return curves over the fraction that is changed, a chart per graph, shift and quantity."""
    caption = "0 % is the unchanged graph; bands are standard errors."
    return section(
        anchor(experiment),
        _heading(experiment),
        "figures.html",
        figures=tuple(Figure(chart, caption) for chart in shift_charts(shift_curves(entries))),
        text=_MEANING.get(experiment, ""),
        notes=(),
        kind="",
    )


def _heading(experiment: str) -> str:
    return experiment.replace("-", " ").capitalize()
