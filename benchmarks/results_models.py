"""Do our comparison models reproduce the paper's? Writes the tables of docs/comparison.md.

    python benchmarks/results_models.py --matrix DIR [--paper DIR] [--write docs/comparison.md]

Reads the cells of a matrix of `launch/evaluate.py`, finished or not (`make comparison` does both),
and replaces the text between the markers of the file --write. Trains nothing.
"""

from collections.abc import Sequence

from results_paper import (
    TABLES,
    Columns,
    Paper,
    Results,
    deviations,
    markdown,
    page_parser,
    publish,
)

from gpn_scale.experiments.cells import Cell
from gpn_scale.experiments.paper_figures import read_paper
from gpn_scale.experiments.stored_results import stored_results
from gpn_scale.experiments.tables import Entry, entries

MODELS = ("LP", "GKDE", "Matern-GGP", "GGP", "APPNP", "VGCN", "RGCN", "VGCN-Dropout", "DropEdge")
MODELS += ("VGCN-Energy", "VGCN-Ensemble", "VGCN-BNN", "GKDE-GCN", "GPN")
"""Models, in the order of the paper's tables."""
RUNS = {"CoraML": (3, 2), "AmazonPhotos": (2, 1)}
"""Splits and initialisations of each graph that the page shows, even if a matrix has more."""
FAR_ACCURACY, FAR_AREA = 3.0, 5.0
"""Points from which a difference to the paper is listed."""


def sections(results: Results, paper: Paper) -> dict[str, str]:
    """Return the text of every marker."""
    results = {cell: result for cell, result in results.items() if _is_wanted(cell)}
    table = [entry for entry in entries(results, paper) if entry.model in MODELS]
    texts = {name: markdown(table, columns, MODELS) for name, columns in _columns().items()}
    texts["far-accuracy"] = deviations(_measured_by(table, "accuracy"), results, FAR_ACCURACY)
    texts["far-areas"] = deviations(_measured_by(table, "auroc"), results, FAR_AREA)
    return {name: text or "No runs yet." for name, text in texts.items()}


def _is_wanted(cell: Cell) -> bool:
    splits, inits = RUNS.get(cell.dataset, (0, 0))
    return cell.split <= splits and cell.init <= inits


def _columns() -> dict[str, Columns]:
    clean = TABLES["clean"]
    kept = {"clean": {heading: clean[heading] for heading in ("accuracy", "ECE")}}
    for name in ("misclassification", "left-out-auroc", "isolated-auroc"):
        kept[name] = {
            heading: place
            for heading, place in TABLES[name].items()
            if "AUC-PR" not in heading and "local" not in heading
        }
    return kept


def _measured_by(table: Sequence[Entry], word: str) -> list[Entry]:
    return [entry for entry in table if word in entry.metric]


def main() -> None:
    """Print the sections, or write them into the file --write."""
    parser = page_parser(__doc__)
    options = parser.parse_args()
    results = stored_results(options.matrix)
    paper = {} if options.paper is None else read_paper(options.paper)
    publish(sections(results, paper), options.write, len(results))


if __name__ == "__main__":
    main()
