import xml.etree.ElementTree as ElementTree

from gpn_scale.page.markup import (
    class_letter,
    coordinate,
    escaped,
    figures,
    part_of_whole,
    percent,
    power_of_ten,
    shortened,
    tag,
)
from tests.page.drawings import INF, NAN


def test_hostile_text_is_text():
    hostile = "<script>alert(1)</script>\"'&\x00\x0b\ud800\uffff"
    for text in (escaped(hostile), tag("a", escaped(hostile), title=hostile)):
        assert "<script" not in text
        ElementTree.fromstring(f"<p>{text}</p>")
        text.encode()


def test_numbers_as_people_read_them():
    assert figures(0.000012345) == "1.23·10⁻⁵"
    assert figures(12345.6) == "12,346"
    assert figures(0.5) == "0.500"
    assert figures(0.0) == "0"
    assert [percent(v) for v in (0.1234, NAN, None)] == ["12.3 %", "n.a.", "n.a."]
    assert [part_of_whole(v) for v in (0.0, 1e-9, 0.001, 0.5)] == [
        "0.0 %",
        "< 0.1 %",
        "0.1 %",
        "50.0 %",
    ]
    assert figures(INF) == figures(None) == "n.a."
    assert [power_of_ten(v) for v in (-4, -3, 0, 3, 5)] == ["10⁻⁴", "0.001", "1", "1,000", "10⁵"]
    assert [class_letter(c) for c in (-1, 0, 25, 26, 52)] == ["?", "A", "Z", "AA", "BA"]


def test_coordinates_have_one_decimal_at_most():
    assert [coordinate(v) for v in (-0.04, -0.5, 1.25, 100.0)] == ["0", "-0.5", "1.2", "100"]


def test_long_names_are_cut():
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abcde…"


def test_attributes_of_elements():
    assert tag("a", class_="b", aria_label="c", title=None, x=1.0) == (
        '<a class="b" aria-label="c" x="1"/>'
    )
    assert tag("a", "") == "<a></a>"
