from gpn_scale.experiments.curves import QUANTITIES, ShiftCurve
from gpn_scale.page.curve_chart import MOST_LINES
from gpn_scale.page.shift_charts import shift_charts, shift_picture
from tests.page.drawings import texts_in


def curve(model, quantity="accuracy", kind="normal"):
    values = (0.9, 0.5, 0.1)
    return ShiftCurve("G", model, "feature-shift", kind, quantity, (0.0, 0.1, 0.9), values, values)


def test_a_chart_for_every_kind_and_quantity():
    curves = [curve("GPN", quantity, kind) for kind in "ab" for quantity in QUANTITIES]
    charts = shift_charts(curves)
    assert len(charts) == len({chart.name for chart in charts}) == 2 * len(QUANTITIES)
    assert charts[0].name == "feature-shift-G-a-accuracy"
    assert charts[0].title == "G, a: accuracy"


def test_more_models_than_lines_have_several_charts_with_the_first_in_each():
    models = [f"M{place}" for place in range(MOST_LINES + 2)]
    charts = shift_charts([curve(model) for model in models])
    shown = [[text for text in texts_in(chart) if text in models] for chart in charts]
    assert shown == [models[:MOST_LINES], [models[0], *models[MOST_LINES:]]]


def test_a_picture_has_every_quantity_and_names_its_lines():
    picture = shift_picture("p", "title", [curve("GPN", quantity) for quantity in QUANTITIES])
    texts = texts_in(picture)
    assert "GPN, normal" in texts
    assert set(QUANTITIES.values()) <= set(texts)
