from gpn_scale.page.components import (
    Section,
    class_badge,
    class_list,
    columns,
    figure,
    name_of,
    paragraph,
    table,
    tiles,
)
from gpn_scale.page.markup import COLOURS
from gpn_scale.page.svg import Plot
from tests.page.outline import Outline


def test_a_section_is_labelled_by_its_heading():
    text = Section("name", "A & B", paragraph("1 < 2")).markup()
    assert Outline(text).ids == ["name", "name-heading"]
    assert 'aria-labelledby="name-heading"' in text
    assert "A &amp; B" in text
    assert "<p>1 &lt; 2</p>" in text


def test_a_figure_has_title_and_caption():
    plot = Plot(name="p", title="T & U", description="", width=1, height=1, body="")
    text = figure(plot, "x < y")
    assert "<h3>T &amp; U</h3>" in text
    assert "<figcaption>x &lt; y</figcaption>" in text
    assert columns("a", "b") == '<div class="columns">ab</div>'


def test_tables_and_tiles_have_every_value():
    text = table(["", "a", "b"], [["x", "1", "2"], ["y", "3", "4"]], "numbers")
    outline = Outline(text)
    assert outline.tags.count("tr") == 3
    assert outline.tags.count("td") == 4
    text = tiles([("name", "value", "meaning")])
    assert all(part in text for part in (">name<", ">value<", ">meaning<"))


def test_long_names_are_cut_and_shown_in_full_on_demand():
    assert name_of("<a>") == "<bdi>&lt;a&gt;</bdi>"
    text = name_of("n" * 61)
    assert f'title="{"n" * 61}"' in text
    assert f"{'n' * 59}…" in text


def test_classes_have_letters_and_colours():
    assert class_badge(0) == '<span class="badge k0">A</span>'
    assert f"k{27 % COLOURS}" in class_badge(27)
    assert class_badge(-1) == '<span class="badge unnamed">?</span>'
    assert class_list(["first", "second"]).count("<li>") == 2
