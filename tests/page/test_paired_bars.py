import pytest

from gpn_scale.page.paired_bars import paired_bars
from tests.page.drawings import parsed, texts_in


def bars(labels, a, b):
    return paired_bars("x", "Shares", labels, {"A": a, "B": b}, description="Shares of classes")


def test_every_label_has_two_bars():
    chart = bars(["sea", "land"], [0.2, 0.8], [0.5, 0.5])
    assert {"sea", "land", "A", "B"} <= set(texts_in(chart))
    labels = {part.get("aria-label") for part in parsed(chart).iter()}
    assert {"sea: 20.0 % of A", "land: 50.0 % of B"} <= labels
    assert chart.description.startswith("Shares of classes: sea: 20.0 % of A; land")


@pytest.mark.parametrize("labels", [[], ["<b>"], ["x" * 500], ["\x00", "\u202e"]])
def test_any_labels_can_be_drawn(labels):
    parsed(bars(labels, [0.0] * len(labels), [1.0] * len(labels)))
