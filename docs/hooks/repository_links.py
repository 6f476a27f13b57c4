"""Where files of the repository stand on the site, and the links between them.

Pages link to each other as files of the repository, so that the links also work where the
repository is browsed. On the site, pages outside of `docs/` have places of their own.
"""

import posixpath
import re
from pathlib import Path

FOLDERS = {
    "docs": "",
    "benchmarks/results": "measurements",
    "examples/gallery": "gallery",
    "examples": "examples",
}
"""Folders of the repository and their places on the site; the first one that fits counts."""
PROJECT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages at the top of the repository that the site shows, as far as they exist."""
SINGLE_FILES = {"README.md": "index.md"} | {
    name: f"project/{name.lower()}" for name in PROJECT_PAGES
}
_FILE_NAME_LINK = re.compile(r"\[(?:docs/)?([\w-]+\.md)\]\(([^)#\s:]+\.md)(#[^)\s]*)?\)")
_LONE_PICTURE = re.compile(r"^!\[([^\]]+)\]\(([^)\s]+)\)$", re.MULTILINE)
_LINK = re.compile(r"(\]\()([^)#\s:]+)(#[^)\s]*)?(\))")


def site_path(path: str) -> str | None:
    """Return the place of a file or folder on the site; None if the site does not show it.

    Args:
        path: Path in the repository, with slashes. A folder stands for a page that lists it, and
            a script of the gallery for its page.
    """
    if path in SINGLE_FILES:
        return SINGLE_FILES[path]
    for folder, place in FOLDERS.items():
        if path.startswith(f"{folder}/"):
            inside = posixpath.join(place, path.removeprefix(f"{folder}/"))
            stem, end = posixpath.splitext(inside)
            is_page = not end or (place == "gallery" and end == ".py")
            return f"{stem}.md" if is_page else inside
    return None


def repository_path(place: str) -> str:
    """Return the file of the repository that a page of the site is made of."""
    for path, single in SINGLE_FILES.items():
        if place == single and path != "README.md":
            return path
    for folder, beginning in FOLDERS.items():
        if beginning and place.startswith(f"{beginning}/"):
            return f"{folder}/{place.removeprefix(f'{beginning}/')}"
    return f"docs/{place}"


def with_site_links(markdown: str, path: str) -> str:
    """Return a page whose links to files of the repository lead to their places on the site.

    Args:
        markdown: Text of the page.
        path: Path of the page in the repository, with slashes.

    Links to files that the site does not show stay as they are, and a strict build names them.
    """
    own = site_path(path)
    assert own is not None

    def replaced(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link[2]))
        place = site_path(target)
        if place is None:
            return link[0]
        relative = posixpath.relpath(place, posixpath.dirname(own) or ".")
        return f"{link[1]}{relative}{link[3] or ''}{link[4]}"

    return _LINK.sub(replaced, markdown)


def with_titles(markdown: str, folder: Path) -> str:
    """Return a page on which links whose text is a file name have the title of that page instead.

    Args:
        markdown: Text of the page.
        folder: Folder of the pages that it links to.
    """

    def replaced(link: re.Match[str]) -> str:
        path = folder / link[2]
        if not path.is_file():
            return link[0]
        return f"[{title_of(path.read_text(encoding='utf-8'))}]({link[2]}{link[3] or ''})"

    return _FILE_NAME_LINK.sub(replaced, markdown)


def with_captions(markdown: str) -> str:
    """Return a page on which every picture that stands alone has its text below it."""
    return _LONE_PICTURE.sub(
        r"<figure markdown>\n![\1](\2)\n<figcaption>\1</figcaption>\n</figure>", markdown
    )


def shown_files(repository: Path) -> list[str]:
    """Return the files outside of `docs/` that the site shows, but for scripts of the gallery."""
    single = [name for name in PROJECT_PAGES if (repository / name).exists()]
    folders = [folder for folder in FOLDERS if folder not in ("docs", "examples/gallery")]
    inside = [
        path.relative_to(repository).as_posix()
        for folder in folders
        for path in sorted((repository / folder).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and path.parent.name != "gallery"
    ]
    return single + inside


def title_of(markdown: str) -> str:
    """Return the first heading of a page, without its sign."""
    heading = re.search(r"^# (.+)$", markdown, re.MULTILINE)
    assert heading is not None, "a page begins with a heading"
    return heading[1]
