"""Pages of the gallery: scripts in the percent format, run cell by cell, with what they show.

A cell of a script begins with `# %%` (code) or `# %% [markdown]` (text).
"""

import base64
import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import jupytext
import nbformat
from nbclient import NotebookClient
from repository_links import title_of

CELL_SECONDS = 600
"""Time after which a cell counts as hanging."""
_PICTURES = {"image/svg+xml": "svg", "image/png": "png"}
"""Kinds of output that become files, the best first."""
_TABLE = re.compile(r"<table\b[^>]*>")
_STYLE = re.compile(r"<style\b[^>]*>.*?</style>", re.DOTALL)
"""The looks that a table of pandas brings along, instead of which it gets those of the site."""

Notebook = nbformat.NotebookNode


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryPage:
    """An example as a page, and the files that the page shows or offers."""

    name: str
    """Name of the script, without its ending."""
    title: str
    summary: str
    """The first paragraph below the title."""
    markdown: str
    files: dict[str, bytes]
    """Pictures, the script and the notebook, by their names."""
    picture: str | None
    """Name of the last picture; None if nothing was drawn."""


def gallery_page(script: Path, *, execute: bool, folder: Path) -> GalleryPage:
    """Return the page of a script.

    Args:
        script: The script in the percent format.
        execute: Whether its cells are run; without, the page has no output.
        folder: Current directory of the cells.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell has failed; the message shows it.
    """
    source = script.read_text(encoding="utf-8")
    notebook = jupytext.reads(source, fmt="py:percent")
    if execute:
        _execute(notebook, folder)
    name, files = script.stem, dict[str, bytes]()
    parts = [part for cell in notebook.cells for part in _cell_parts(cell, name, files)]
    pictures = list(files)
    files[script.name] = source.encode()
    files[f"{name}.ipynb"] = nbformat.writes(notebook).encode()
    downloads = f"[{script.name}]({script.name}), [{name}.ipynb]({name}.ipynb)"
    parts.append(f"Download this example as a script or as a notebook: {downloads}.")
    text = "\n\n".join(parts)
    return GalleryPage(
        name=name,
        title=title_of(text),
        summary=_first_paragraph(text),
        markdown=f"{text}\n",
        files=files,
        picture=pictures[-1] if pictures else None,
    )


def _execute(notebook: Notebook, folder: Path) -> None:
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        notebook, timeout=CELL_SECONDS, kernel_name="python3", resources=resources
    )
    # Messages pass through files, not through ports that others on the machine could reach.
    with TemporaryDirectory() as sockets:
        kernel = client.create_kernel_manager()
        kernel.transport, kernel.ip = "ipc", str(Path(sockets, "kernel"))
        client.execute()


def gallery_index(pages: list[GalleryPage]) -> str:
    """Return the page that lists all examples, each with its question and its picture."""
    cards = []
    for page in pages:
        picture = f"\n\n    [![]({page.picture})]({page.name}.md)" if page.picture else ""
        cards.append(f"-   **[{page.title}]({page.name}.md)**{picture}\n\n    {page.summary}")
    text = "Every example answers one question, and runs when this site is built."
    listed = "\n\n".join(cards)
    return f'# Gallery\n\n{text}\n\n<div class="grid cards" markdown>\n\n{listed}\n\n</div>\n'


def _cell_parts(cell: Notebook, name: str, files: dict[str, bytes]) -> list[str]:
    """Return a cell and what it shows as Markdown; add its pictures to `files`."""
    if cell.cell_type == "markdown":
        return [cell.source]
    if not cell.source.strip():
        return []
    shown = [_output(output, name, files) for output in cell.get("outputs", [])]
    return [_fenced("python", cell.source), *filter(None, shown)]


def _output(output: Notebook, name: str, files: dict[str, bytes]) -> str:
    if output.output_type == "stream":
        return _fenced("text", output.text.rstrip()) if output.name == "stdout" else ""
    data = output.data
    for kind, end in _PICTURES.items():
        if kind in data:
            picture = f"{name}-{len(files) + 1}.{end}"
            is_text = end == "svg"
            files[picture] = data[kind].encode() if is_text else base64.b64decode(data[kind])
            return f"![{_alternative(data)}]({picture})"
    if "text/html" in data:
        html = _TABLE.sub("<table>", _STYLE.sub("", data["text/html"]))
        return f'<div class="output" markdown="0">\n{html}\n</div>'
    return _fenced("text", data.get("text/plain", "").rstrip())


def _alternative(data: Notebook) -> str:
    """Return the text of a picture for those who do not see it."""
    text = " ".join(data.get("text/plain", "").split())
    return "" if text.startswith("<") else text.replace("[", "(").replace("]", ")")


def _fenced(language: str, text: str) -> str:
    fence = "`" * max(3, 1 + _longest_fence(text))
    return f"{fence}{language}\n{text}\n{fence}"


def _longest_fence(text: str) -> int:
    lengths = [len(line) - len(line.lstrip("`")) for line in text.splitlines()]
    return max(lengths, default=0)


def _first_paragraph(text: str) -> str:
    paragraphs = [each.strip() for each in text.split("\n\n")]
    plain = (each for each in paragraphs if each and not each.startswith(("#", "`", "!", "<")))
    return " ".join(next(plain).split())
