import datetime

import pytest

from gpn_scale import Graph, build_graph
from gpn_scale.triage.raw_values import RawValue, UsualColumns

NODES = {
    "id": ["a", "b", "c", "d", "e"],
    "label": ["x", "y", "x", None, None],
    "split": ["train", "train", "train", None, None],
    "volume": [10.0, 12.0, 500.0, 11.0, None],
    "country": ["DE", "FR", "DE", "XK", "DE"],
    "opened": [datetime.date(2020, 1, day) for day in (1, 1, 2, 3, 1)],
}
EDGES = {"source": ["a"], "target": ["b"]}


@pytest.fixture(scope="module")
def usual():
    return UsualColumns.of(Graph.from_tables(NODES, EDGES))


def by_name(usual, node):
    return {value.name: value for value in usual.values(node)}


def test_usual_values_are_those_of_the_training_nodes_alone(usual):
    values = by_name(usual, 3)
    assert (values["volume"].value, values["volume"].usual) == (11.0, 12.0)
    assert (values["country"].value, values["country"].usual) == ("XK", "DE")
    assert values["opened"].value == "2020-01-03"
    assert values["opened"].usual == "2020-01-01"


def test_strangeness_is_the_fraction_of_training_nodes_that_are_more_usual(usual):
    assert by_name(usual, 2)["volume"].strangeness == pytest.approx(2 / 3)
    assert by_name(usual, 1)["volume"].strangeness == 0.0
    assert by_name(usual, 3)["country"].strangeness == 1.0
    assert by_name(usual, 1)["country"].strangeness == pytest.approx(2 / 3)


def test_missing_values_are_named(usual):
    value = by_name(usual, 4)["volume"]
    assert value.value is None
    assert str(value) == "volume missing (usually 12)"


def test_long_texts_are_shortened():
    value = RawValue(name="purpose", value="z" * 99, usual=None, strangeness=0.0)
    assert str(value) == f"purpose {'z' * 39}…"


def test_a_graph_without_raw_columns_has_no_usual_ones():
    assert UsualColumns.of(build_graph([0], [1], features=[[1.0], [2.0]])) is None
