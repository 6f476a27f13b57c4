"""Tables of a matrix of runs -> one page, with the curves of the shifts as plots."""

from collections.abc import Sequence
from pathlib import Path

from gpn_scale.experiments.curves import shift_curves
from gpn_scale.experiments.tables import Entry, cell_text
from gpn_scale.files import write_text
from gpn_scale.page.document import document, write_plots
from gpn_scale.page.markup import escaped, tag
from gpn_scale.page.parts import Section, columns, figure, paragraph, table
from gpn_scale.page.shift_plots import anchor, shift_plots

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
    return Section(anchor(experiment), experiment.replace("-", " ").capitalize(), body)


def _shift_section(experiment: str, entries: Sequence[Entry]) -> Section:
    """Curves over the share that is changed: a plot per graph, kind of shift and quantity."""
    plots = shift_plots(shift_curves(entries))
    body = paragraph(_MEANING.get(experiment, ""))
    body += columns(
        *(figure(plot, "0 % is the graph as it is; bands are standard errors.") for plot in plots)
    )
    heading = experiment.replace("-", " ").capitalize()
    return Section(anchor(experiment), heading, body, tuple(plots))
