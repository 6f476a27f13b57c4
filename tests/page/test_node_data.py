import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.page.node_data import json_text, node_data, view_data
from tests.page.samples import node_rows

HOSTILE = "</script><!--<script>\u2028&\u202e"


@given(st.recursive(st.text() | st.integers() | st.none(), lambda v: st.lists(v, max_size=3)))
def test_json_in_a_script_element_cannot_end_it(value):
    text = json_text(value)
    assert not set("<>&\u2028\u2029") & set(text)
    text.encode()


def test_json_is_read_back():
    value = {"a": [HOSTILE, "'\\\"", 1, None]}
    assert json.loads(json_text(value)) == value
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text(float("nan"))


def test_every_column_has_a_value_per_row():
    rows = node_rows(30)
    data = node_data(rows, ("a", "b", "c"))
    columns = ("predicted", "probability", "label", "split", "mark", "evidence", "own", "p_known")
    for name in (*columns, "reason", "degree"):
        assert len(data[name]) == 30, name
    assert data["letters"] == ["A", "B", "C"]
    np.testing.assert_allclose(data["evidence"], rows.evidence, rtol=1e-3)
    assert data["kinds"] == ["nothing unusual", "foreign features", "torn between classes"]
    json_text(data)


def test_contributors_are_small_numbers():
    rows = node_rows(5)
    contributors = node_data(rows, ("a", "b", "c"))["contributors"]
    assert contributors["count"] == [0, 1, 1, 1, 1]
    assert contributors["index"] == [0, 0, 0, 0]
    assert [share / contributors["units"] for share in contributors["share"]] == [0.5] * 4
    assert (contributors["adjacent"], contributors["bound"]) == ("1111", "10101")


def test_what_is_not_there_is_null():
    rows = node_rows(10)
    rows.components.position[2] = np.nan
    data = node_data(replace(rows, p_known=None, p_parts={}, near=None), ("a", "b", "c"))
    assert data["p_known"] is None
    assert data["maps"]["components"]["x"][2] is None
    assert list(data["maps"]) == ["components"]


def test_views_are_specifications_of_vega_with_edges_that_cover_the_values():
    rows = node_rows()
    views = view_data(rows, 3)
    assert set(views["histograms"]) == {"p_known", "evidence", "probability"}
    assert len(views["maps"]) == 4
    edges = views["histograms"]["evidence"]["edges"]
    assert edges[0] <= rows.evidence.min() + 1e-5
    assert edges[-1] >= rows.evidence.max() - 1e-5
    for view in [*views["maps"].values()]:
        assert view["$schema"].endswith("/vega/v6.json")
    assert set(view_data(replace(rows, p_known=None), 3)["histograms"]) == {
        "evidence",
        "probability",
    }
    json_text(views)
