from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.evaluation.p_values import PValues
from gpn_scale.page.node_choice import listed_nodes, strangest_first


@given(st.integers(0, 60), st.integers(4, 40))
def test_the_listed_nodes_are_distinct_and_in_order(count, most):
    order = np.random.default_rng(0).permutation(count)
    listed, sentence = listed_nodes(order, most)
    assert len(listed) == min(count, most)
    place = {node: at for at, node in enumerate(order.tolist())}
    places = [place[node] for node in listed.tolist()]
    assert places == sorted(set(places))
    assert sentence.startswith("All" if count <= most else f"{most} of {count} nodes")
    if count > most:
        ends = [*range(most // 4), *range(count - most // 4, count)]
        assert set(ends) <= set(places)


def test_nodes_are_ordered_by_p_value_then_by_surprise(prediction):
    few = prediction.rows(np.arange(4))
    assert (np.diff(few.alpha_0[strangest_first(few)]) >= 0).all()
    p = np.array([0.5, 0.1, 0.1, 0.9], np.float32)
    surprise = np.array([9.0, 1.0, 2.0, 0.0], np.float32)
    judged = replace(few, p=PValues(known=p), surprise=surprise)
    assert strangest_first(judged).tolist() == [2, 1, 0, 3]
