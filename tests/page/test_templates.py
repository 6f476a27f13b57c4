import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from gpn_scale.page.templates import rendered, resource
from tests.page.outline import Outline


def test_texts_are_escaped_and_markup_is_not():
    text = rendered("name.html", text="<b>\x00\"'&")
    assert text == "<bdi>&lt;b&gt;\ufffd&#34;&#39;&amp;</bdi>"
    assert isinstance(text, Markup)
    assert rendered("name.html", text=Markup("<b>")) == "<bdi><b></bdi>"


def test_marks_of_direction_stay_only_in_names_with_an_element_of_their_own():
    name = "\u202etrade\u2066"
    text = rendered("tables.html", text=name, figures=[], folded=name, tables=[])
    assert "\u202e" not in text
    assert text.count("[U+202E]trade[U+2066]") == 2
    assert rendered("name.html", text=name) == f"<bdi>{name}</bdi>"
    long = rendered("name.html", text=name + "x" * 60)
    assert 'title="[U+202E]trade' in long
    assert "<bdi>" not in rendered("name.html", text="<bdi>")[5:-6]


def test_long_names_are_cut_and_shown_in_full_on_demand():
    text = rendered("name.html", text="n" * 61)
    assert f'title="{"n" * 61}"' in text
    assert f"{'n' * 59}…" in text


def test_classes_have_letters_and_colours():
    text = rendered("class_name.html", label=8, text="x")
    assert text == '<span class="badge k1">I</span> <bdi>x</bdi>'
    assert 'class="badge unnamed">?' in rendered("class_name.html", label=-1, text="x")


def test_tables_have_every_value():
    table = {"header": ["", "a", "b"], "rows": [["x", 1, 2], ["y", 3, 4]], "caption": "numbers"}
    text = rendered("tables.html", text="t", figures=(), tables=[table], folded="more")
    outline = Outline(text)
    assert outline.tags.count("tr") == 3
    assert outline.tags.count("td") == 4
    assert outline.tags.count("details") == 1


def test_a_value_that_is_not_given_is_an_error():
    with pytest.raises(UndefinedError, match="'label' is undefined"):
        rendered("class_name.html", text="x")


def test_resources_are_files_of_the_package():
    assert "var(--ink)" in resource("page.css")
