from gpn_scale.page.texts import (
    anchor,
    class_letter,
    clean,
    figures,
    part_of_whole,
    percent,
    power_of_ten,
    shortened,
)
from tests.page.drawings import INF, NAN


def test_characters_that_xml_forbids_are_replaced():
    assert clean("a\x00\x0b\ud800\uffffb\t") == "a\ufffd\ufffd\ufffd\ufffdb\t"


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


def test_long_names_are_cut():
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abcde…"


def test_anchors_hold_letters_and_digits_alone():
    assert anchor("a b[c=1e-3]") == "a-b-c-1e-3-"
