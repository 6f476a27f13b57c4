"""The whole site but the API, built as `make docs` does it: warnings are errors."""

import re

import pytest
import site_hooks
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort, PluginError

from tests.docs import REPOSITORY

PAGES = sorted(path.name for path in (REPOSITORY / "docs").glob("*.md"))


def built_site(folder, monkeypatch, **settings):
    monkeypatch.setenv("GALLERY", "0")
    monkeypatch.setenv("API", "0")
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    monkeypatch.chdir(REPOSITORY)
    config = load_config(str(REPOSITORY / "mkdocs.yml"), site_dir=str(folder), **settings)
    build(config)
    return config


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        built_site(folder, patch)
    return folder


def test_every_page_is_built(site):
    for name in PAGES:
        assert (site / name).with_suffix(".html").stat().st_size > 1000
    assert (site / "commands" / "gpn-train.html").exists()
    assert (site / "measurements" / "ranks_2cores_202611.html").exists()
    assert (site / "project" / "security.html").exists()


def test_hooks_are_no_pages_of_the_site(site):
    assert not (site / "hooks").exists()


def test_the_home_page_needs_no_navigation_beside_it(site):
    home = (site / "index.html").read_text(encoding="utf-8")
    assert re.search(r'md-sidebar--primary"[^>]*hidden', home)


def test_search_and_filters_are_files_of_the_site(site):
    page = (site / "results.html").read_text(encoding="utf-8")
    scripts = re.findall(r'<script src="([^"]+)"', page)
    assert "assets/table_filter.js" in scripts
    assert "assets/iframe-worker.js" in scripts
    assert all((site / name).exists() for name in scripts)
    assert (site / "search" / "search_index.js").read_text(encoding="utf-8").startswith("var __in")


def test_the_navigation_names_every_page_once():
    text = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"\b(\w+\.md)$", text.partition("\nnav:")[2], re.MULTILINE)
    assert sorted(named) == PAGES


def test_a_broken_link_ends_the_build(tmp_path, monkeypatch):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Home\n\n[gone](gone.md)\n")
    settings = {"docs_dir": str(docs), "nav": [{"Home": "index.md"}], "hooks": [], "plugins": []}
    with pytest.raises(Abort, match="strict mode"):
        built_site(tmp_path / "site", monkeypatch, **settings)


def test_what_another_host_would_have_to_deliver_ends_the_build(tmp_path):
    (tmp_path / "a.html").write_text('<script src="https://a.example/b.js"></script>')
    with pytest.raises(PluginError, match=r"a\.html: https://a\.example/b\.js"):
        site_hooks.on_post_build({"site_dir": tmp_path})


def test_empty_entries_of_the_navigation_vanish():
    nav = [{"A": "{none}"}, {"B": ["b.md", "{some}"]}, "{some}"]
    filled = site_hooks._filled(nav, {"{none}": [], "{some}": ["c.md", "d.md"]})
    assert filled == [{"B": ["b.md", "c.md", "d.md"]}, "c.md", "d.md"]


def test_scripts_of_the_gallery_become_pages_with_downloads(tmp_path, monkeypatch):
    (tmp_path / "01_a.py").write_text(
        "# %% [markdown]\n# # Why is it so?\n#\n# Since.\n\n# %%\n1 + 1\n"
    )
    monkeypatch.setattr(site_hooks, "SCRIPTS", str(tmp_path))
    monkeypatch.setenv("GALLERY", "0")
    config = load_config(str(REPOSITORY / "mkdocs.yml"), hooks=[], plugins=[])
    nav = site_hooks.on_config(config).nav
    assert {"Gallery": ["gallery/index.md", "gallery/01_a.md"]} in nav
    files = site_hooks._gallery_files()
    assert set(files) == {
        "gallery/index.md",
        "gallery/01_a.md",
        "gallery/01_a.py",
        "gallery/01_a.ipynb",
    }
    assert "[Why is it so?](01_a.md)" in files["gallery/index.md"]


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("# T\n\nTwo ranks are faster.\nMore.\n", "Two ranks are faster."),
        ("# T\n\nIt takes 1.5 s\nper row. More.\n", "It takes 1.5 s per row."),
        ("# T\n\nCommand: `x`.\n", ""),
        ("# T\n\n| a |\n", ""),
    ],
)
def test_a_measurement_is_listed_with_its_first_sentence(text, claim):
    assert site_hooks._claim(text) == claim
