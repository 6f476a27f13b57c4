from gpn_scale.experiments.curves import QUANTITIES, ShiftCurve
from gpn_scale.page.charts import MOST_LINES
from gpn_scale.page.shift_plots import anchor, shift_picture, shift_plots, side_by_side
from gpn_scale.page.svg import Plot
from tests.page.drawings import parsed


def curve(model, quantity="accuracy", kind="normal"):
    values = (0.9, 0.5, 0.1)
    return ShiftCurve("G", model, "feature-shift", kind, quantity, (0.0, 0.1, 0.9), values, values)


def names_in(plot):
    return [p.text for p in parsed(plot).iter() if p.get("class") == "label"]


def test_a_plot_for_every_kind_and_quantity():
    curves = [curve("GPN", quantity, kind) for kind in "ab" for quantity in QUANTITIES]
    plots = shift_plots(curves)
    assert len(plots) == len({plot.name for plot in plots}) == 2 * len(QUANTITIES)
    assert plots[0].name == "feature-shift-G-a-accuracy"
    assert plots[0].title == "G, a: accuracy"


def test_more_models_than_lines_have_several_plots_with_the_first_in_each():
    plots = shift_plots([curve(model) for model in ("GPN", *"ABCDE")])
    assert [names_in(plot) for plot in plots] == [["GPN", "A", "B", "C"], ["GPN", "D", "E"]]
    assert all(len(names_in(plot)) <= MOST_LINES for plot in plots)


def test_a_picture_has_every_quantity_and_names_models_below():
    picture = shift_picture("p", "title", [curve("GPN", quantity) for quantity in QUANTITIES])
    assert names_in(picture) == ["GPN, normal"] * 2
    assert picture.body.count("translate(") == len(QUANTITIES)


def test_plots_side_by_side_do_not_overlap():
    plots = [
        Plot(name=str(i), title="", description=str(i), width=10, height=h, body="")
        for i, h in enumerate((5, 20, 7))
    ]
    picture = side_by_side("p", "title", plots)
    assert (picture.width, picture.height) == (44, 51)
    for corner in ("translate(0 0)", "translate(34 0)", "translate(0 44)"):
        assert corner in picture.body
    assert picture.description == "0 1 2"


def test_anchors_hold_letters_and_digits_alone():
    assert anchor("a b[c=1e-3]") == "a-b-c-1e-3-"
