import json
import struct
import xml.etree.ElementTree as ElementTree

import pytest

from gpn_scale.errors import MachineError
from gpn_scale.page import chart as chart_module
from gpn_scale.page.chart import (
    PNG_SCALE,
    Chart,
    cleaned,
    for_browser,
    library_script,
    ordered_scale,
    percent_axis,
)
from gpn_scale.page.palette import LIGHT
from tests.page.drawings import parsed, texts_in

HOSTILE = "</title><script>alert(1)</script>\"'&\x00\ud800\u202e"


def chart(name="c", title="title", label="one", **more):
    values = [{"x": 0.25, "label": label}, {"x": 0.5, "label": "two"}]
    x = {"field": "x", "type": "quantitative", "axis": percent_axis("fraction")}
    y = {"field": "label", "type": "nominal"}
    specification = {"data": {"values": values}, "mark": "bar", "encoding": {"x": x, "y": y}}
    return Chart(name=name, title=title, description="d", specification=specification | more)


def test_a_file_has_title_description_and_colours_of_its_own():
    root = parsed(chart(title="a < b"))
    kinds = [part.tag.rpartition("}")[2] for part in root]
    assert kinds[:3] == ["style", "title", "desc"]
    assert root.get("role") == "img"
    assert [part.text for part in root][1:3] == ["a < b", "d"]
    inline = ElementTree.fromstring(chart().svg())
    assert inline.get("viewBox") == root.get("viewBox")
    assert "style" not in [part.tag.rpartition("}")[2] for part in inline]
    assert {"20 %", "40 %"} <= set(texts_in(chart()))


def test_a_file_is_written_to_a_new_folder(tmp_path):
    path = chart().write(tmp_path / "new" / "one.svg")
    assert path.read_text(encoding="utf-8") == chart().svg_file()


def test_a_notebook_shows_title_and_ground_whatever_the_colours_of_the_screen():
    drawing = chart(title="a < b")._repr_svg_()
    texts = [part.text for part in ElementTree.fromstring(drawing).iter() if part.text]
    assert "a < b" in texts
    assert "prefers-color-scheme" not in drawing
    assert f'fill="{LIGHT["paper"]}"' in drawing


def test_hostile_texts_are_texts():
    hostile = chart(title=HOSTILE, label=HOSTILE)
    root = parsed(hostile)
    assert "script" not in {part.tag.rpartition("}")[2] for part in root.iter()}
    assert any(text.startswith(cleaned(HOSTILE)[:20]) for text in texts_in(hostile))
    hostile.svg_file().encode()


def test_drawings_on_one_page_do_not_share_names_of_parts():
    clipped = {"mark": {"type": "bar", "clip": True}}
    names = []
    for name in ("first", "second"):
        text = chart(name, **clipped).svg()
        own = {part.get("id") for part in ElementTree.fromstring(text).iter()} - {None}
        assert all(each.startswith(f"{name}-") for each in own)
        assert f"url(#{name}-part-0)" in text
        names.append(own)
    assert not names[0] & names[1]


def test_a_png_has_the_size_of_the_drawing():
    content = chart().png_file()
    assert content.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", content[16:24])
    box = parsed(chart()).get("viewBox").split()[2:]
    assert [width, height] == [PNG_SCALE * float(length) for length in box]


def test_the_same_chart_is_the_same_text():
    clipped = {"mark": {"type": "bar", "clip": True}}
    assert chart(**clipped).svg_file() == chart(**clipped).svg_file()


def test_numbers_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        chart(width=float("nan")).svg()


def test_a_specification_for_the_browser_keeps_its_data_sets():
    specification = chart().specification | {"data": {"name": "shown"}}
    compiled = for_browser(specification)
    assert compiled["$schema"].endswith("/vega/v6.json")
    assert "shown" in {data["name"] for data in compiled["data"]}
    json.dumps(compiled)


def test_the_script_of_vega_can_stand_in_a_page():
    script = library_script()
    assert "window.vegaEmbed" in script
    assert "</script" not in script.lower()


def test_scales_repeat_their_values():
    assert ordered_scale("abc", [1, 2]) == {"domain": ["a", "b", "c"], "range": [1, 2, 1]}


def test_charts_are_refused_where_the_engine_would_end_the_process(monkeypatch):
    monkeypatch.setattr(chart_module, "ADDRESS_BYTES", 1 << 62)
    chart_module._check_address_space.cache_clear()
    try:
        with pytest.raises(
            MachineError, match=r"virtual memory, .*: raise its limit \(ulimit -v\)"
        ):
            chart(name="unseen").svg()
    finally:
        chart_module._check_address_space.cache_clear()
