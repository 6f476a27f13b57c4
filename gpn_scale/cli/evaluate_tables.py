"""Tables and page of a matrix of runs, as far as its cells are finished."""

from collections.abc import Mapping, Sequence

from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.matrix_directory import MatrixDirectory
from gpn_scale.experiments.paper_figures import Figure, PaperKey
from gpn_scale.experiments.tables import entries, to_csv, to_latex, to_markdown
from gpn_scale.files import write_text
from gpn_scale.messages import say
from gpn_scale.page.matrix_page import write_matrix_page


def write_tables(
    directory: MatrixDirectory,
    cells: Sequence[Cell],
    experiments: Sequence[str],
    fractions: Sequence[float],
    paper: Mapping[PaperKey, Figure] | None = None,
    *,
    png: bool = False,
) -> None:
    """Write and print the tables and the page of all finished results, and name what is missing.

    Args:
        directory: Directory of the matrix.
        cells: Cells of the tables.
        experiments: Experiments that count as missing without a result.
        fractions: Fractions that count as missing without a result.
        paper: The paper's figures, to compare with.
        png: Write the charts of the page as PNG files too.

    Raises:
        RunError: a result is damaged or was written by another version.
    """
    results = {cell: result for cell in cells if (result := directory.result(cell)) is not None}
    missing = missing_results(cells, results, experiments, fractions)
    table = entries(results, paper)
    folder = directory.path / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "results.csv", to_csv(table))
    write_text(folder / "results.md", to_markdown(table))
    write_text(folder / "results.tex", to_latex(table))
    page = directory.path / "report.html"
    write_matrix_page(page, table, cells=len(cells), missing=missing, png=png)
    lines = [to_markdown(table)]
    if missing:
        lines.append(
            f"{len(missing)} of {len(cells)} trainings have missing results: {missing[0]}, ..."
        )
    lines += [f"tables: {folder / 'results.md'}, results.csv, results.tex", f"page: {page}"]
    say(
        "tables",
        f"{len(cells) - len(missing)} of {len(cells)} trainings have all their results",
        text="\n".join(lines),
        result=True,
        trainings=len(cells),
        missing=missing,
        tables=folder,
        page=page,
    )


def missing_results(
    cells: Sequence[Cell],
    results: Mapping[Cell, CellResult],
    experiments: Sequence[str],
    fractions: Sequence[float],
) -> list[str]:
    """Return a line for each cell with missing results: its name and the unfinished experiments."""
    lines = []
    for cell in cells:
        unfinished = cell.unfinished(results.get(cell), experiments, fractions)
        if unfinished:
            lines.append(f"{cell.name}: {', '.join(unfinished)}")
    return lines
