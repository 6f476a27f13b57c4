"""The page of a matrix of trainings: tables of all metrics, plots of shifts and studies."""

from collections.abc import Sequence
from pathlib import Path

from gpn_scale.evaluation.metric_labels import metric_label
from gpn_scale.experiments.curves import (
    STUDIED,
    StudyCurve,
    shift_curves,
    study_curves,
)
from gpn_scale.experiments.tables import Entry, cell_text
from gpn_scale.files import write_text
from gpn_scale.page.components import Section, columns, figure, paragraph, table
from gpn_scale.page.document import document, write_plots
from gpn_scale.page.markup import escaped, tag
from gpn_scale.page.shift_plots import anchor, shift_plots
from gpn_scale.page.study_plots import study_plot, study_table

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
    path: Path, entries: Sequence[Entry], *, cells: int, missing: Sequence[str] = ()
) -> None:
    """Write the page, and its plots next to it in `plots/`.

    Args:
        path: The HTML file.
        entries: All metrics.
        cells: Number of trainings that were requested.
        missing: A line for each training with missing results.
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
    write_plots(path.parent / "plots", sections)
    title = "How the models compare"
    write_text(path, document(title, "Graph Posterior Networks", tag("h1", title), sections))


def _overview(
    entries: Sequence[Entry], plain: Sequence[Entry], cells: int, missing: Sequence[str]
) -> Section:
    datasets = dict.fromkeys(entry.dataset for entry in entries)
    models = dict.fromkeys(entry.model for entry in plain)
    summary = f"{cells - len(missing)} of {cells} trainings have all their results; "
    summary += f"graphs: {', '.join(datasets) or 'none'}; models: {', '.join(models) or 'none'}."
    body = ""
    if missing:
        listed = tag("ul", *(tag("li", escaped(name)) for name in missing))
        folded = tag("details", tag("summary", f"{len(missing)} trainings"), listed)
        heading = tag("strong", "What is missing here")
        call = paragraph("Run the same command again to compute it and to update this page.")
        body += tag("div", heading, call, folded, class_="notice")
    body += paragraph(summary)
    body += paragraph(
        "Fractions are in percent, with the standard error of the mean over splits and "
        "initialisations; runs that share a split or an initialisation are not counted as "
        "independent. Brackets hold the paper's figure and the difference from it. AURC, NLL and "
        "set sizes are not in percent."
    )
    by_place = {(e.dataset, e.model, e.experiment, e.metric): e for e in plain}
    rows = [
        [
            escaped(f"{dataset}, {model}"),
            *(
                escaped(cell_text(by_place.get((dataset, model, *place))))
                for place in STUDIED.values()
            ),
        ]
        for dataset, model in dict.fromkeys((e.dataset, e.model) for e in plain)
    ]
    if rows:
        body += table(["graph, model", *STUDIED], rows, "At a glance")
    return Section("overview", "Overview", body)


def _section(experiment: str, entries: Sequence[Entry]) -> Section:
    """Return a table for each graph, with a row for each metric and a column for each model."""
    by_place = {(entry.dataset, entry.metric, entry.model): entry for entry in entries}
    body = paragraph(_MEANING.get(experiment, ""))
    for dataset in dict.fromkeys(entry.dataset for entry in entries):
        own = [entry for entry in entries if entry.dataset == dataset]
        models = list(dict.fromkeys(entry.model for entry in own))
        rows = [
            [escaped(metric_label(metric))]
            + [escaped(cell_text(by_place.get((dataset, metric, model)))) for model in models]
            for metric in dict.fromkeys(entry.metric for entry in own)
        ]
        runs = {entry.runs for entry in own}
        count = f"{min(runs)}" if len(runs) == 1 else f"{min(runs)} to {max(runs)}"
        noun = "run" if runs == {1} else "runs"
        body += table(["", *models], rows, f"{dataset}, {count} {noun}")
    return Section(anchor(experiment), experiment.replace("-", " ").capitalize(), body)


def _study_section(studies: Sequence[StudyCurve]) -> Section:
    plots = [study_plot(study) for study in studies]
    body = paragraph(
        "One field of the configuration is varied at a time; all other fields are those of the "
        "recipe. Bands are standard errors."
    )
    body += columns(*(figure(plot, "The values are equally spaced.") for plot in plots))
    tables = (study_table(study) for study in studies)
    body += tag("details", tag("summary", "Numbers"), *tables)
    return Section("hyper-parameters", "Hyper-parameters", body, tuple(plots))


def _shift_section(experiment: str, entries: Sequence[Entry]) -> Section:
    """Return curves over the fraction that is changed, a plot per graph, shift and quantity."""
    plots = shift_plots(shift_curves(entries))
    body = paragraph(_MEANING.get(experiment, ""))
    body += columns(
        *(figure(plot, "0 % is the unchanged graph; bands are standard errors.") for plot in plots)
    )
    heading = experiment.replace("-", " ").capitalize()
    return Section(anchor(experiment), heading, body, tuple(plots))
