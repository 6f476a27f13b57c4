import pytest
from foreign_sources import foreign_addresses, foreign_sources


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://a.example/b.js"></script>',
        "<script async src='//a.example/b.js'></script>",
        '<link rel="stylesheet" href="https://a.example/b.css">',
        '<img alt="x" src="http://a.example/b.png">',
        '<iframe src="https://a.example/"></iframe>',
        '<p style="background: url(https://a.example/b.png)">',
        "<style>@import 'https://a.example/b.css';</style>",
        "<style>p { src: url( //a.example/font.woff ) }</style>",
    ],
)
def test_what_is_loaded_from_elsewhere_is_named(page):
    (address,) = foreign_addresses(f"<html>{page}</html>")
    assert "//a.example/" in address


@pytest.mark.parametrize(
    "page",
    [
        '<a href="https://a.example/">a link, which a person follows</a>',
        '<script src="assets/b.js"></script><img src="../b.png">',
        '<link rel="canonical" href="https://a.example/">',
        "<code>&lt;script src=&quot;https://a.example/b.js&quot;&gt;</code>",
        '<svg xmlns="http://www.w3.org/2000/svg"><style>p { fill: url(#a) }</style></svg>',
    ],
)
def test_what_loads_nothing_is_not_named(page):
    assert foreign_addresses(page) == []


def test_all_files_of_a_site_are_looked_at(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.html").write_text('<script src="//a.example/b.js"></script>')
    (tmp_path / "b.css").write_text("@font-face { src: url('https://a.example/c.woff') }")
    (tmp_path / "c.svg").write_text('<svg><image href="https://a.example/d.png"/></svg>')
    (tmp_path / "d.txt").write_text('<script src="//a.example/b.js">')
    lines = foreign_sources(tmp_path)
    assert [line.partition(":")[0] for line in lines] == ["b.css", "c.svg", "inner/a.html"]
