from gpn_scale.experiments.curves import STUDIED, StudyCurve
from gpn_scale.experiments.tables import Entry
from gpn_scale.page.study_plots import study_plot, study_table
from tests.page.drawings import parsed


def study():
    """Accuracy at three values; no other metric."""
    rows = tuple(
        (Entry("G", "GPN", "clean", "accuracy", mean, 0.1, 3), *[None] * (len(STUDIED) - 1))
        for mean in (60.0, 80.0, 70.0)
    )
    return StudyCurve("G", "GPN", "train.weight_decay", ("0", "1e-3", "1e-2"), rows)


def test_values_are_equally_spaced_and_in_their_order():
    plot = study_plot(study())
    assert plot.name == "study-G-GPN-train-weight-decay"
    root = parsed(plot)
    ticks = {p.text: float(p.get("x")) for p in root.iter() if p.get("class") == "tick"}
    first, second, third = (ticks[value] for value in ("0", "1e-3", "1e-2"))
    assert second - first == third - second


def test_the_table_has_a_row_for_each_value():
    text = study_table(study())
    assert text.count("<tr>") == 4
    assert "80.0 ± 0.1" in text
    assert text.count("n.a.") == 3 * (len(STUDIED) - 1)
