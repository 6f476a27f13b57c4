from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.errors import GraphError
from gpn_scale.evaluation.p_values import PValues
from gpn_scale.interop.prediction_columns import prediction_columns
from tests.evaluation.samples import prediction_for


def test_columns_are_those_of_the_prediction(small_graph):
    prediction = prediction_for(small_graph)
    columns = prediction_columns(small_graph, prediction)
    assert columns.keys() == {"predicted_class", "probabilities", "alpha_0"}
    np.testing.assert_array_equal(columns["predicted_class"], prediction.probabilities.argmax(1))
    np.testing.assert_array_equal(columns["alpha_0"], prediction.alpha_0)


def test_a_prediction_of_other_nodes_is_refused(small_graph):
    some = prediction_for(small_graph).rows(slice(0, 7))
    with pytest.raises(
        GraphError, match="prediction has 7 nodes, expected the 300 nodes"
    ) as raised:
        prediction_columns(small_graph, some)
    assert raised.value.arguments == ("prediction",)


def test_p_values_of_a_gpn_plus_are_among_them(small_graph):
    known = np.linspace(0.1, 1.0, 300, dtype=np.float32)
    prediction = replace(prediction_for(small_graph), p=PValues(known=known))
    np.testing.assert_array_equal(prediction_columns(small_graph, prediction)["p_known"], known)
