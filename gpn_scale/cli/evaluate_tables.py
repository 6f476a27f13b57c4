"""Tables and page of the finished cells of a matrix of runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpn_scale import __version__
from gpn_scale.cli.optional_parts import has_extra
from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.latex import latex_text
from gpn_scale.experiments.latex_tables import matrix_tables
from gpn_scale.experiments.matrix_directory import MatrixDirectory
from gpn_scale.experiments.metric_columns import MetricColumn, measured_columns
from gpn_scale.experiments.paper_figures import Figure, PaperKey
from gpn_scale.experiments.tables import Entry, entries, run_values, to_csv, to_markdown
from gpn_scale.files import make_folder, write_text
from gpn_scale.messages import say


@dataclass(frozen=True, slots=True)
class TableChoice:
    """Options of the tables: what they show besides the cells, and where they are written."""

    columns: Sequence[MetricColumn] | None = None
    """Metrics of the Markdown and LaTeX tables; None for all."""
    latex: Path | None = None
    """File of the LaTeX tables; None for `tables/results.tex` in the directory."""
    png: bool = False
    """Write the charts of the page as PNG files too."""
    command: str = "gpn-evaluate"
    """The command that writes the tables, for a comment in the LaTeX file."""


def write_tables(
    directory: MatrixDirectory,
    cells: Sequence[Cell],
    experiments: Sequence[str],
    fractions: Sequence[float],
    paper: Mapping[PaperKey, Figure] | None = None,
    choice: TableChoice | None = None,
) -> None:
    """Write the tables and the page of all finished results, and report what is missing.

    Args:
        directory: Directory of the matrix.
        cells: Cells of the tables.
        experiments: Experiments that every cell should have a result for.
        fractions: Fractions of shifts that every cell should have a result for.
        paper: The paper's figures, shown beside the results.
        choice: Options of the tables; by default everything is shown.

    Raises:
        RunError: a result is damaged or was written by another version.
    """
    choice = choice or TableChoice()
    results = {cell: result for cell in cells if (result := directory.result(cell)) is not None}
    missing = missing_results(cells, results, experiments, fractions)
    table = entries(results, paper)
    folder = directory.path / "tables"
    make_folder(folder)
    write_text(folder / "results.csv", to_csv(table))
    shown = table if choice.columns is None else _chosen(table, choice.columns)
    write_text(folder / "results.md", to_markdown(shown))
    latex = choice.latex or folder / "results.tex"
    make_folder(latex.parent)
    finished = f"{len(cells) - len(missing)} of {len(cells)} trainings have all their results"
    notes = [
        f"{choice.command} (gpn_scale {__version__})",
        f"matrix: {directory.path}, where {finished}",
    ]
    columns = measured_columns(table) if choice.columns is None else choice.columns
    write_text(
        latex, latex_text(notes, matrix_tables(run_values(results), table, columns).tables())
    )
    page = directory.path / "report.html"
    has_page = has_extra("charts", f"{page} is not written", "a page")
    if has_page:
        from gpn_scale.page.matrix_page import write_matrix_page

        write_matrix_page(page, table, cells=len(cells), missing=missing, png=choice.png)
    lines = [to_markdown(shown)]
    if missing:
        lines.append(
            f"{len(missing)} of {len(cells)} trainings have missing results: {missing[0]}, ..."
        )
    lines += [f"tables: {folder / 'results.md'}, results.csv", f"LaTeX: {latex}"]
    lines += [f"page: {page}"] if has_page else []
    say(
        "tables",
        finished,
        text="\n".join(lines),
        result=True,
        trainings=len(cells),
        missing=missing,
        tables=folder,
        latex=latex,
        page=page if has_page else None,
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


def _chosen(table: Sequence[Entry], columns: Sequence[MetricColumn]) -> list[Entry]:
    """Return the entries of some metrics, in the order of the metrics."""
    keys = [(column.experiment, column.metric) for column in columns]
    return [e for key in keys for e in table if (e.experiment, e.metric) == key]
