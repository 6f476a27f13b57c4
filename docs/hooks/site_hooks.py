"""What MkDocs calls while it builds the site: pages that are made of the repository itself.

`GALLERY=0` in the environment shows the gallery without running it, `API=0` leaves the API out.
"""

import os
import re
from pathlib import Path
from typing import Any

from api_pages import api_pages
from command_pages import command_pages, with_command_links
from foreign_sources import foreign_sources
from gallery_pages import GalleryPage, gallery_index, gallery_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from repository_links import (
    PROJECT_PAGES,
    repository_path,
    shown_files,
    site_path,
    title_of,
    with_captions,
    with_site_links,
    with_titles,
)

REPOSITORY = Path(__file__).parents[2]
CAPTIONED = ("leaderboard.md", "results.md")
"""Pages with many pictures that no text explains, so that each needs a caption."""
SCRIPTS = "examples/gallery"
"""Folder of the scripts of the gallery."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the entries of the navigation that stand in braces."""
    scripts = [f"gallery/{path.stem}.md" for path in _scripts()]
    measured = [path for path in shown_files(REPOSITORY) if path.startswith("benchmarks/")]
    entries = {
        "{gallery}": ["gallery/index.md", *scripts] if scripts else [],
        "{commands}": list(command_pages()),
        "{api}": [place for place in api_pages(REPOSITORY) if _is_wanted("API")],
        "{project}": [
            {name.removesuffix(".md").capitalize(): str(site_path(name))}
            for name in PROJECT_PAGES
            if (REPOSITORY / name).exists()
        ],
        "{measurements}": [
            "measurements/index.md",
            "measurements/leaderboard.md",
            *({_short_title(path): str(site_path(path))} for path in measured if _is_page(path)),
        ],
    }
    config.nav = _filled(config.nav, entries)
    return config


def _filled(nav: Any, entries: dict[str, list[Any]]) -> Any:
    """Return the navigation with the entries in place of their names; empty ones vanish."""
    if isinstance(nav, str):
        return entries.get(nav, nav)
    if isinstance(nav, dict):
        filled = {title: _filled(inside, entries) for title, inside in nav.items()}
        return {title: inside for title, inside in filled.items() if inside}
    items: list[Any] = []
    for item in nav:
        inside = _filled(item, entries)
        items += inside if isinstance(inside, list) else [inside]
    return [item for item in items if item]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of API, commands and gallery, and files outside of `docs/`."""
    pages = command_pages() | _measured_pages()
    if _is_wanted("API"):
        pages |= api_pages(REPOSITORY)
    for place, text in pages.items():
        files.append(File.generated(config, place, content=text))
    for path in shown_files(REPOSITORY):
        place = str(site_path(path))
        files.append(File.generated(config, place, abs_src_path=str(REPOSITORY / path)))
    for place, content in _gallery_files().items():
        files.append(File.generated(config, place, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Let links between files of the repository lead to their places on the site."""
    place = page.file.src_uri
    if place == "index.md":
        page.meta["hide"] = ["navigation", "toc"]
    if place == "commands.md":
        markdown = with_command_links(markdown)
    if place in CAPTIONED:
        markdown = with_captions(markdown)
    path = repository_path(place)
    markdown = with_titles(markdown, (REPOSITORY / path).parent)
    return with_site_links(markdown, path)


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site that would load anything from another host."""
    foreign = foreign_sources(Path(config["site_dir"]))
    if foreign:
        raise PluginError("the site would load from other hosts:\n" + "\n".join(foreign))


def _is_wanted(part: str) -> bool:
    """Return whether the environment does not turn a part of the site off."""
    return os.environ.get(part, "1") != "0"


def _scripts() -> list[Path]:
    return sorted((REPOSITORY / SCRIPTS).glob("*.py"))


def _gallery_files() -> dict[str, str | bytes]:
    """Return the pages, pictures and downloads of the gallery by their places."""
    execute = _is_wanted("GALLERY")
    pages: list[GalleryPage] = [
        gallery_page(script, execute=execute, folder=REPOSITORY) for script in _scripts()
    ]
    places: dict[str, str | bytes] = {}
    for page in pages:
        places[f"gallery/{page.name}.md"] = page.markdown
        places |= {f"gallery/{name}": content for name, content in page.files.items()}
    if pages:
        places["gallery/index.md"] = gallery_index(pages)
    return places


def _measured_pages() -> dict[str, str]:
    """Return the list of all measurements, and that of the cells of the leaderboard."""
    folder = REPOSITORY / "benchmarks" / "results"
    rows = []
    for path in sorted(folder.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        rows.append(f"| [{title_of(text)}]({path.name}) | {_claim(text)} |")
    listed = "\n".join(["| measurement | result |", "|---|---|", *rows])
    cells = sorted((folder / "leaderboard").glob("*.csv"))
    tables = "\n".join(f"- [{path.name}](leaderboard/{path.name})" for path in cells)
    return {
        "measurements/index.md": "# Measurements\n\nEvery page names the command that made it.\n\n"
        f"{listed}\n",
        "measurements/leaderboard.md": "# Cells of the leaderboard\n\nEvery measured number of "
        f"every training, one table per graph.\n\n{tables}\n",
    }


def _is_page(path: str) -> bool:
    return path.endswith(".md")


def _short_title(path: str) -> str:
    """Return the title of a measurement without the machine and the month."""
    title = title_of((REPOSITORY / path).read_text(encoding="utf-8"))
    return re.split(r"[,;] 2 cores", title, maxsplit=1)[0]


def _claim(text: str) -> str:
    """Return the first sentence below the title; empty if it only leads to something else."""
    paragraph = text.partition("\n\n")[2].partition("\n\n")[0]
    sentence = re.split(r"(?<=[.:])\s", " ".join(paragraph.split()), maxsplit=1)[0]
    return sentence if sentence.endswith(".") else ""
