from dataclasses import replace

from gpn_scale.experiments.curves import STUDIED, StudyCurve
from gpn_scale.experiments.tables import Entry
from gpn_scale.page.study_charts import study_chart
from tests.page.drawings import parsed, texts_in


def study():
    """Accuracy at three values; no other metric."""
    rows = tuple(
        (Entry("G", "GPN", "clean", "accuracy", mean, 0.1, 3), *[None] * (len(STUDIED) - 1))
        for mean in (60.0, 80.0, 70.0)
    )
    return StudyCurve("G", "GPN", "train.weight_decay", ("0", "1e-3", "1e-2"), rows)


def test_values_are_in_their_order():
    chart = study_chart(study())
    assert chart.name == "study-G-GPN-train-weight-decay"
    texts = texts_in(chart)
    places = [texts.index(value) for value in ("0", "1e-3", "1e-2")]
    assert places == sorted(places)


def test_values_with_quotes_are_texts():
    parsed(study_chart(replace(study(), values=("'", '"', "];alert(1)"))))
