from gpn_scale.page.section import Figure, section
from tests.page.outline import Outline
from tests.page.test_chart import chart


def test_a_section_has_its_figures_with_title_and_caption():
    figure = Figure(chart("p", "T & U"), "x < y")
    made = section("s", "S", "figures.html", figures=(figure,), text="a", notes=("b",), kind="")
    assert "<h3>T &amp; U</h3>" in made.body
    assert "<figcaption>x &lt; y</figcaption>" in made.body
    assert made.charts == (figure.chart,)
    assert Outline(made.body).tags.count("svg") == 1
