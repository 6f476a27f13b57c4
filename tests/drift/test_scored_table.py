import numpy as np
import pyarrow as pa
import pytest

from gpn_scale.drift.scored_table import ScoredTable, check_columns, needed_columns, num_classes_of
from gpn_scale.errors import ConfigError
from tests.drift.samples import columns_of


def table_of(**changed):
    return ScoredTable.of(pa.table(columns_of(30, **changed)))


def test_columns_become_values():
    columns = columns_of(30, split=["train", "val", "test"] + [None] * 27)
    table = ScoredTable.of(pa.table(columns | {"mark_isolated": [False] * 29 + [True]}))
    assert table.ids.to_pylist()[:2] == ["n0", "n1"]
    names = [table.class_names[place] for place in table.predicted]
    assert names == columns["predicted_class_name"]
    np.testing.assert_array_equal(table.p["known"], columns["p_known"])
    assert set(table.p) == {"known", "features", "neighbourhood", "opinion"}
    assert np.flatnonzero(table.used).tolist() == [0, 1]
    assert np.flatnonzero(table.validation).tolist() == [1]
    assert np.flatnonzero(table.marked).tolist() == [29]
    assert table.abstain is None
    assert table.has_names
    assert table.has_class_names


def test_texts_of_csv_are_the_same_values():
    columns = columns_of(30)
    whole = ScoredTable.of(pa.table(columns))
    texts = {
        name: [str(np.float32(each) if name.startswith(("p_", "al")) else each) for each in values]
        for name, values in columns.items()
        if name != "predicted_class_name"
    }
    read = ScoredTable.of(pa.table(texts | {"abstain": ["true"] * 30}))
    for name in whole.p:
        np.testing.assert_array_equal(read.p[name], whole.p[name])
    np.testing.assert_array_equal(read.probability, whole.probability)
    assert read.abstain.all()
    assert not read.has_class_names


def test_columns_without_values_are_absent():
    table = table_of(p_labels=pa.nulls(30, pa.float32()), split=pa.nulls(30), abstain=pa.nulls(30))
    assert "labels" not in table.p
    assert not table.used.any()
    assert table.abstain is None


def test_parts_without_their_sum_are_no_p_values():
    assert table_of(p_known=None).p == {}


def test_a_table_without_names_has_positions_and_numbers():
    table = table_of(node_name=None, predicted_class_name=None)
    assert table.ids.to_pylist()[:2] == ["0", "1"]
    assert not table.has_names
    assert set(table.class_names) <= {"0", "1", "2"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"p_known": np.full(30, 1.5)},
            "'p_known' has other values; expected a number from 0 to 1",
        ),
        ({"p_known": np.full(30, np.nan)}, "'p_known' has other values"),
        ({"aleatoric": np.full(30, 0.4)}, "'aleatoric' has other values; .* from -1 to 0"),
        ({"aleatoric": ["much"] * 30}, "'aleatoric' has other values; expected values of type dou"),
        ({"node": [None] * 30}, "'node' has other values"),
        ({"node": np.arange(30) - 5}, "'node' has other values; expected a number of at least 0"),
        ({"node_name": ["a"] * 30}, "has the node 'a' more than once"),
        ({"node_name": ["a", None] * 15}, "'node_name' has other values; expected a text"),
        ({"abstain": [True, None] * 15}, "'abstain' has other values; expected true or false"),
    ],
)
def test_what_is_no_prediction_is_refused(changed, message):
    with pytest.raises(ConfigError, match=message) as caught:
        table_of(**changed)
    assert caught.value.arguments == ("compare",)


def test_tables_of_something_else_and_empty_ones_are_refused():
    with pytest.raises(ConfigError, match="not a table of predictions: it has no column 'node'"):
        ScoredTable.of(pa.table({"id": ["a"]}), name="accounts.csv")
    with pytest.raises(ConfigError, match="has no rows"):
        ScoredTable.of(pa.table(columns_of(0)))


def test_columns_that_are_read():
    assert needed_columns(["node", "alpha_0", "p_labels", "mark_x", "label"]) == [
        "node",
        "p_labels",
        "mark_x",
    ]
    assert num_classes_of(["node"]) is None
    check_columns(["node", "predicted_class", "aleatoric", "more"], "x")
