"""The page of a comparison, `drift.html`."""

from pathlib import Path

from gpn_scale.drift.comparison import DRIFT_PAGE, Drift
from gpn_scale.files import write_text
from gpn_scale.page.document import document
from gpn_scale.page.drift_columns import columns
from gpn_scale.page.drift_sections import classes, known, nodes, overview
from gpn_scale.page.section import Section


def write_drift_page(folder: Path, drift: Drift) -> Path:
    """Write the page to an existing folder, and return its path."""
    path = folder / DRIFT_PAGE
    title = "What has moved"
    page = document(title, f"{drift.a} (A) and {drift.b} (B)", drift_sections(drift), heading=title)
    write_text(path, page)
    return path


def drift_sections(drift: Drift) -> list[Section]:
    """Return the sections that there are figures for, in the order of the page."""
    sections = [overview(drift), known(drift), classes(drift), columns(drift), nodes(drift)]
    return [each for each in sections if each is not None]
