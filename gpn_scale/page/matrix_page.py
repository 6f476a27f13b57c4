"""Tables of a matrix of runs -> one page, with the curves of shifts and studies as plots."""

from collections.abc import Sequence
from pathlib import Path

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
    "clean": "All classes known, graph as it is.",
    "misclassification": "How well each score finds the wrong predictions among the test nodes.",
    "left-out-classes": "Some classes were not known in training; their nodes are to be found.",
    "isolated": "Single nodes whose features were replaced by noise, one at a time.",
    "feature-shift": "A share of all nodes has features of noise.",
    "edge-shift": "A share of all edges was moved: at random, or by DICE to mislead.",
    "calibration": "Calibration at the temperature that validation nodes ask for, and accuracy on "
    "what is left when a share of the test nodes is refused by a score.",
}
_NAMES = {
    **{"auroc": "AUC-ROC", "aupr": "AUC-PR", "aurc": "AURC", "ece": "ECE", "mce": "MCE"},
    **{"nll": "NLL", "brier": "Brier score", "id_accuracy": "accuracy on known classes"},
}


def write_matrix_page(
    path: Path, entries: Sequence[Entry], *, cells: int, missing: Sequence[str] = ()
) -> None:
    """Writes the page, and its plots beside it in `plots/`.

    Args:
        path: The HTML file.
        entries: All numbers.
        cells: Trainings that were asked for.
        missing: Names of those that lack a result, each with what it lacks.
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
    words = f"{cells - len(missing)} of {cells} trainings have all their results; "
    words += f"graphs: {', '.join(datasets) or 'none'}; models: {', '.join(models) or 'none'}."
    body = ""
    if missing:
        listed = tag("ul", *(tag("li", escaped(name)) for name in missing))
        folded = tag("details", tag("summary", f"{len(missing)} trainings"), listed)
        heading = tag("strong", "What is missing here")
        call = paragraph("The same call again runs it and makes this page anew.")
        body += tag("div", heading, call, folded, class_="notice")
    body += paragraph(words)
    body += paragraph(
        "Shares are in percent, with the standard error of the mean over splits and "
        "initialisations (runs that share either are not taken as independent); in brackets the "
        "paper's figure and the difference to it. AURC, NLL and sizes of sets are no shares."
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
    """A table for each graph: metrics down, models across."""
    by_place = {(entry.dataset, entry.metric, entry.model): entry for entry in entries}
    body = paragraph(_MEANING.get(experiment, ""))
    for dataset in dict.fromkeys(entry.dataset for entry in entries):
        own = [entry for entry in entries if entry.dataset == dataset]
        models = list(dict.fromkeys(entry.model for entry in own))
        rows = [
            [escaped(_words(metric))]
            + [escaped(cell_text(by_place.get((dataset, metric, model)))) for model in models]
            for metric in dict.fromkeys(entry.metric for entry in own)
        ]
        runs = {entry.runs for entry in own}
        count = f"{min(runs)}" if len(runs) == 1 else f"{min(runs)} to {max(runs)}"
        noun = "run" if runs == {1} else "runs"
        body += table(["", *models], rows, f"{dataset}, {count} {noun}")
    return Section(anchor(experiment), experiment.replace("-", " ").capitalize(), body)


def _words(metric: str) -> str:
    """A metric's name for people."""
    name, _, setting = metric.partition("@")
    for short, word in _NAMES.items():
        if name == short or name.startswith(f"{short}_"):
            name = f"{word}{name.removeprefix(short)}"
            break
    name = name.replace("_no_network", ", without network").replace("_", " ")
    return f"{name}, {setting.replace('_', ' ')}" if setting else name


def _study_section(studies: Sequence[StudyCurve]) -> Section:
    plots = [study_plot(study) for study in studies]
    body = paragraph(
        "One field of the configuration at a time takes other values; all else is as the recipe "
        "has it. Bands are standard errors."
    )
    body += columns(*(figure(plot, "Values stand at equal distances.") for plot in plots))
    tables = (study_table(study) for study in studies)
    body += tag("details", tag("summary", "Numbers"), *tables)
    return Section("hyper-parameters", "Hyper-parameters", body, tuple(plots))


def _shift_section(experiment: str, entries: Sequence[Entry]) -> Section:
    """Curves over the share that is changed: a plot per graph, kind of shift and quantity."""
    plots = shift_plots(shift_curves(entries))
    body = paragraph(_MEANING.get(experiment, ""))
    body += columns(
        *(figure(plot, "0 % is the graph as it is; bands are standard errors.") for plot in plots)
    )
    heading = experiment.replace("-", " ").capitalize()
    return Section(anchor(experiment), heading, body, tuple(plots))
