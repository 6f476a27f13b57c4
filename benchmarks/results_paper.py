"""Do our models reproduce the paper? Writes the tables and pictures of docs/results.md.

    python benchmarks/results_paper.py --matrix DIR [--paper DIR] [--write docs/results.md]

Reads the cells of a matrix of `launch/evaluate.py`, finished or not (`make results` does both), and
replaces the text between the markers of the file --write. Trains nothing.
"""

import argparse
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.curves import shift_curves
from gpn_scale.experiments.paper_figures import (
    ABLATION_GRAPH,
    Figure,
    PaperKey,
    read_ablation,
    read_paper,
)
from gpn_scale.experiments.stored_results import paired_differences, stored_results
from gpn_scale.experiments.tables import Entry, cell_text, entries
from gpn_scale.files import write_text
from gpn_scale.models.registry import ABLATION
from gpn_scale.page.document import write_charts
from gpn_scale.page.section import Section
from gpn_scale.page.shift_charts import shift_picture

GRAPHS = ("CoraML", "CiteSeer", "AmazonPhotos", "CoauthorCS")
MODELS = ("GPN", "GPN-minibatch")
FAR = 3.0
"""Points above which a difference to the paper is listed."""
_SCORES = {
    "aleatoric": "aleatoric",
    "epistemic": "epistemic",
    "epistemic_no_network": "epistemic, no network",
}
_LOCAL = _SCORES | {"epistemic_local": "epistemic, local"}
Columns = dict[str, tuple[str, str]]
"""Experiment and metric of every heading."""


def _detection(area: str, experiment: str, scores: Mapping[str, str], at: str = "") -> Columns:
    area_name = {"auroc": "AUC-ROC", "aupr": "AUC-PR"}[area]
    where = f"{at[1:]}: " if at else ""
    return {
        f"{where}{area_name} {name}": (experiment, f"{area}_{score}{at}")
        for score, name in scores.items()
    }


def _isolated(area: str) -> Columns:
    columns: Columns = {}
    for noise in ("bernoulli", "normal"):
        if area == "auroc":
            columns[f"{noise}: accuracy"] = ("isolated", f"accuracy@{noise}")
        columns |= _detection(area, "isolated", _SCORES, f"@{noise}")
    return columns


_ID_ACCURACY: Columns = {"ID accuracy": ("left-out-classes", "id_accuracy")}
TABLES: dict[str, Columns] = {
    "clean": {
        "accuracy": ("clean", "accuracy"),
        "ECE": ("clean", "ece"),
        "MCE": ("clean", "mce"),
        "Brier": ("clean", "brier"),
        "NLL": ("clean", "nll"),
        "AURC aleatoric": ("clean", "aurc_aleatoric"),
        "conformal coverage (90 wanted)": ("clean", "conformal_coverage"),
        "classes in a set": ("clean", "conformal_size"),
    },
    "misclassification": _detection("auroc", "misclassification", _LOCAL)
    | _detection("aupr", "misclassification", _LOCAL),
    "left-out-auroc": _ID_ACCURACY | _detection("auroc", "left-out-classes", _LOCAL),
    "left-out-aupr": _detection("aupr", "left-out-classes", _LOCAL),
    "isolated-auroc": _isolated("auroc"),
    "isolated-aupr": _isolated("aupr"),
}
PAIRED: Columns = {
    "accuracy": ("clean", "accuracy"),
    "ECE": ("clean", "ece"),
    "misclassification AUC-ROC aleatoric": ("misclassification", "auroc_aleatoric"),
    **_ID_ACCURACY,
    **{
        f"left-out {heading}": place
        for heading, place in _detection("auroc", "left-out-classes", _LOCAL).items()
    },
}
_NO_NETWORK = "auroc_epistemic_no_network"
ABLATION_COLUMNS: Columns = {
    "accuracy": ("clean", "accuracy"),
    "ECE": ("clean", "ece"),
    "AUC-ROC bernoulli, no network": ("isolated", f"{_NO_NETWORK}@bernoulli"),
    "AUC-ROC normal, no network": ("isolated", f"{_NO_NETWORK}@normal"),
    **_ID_ACCURACY,
    "left-out AUC-ROC epistemic": ("left-out-classes", "auroc_epistemic"),
}
Results = Mapping[Cell, CellResult]
Paper = Mapping[PaperKey, Figure]


def markdown(table: Sequence[Entry], columns: Columns, models: Sequence[str]) -> str:
    """Return a table with a line per graph and model; "" without any results."""
    by_place = {(e.dataset, e.model, e.experiment, e.metric): e for e in table}
    lines = []
    for dataset in _graphs(table):
        for model in models:
            own = [by_place.get((dataset, model, *place)) for place in columns.values()]
            counts = {entry.runs for entry in own if entry is not None}
            if counts:
                runs = f"{min(counts)}" if len(counts) == 1 else f"{min(counts)}-{max(counts)}"
                lines.append([dataset, model, runs, *map(cell_text, own)])
    return _rows(["graph", "model", "runs", *columns], lines) if lines else ""


def split_means(results: Results) -> dict[tuple[str, str, str, str], list[float]]:
    """Return the means over the runs of each split, by graph, model, experiment and metric."""
    means: dict[tuple[str, str, str, str], list[float]] = {}
    for split in sorted({cell.split for cell in results}):
        own = {cell: result for cell, result in results.items() if cell.split == split}
        for e in entries(own):
            means.setdefault((e.dataset, e.model, e.experiment, e.metric), []).append(e.mean)
    return means


def deviations(table: Sequence[Entry], results: Results, limit: float = FAR) -> str:
    """List numbers more than `limit` points from the paper's, with their range over splits."""
    means = split_means(results)
    far = [
        [e.dataset, e.model, e.experiment, e.metric, f"{e.runs}", cell_text(e), _range(own)]
        for e in table
        for own in [means[(e.dataset, e.model, e.experiment, e.metric)]]
        if e.difference is not None and abs(e.difference) > limit and not math.isnan(e.mean)
    ]
    compared = sum(e.difference is not None for e in table)
    count = f"{len(far)} of {compared} numbers are more than {limit:g} points from the paper's.\n\n"
    header = ["graph", "model", "experiment", "metric", "runs", "ours", "lowest to highest split"]
    return count + (_rows(header, far) if far else "")


def pictures(table: Sequence[Entry], folder: Path | None) -> str:
    """Write a picture per graph and kind of shift; return links to them, or "" without a folder."""
    if folder is None:
        return ""
    curves, charts = shift_curves(table), []
    for dataset in _graphs(table):
        for experiment in ("feature-shift", "edge-shift"):
            own = [c for c in curves if (c.dataset, c.experiment) == (dataset, experiment)]
            if own:
                title = f"{dataset}, {experiment.replace('-', ' ')}"
                charts.append(shift_picture(f"{experiment}-{dataset}", title, own))
    write_charts(folder, [Section("shifts", "Shifts", Markup(""), tuple(charts))])
    return "\n\n".join(f"![{chart.title}]({folder.name}/{chart.name}.svg)" for chart in charts)


def sections(
    results: Results, paper: Paper, ablation: Paper, folder: Path | None
) -> dict[str, str]:
    """Return the text of every marker."""
    table = [e for e in entries(results, paper) if e.model in MODELS]
    texts = {name: markdown(table, columns, MODELS) for name, columns in TABLES.items()}
    texts["deviations"] = deviations(table, results)
    paired = paired_differences(results, MODELS[1], MODELS[0])
    texts["paired"] = markdown(paired, PAIRED, [f"{MODELS[1]} - {MODELS[0]}"])
    on_graph = {cell: result for cell, result in results.items() if cell.dataset == ABLATION_GRAPH}
    texts["ablation"] = markdown(entries(on_graph, ablation), ABLATION_COLUMNS, ABLATION)
    texts["shifts"] = pictures(table, folder)
    return {name: text or "No runs yet." for name, text in texts.items()}


def put(document: str, texts: Mapping[str, str]) -> str:
    """Return the document with each text between its markers.

    Raises:
        SystemExit: A marker is missing.
    """
    for name, text in texts.items():
        begin, end = f"<!-- {name} begin -->", f"<!-- {name} end -->"
        before, opened, rest = document.partition(begin)
        _, closed, after = rest.partition(end)
        if not opened or not closed:
            raise SystemExit(f"the document has no {begin} ... {end}, expected both")
        document = f"{before}{begin}\n{text.rstrip()}\n{end}{after}"
    return document


def publish(texts: Mapping[str, str], document: Path | None, trainings: int) -> None:
    """Write the texts into the document; without one, print them."""
    if document is None:
        for name, text in texts.items():
            print(f"## {name}\n\n{text}\n")
        return
    write_text(document, put(document.read_text(encoding="utf-8"), texts))
    print(f"{trainings} trainings -> {document}")


def _graphs(table: Iterable[Entry]) -> list[str]:
    there = dict.fromkeys(entry.dataset for entry in table)
    return [name for name in GRAPHS if name in there]


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


def _rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def page_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of all scripts that write pages."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--matrix", type=Path, required=True, help="--out of launch/evaluate.py")
    parser.add_argument("--paper", type=Path, help="CSV files of the paper's figures")
    parser.add_argument("--write", type=Path, help="Markdown file with the markers")
    return parser


def main() -> None:
    """Print the sections, or write them into the file --write."""
    parser = page_parser(__doc__)
    parser.add_argument("--pictures", type=Path, help="folder; default: pictures beside --write")
    options = parser.parse_args()
    if options.pictures is None and options.write is not None:
        options.pictures = options.write.parent / "pictures"
    results = stored_results(options.matrix)
    paper = {} if options.paper is None else read_paper(options.paper)
    ablation = {} if options.paper is None else read_ablation(options.paper)
    texts = sections(results, paper, ablation, options.pictures)
    publish(texts, options.write, len(results))


if __name__ == "__main__":
    main()
