import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repository_links import (
    repository_path,
    shown_files,
    site_path,
    title_of,
    with_captions,
    with_site_links,
    with_titles,
)

from tests.docs import REPOSITORY


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("docs/triage.md", "triage.md"),
        ("docs/pictures/p-known.svg", "pictures/p-known.svg"),
        ("benchmarks/results/ranks.md", "measurements/ranks.md"),
        ("benchmarks/results/leaderboard", "measurements/leaderboard.md"),
        ("benchmarks/results/leaderboard/CoraML.csv", "measurements/leaderboard/CoraML.csv"),
        ("examples/gallery/01_unknown.py", "gallery/01_unknown.md"),
        ("examples/bank.py", "examples/bank.py"),
        ("SECURITY.md", "project/security.md"),
        ("README.md", "index.md"),
        ("gpn_scale/files.py", None),
        ("docsearch/page.md", None),
    ],
)
def test_files_have_a_place_on_the_site(path, place):
    assert site_path(path) == place


@pytest.mark.parametrize(
    "path", ["docs/triage.md", "benchmarks/results/ranks.md", "SECURITY.md", "CHANGELOG.md"]
)
def test_the_file_of_a_page_is_found_again(path):
    assert repository_path(site_path(path)) == path


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("docs/a.md", "[b](b.md#c)", "[b](b.md#c)"),
        ("docs/a.md", "[b](../benchmarks/results/b.md)", "[b](measurements/b.md)"),
        ("docs/a.md", "![b](pictures/b.svg)", "![b](pictures/b.svg)"),
        ("docs/a.md", "[b](../SECURITY.md#c)", "[b](project/security.md#c)"),
        ("docs/a.md", "[b](https://example.org/b.md)", "[b](https://example.org/b.md)"),
        ("docs/a.md", "[b](#c)", "[b](#c)"),
        ("docs/a.md", "[b](../tests/b.py)", "[b](../tests/b.py)"),
        ("SECURITY.md", "[b](docs/b.md)", "[b](../b.md)"),
        ("benchmarks/results/a.md", "[b](../../docs/b.md)", "[b](../b.md)"),
        ("benchmarks/results/a.md", "[b](b.md)", "[b](b.md)"),
    ],
)
def test_links_lead_to_the_places_on_the_site(page, link, expected):
    assert with_site_links(f"See {link}.", page) == f"See {expected}."


names = st.text("abc", min_size=1, max_size=3)
paths = st.builds(
    lambda folder, name: f"{folder}{name}.md",
    st.sampled_from(["docs/", "docs/d/", "benchmarks/results/", "benchmarks/results/d/"]),
    names,
)


@given(page=paths, target=paths)
def test_a_link_on_the_site_leads_to_the_same_file_as_in_the_repository(page, target):
    link = posixpath.relpath(target, posixpath.dirname(page))
    on_site = with_site_links(f"[x]({link})", page).removeprefix("[x](").removesuffix(")")
    place = posixpath.normpath(posixpath.join(posixpath.dirname(site_path(page)), on_site))
    assert repository_path(place) == target


def test_files_outside_of_docs_that_are_shown():
    shown = shown_files(REPOSITORY)
    assert "SECURITY.md" in shown
    assert "benchmarks/results/ranks_2cores_202611.md" in shown
    assert "examples/parts_slurm.sh" in shown
    assert not [path for path in shown if path.startswith(("docs/", "examples/gallery/"))]
    assert len({site_path(path) for path in shown}) == len(shown)


def test_the_title_is_the_first_heading():
    assert title_of("Text\n\n# A title\n\n# Another\n") == "A title"


def test_links_that_show_a_file_name_show_the_title_of_the_page(tmp_path):
    (tmp_path / "a_b.md").write_text("# The posterior\n")
    text = "See [a_b.md](a_b.md#c), [other](a_b.md), [gone.md](gone.md)."
    expected = "See [The posterior](a_b.md#c), [other](a_b.md), [gone.md](gone.md)."
    assert with_titles(text, tmp_path) == expected


def test_pictures_that_stand_alone_get_captions():
    text = "A\n\n![CoraML: errors](p/a.svg)\n\nIn ![a text](b.svg).\n"
    assert with_captions(text) == (
        "A\n\n<figure markdown>\n![CoraML: errors](p/a.svg)\n"
        "<figcaption>CoraML: errors</figcaption>\n</figure>\n\nIn ![a text](b.svg).\n"
    )
