"""Which model is best at what? Writes docs/leaderboard.md, its page and its tables.

    python benchmarks/leaderboard.py [--matrix DIR] [--write docs/leaderboard.md] [--page FILE]
        [--latex FILE]

Reads the folder --cells, which is part of the repository, and the finished cells of a matrix of
`launch/evaluate.py` if there is one (`make leaderboard` does both). Where both have a result, that
of the matrix counts, and cells that it replaces with another configuration are counted. Then writes
--cells, the tables and the page again. Trains nothing.
"""

import argparse
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from results_paper import put

from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.latex import latex_text
from gpn_scale.experiments.leaderboard import REFERENCE, Leaderboard, is_shown
from gpn_scale.experiments.leaderboard_document import sections, table_csv
from gpn_scale.experiments.leaderboard_latex import leaderboard_tables
from gpn_scale.experiments.measured_cells import (
    cells_to_csv,
    matrix_cells,
    merged_cells,
    read_cells,
)
from gpn_scale.files import write_text
from gpn_scale.page.leaderboard_page import write_leaderboard_page, write_pictures

CELLS = Path("benchmarks/results/leaderboard")


def write_cells(folder: Path, cells: dict[Cell, CellResult]) -> None:
    """Write the measured cells, one table per graph."""
    folder.mkdir(parents=True, exist_ok=True)
    for dataset in sorted({cell.dataset for cell in cells}):
        of_graph = {cell: result for cell, result in cells.items() if cell.dataset == dataset}
        path = folder / f"{quote(dataset, safe='')}.csv"
        write_text(path, cells_to_csv(of_graph, is_shown))


def has_other_setting(measured: CellResult, added: CellResult) -> bool:
    """Return whether both settings are known and differ."""
    return measured.fingerprint not in ("", added.fingerprint)


def is_wanted(options: argparse.Namespace) -> Callable[[Cell], bool]:
    """Return whether a cell belongs to the part of the leaderboard that is to be shown."""
    datasets, models = (options.datasets or "").split(","), (options.models or "").split(",")
    sets = (options.class_sets or "").split(",")

    def decide(cell: Cell) -> bool:
        return (
            (options.datasets is None or cell.dataset in datasets)
            and (options.models is None or cell.model in models)
            and (options.splits is None or cell.split <= options.splits)
            and (options.class_sets is None or not cell.left_out or str(cell.class_set) in sets)
        )

    return decide


def main() -> None:
    """Read the cells, then write all files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--cells", type=Path, default=CELLS, help=f"folder of measured cells (default: {CELLS})")
    add("--matrix", type=Path, help="--out of launch/evaluate.py, whose cells are added")
    add("--write", type=Path, help="Markdown file with the markers")
    add("--pictures", type=Path, default=Path("docs/pictures"), help="folder of its pictures")
    add("--page", type=Path, help="HTML page; its plots and table.csv go beside it")
    add("--latex", type=Path, help="LaTeX file with the tables of ranks and of every column")
    add("--reference", default=REFERENCE, help=f"model to compare with (default: {REFERENCE})")
    add("--datasets", help="graphs to show, as A,B (default: all)")
    add("--models", help="models to show, as A,B (default: all)")
    add("--splits", type=int, help="show the first N splits only")
    add("--class-sets", help="sets of left-out classes to show, as 0,1 (default: all)")
    options = parser.parse_args()
    is_new = options.matrix is not None and not options.cells.exists()
    cells = {} if is_new else read_cells(options.cells)
    if options.matrix is not None:
        added = matrix_cells(options.matrix)
        changed = sum(has_other_setting(cells[cell], added[cell]) for cell in cells.keys() & added)
        if changed:
            print(f"{changed:,} measured cells are replaced by others of {options.matrix}, which")
            print("have another configuration")
        cells = merged_cells(cells, added)
        write_cells(options.cells, cells)
        # Read again, so that the same numbers are shown with and without the matrix.
        cells = read_cells(options.cells)
    wanted = is_wanted(options)
    shown = {cell: result for cell, result in cells.items() if wanted(cell)}
    board = Leaderboard(shown, options.reference)
    texts = sections(board)
    if options.write is not None:
        pictures = write_pictures(options.pictures, board)
        texts["pictures"] = "\n\n".join(
            f"![{title}]({options.pictures.name}/{name})" for title, name in pictures.items()
        )
        write_text(options.write, put(options.write.read_text(encoding="utf-8"), texts))
    if options.page is not None:
        write_leaderboard_page(options.page, board)
        write_text(options.page.with_name("table.csv"), table_csv(board))
    if options.latex is not None:
        command = shlex.join(["python", "benchmarks/leaderboard.py", *sys.argv[1:]])
        matrix = f"cells: {options.cells}, matrix: {options.matrix or 'none'}"
        notes = [command, matrix, texts["runs"]]
        write_text(options.latex, latex_text(notes, leaderboard_tables(board)))
    print(texts["claim"].strip("*"))
    print(texts["runs"])


if __name__ == "__main__":
    main()
