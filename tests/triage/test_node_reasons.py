"""Reasons in words: one case per reason, and what comes first if several apply."""

import numpy as np
import pytest

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Split
from gpn_scale.evaluation.p_values import PValues
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.triage.node_reasons import UsualValues, is_isolated, node_reasons

NAMES = ["sea", "land", "air"]
USUAL = UsualValues(alpha_0=50.0, label_evidence=0.2)
GRAPH = build_graph([0], [1], num_nodes=3)


def reason_of(probability, node=0, evidence=0.1, **p_values):
    """The reason of a node with these class probabilities and p-values; without any, of a GPN."""
    parts = {name: np.array([value], np.float32) for name, value in p_values.items()}
    one = np.array([12.0], np.float32)
    prediction = Prediction(
        probabilities=np.array([probability], np.float32),
        probabilities_no_network=np.array([probability], np.float32),
        alpha_0=one,
        alpha_0_no_network=one,
        label_evidence=None if evidence is None else np.array([evidence], np.float32),
        p=PValues(**parts) if parts else None,
    )
    (reason,) = node_reasons(GRAPH, np.array([node]), prediction, USUAL, NAMES)
    return reason.text, reason.detail


SURE, TORN = [0.96, 0.03, 0.01], [0.05, 0.45, 0.5]
P = {"features": 0.5, "neighbourhood": 0.5, "opinion": 0.5, "labels": 0.5, "known": 0.5}


@pytest.mark.parametrize(
    ("probability", "p_values", "text", "detail"),
    [
        (SURE, {"features": 0.01, "known": 0.01}, "foreign features", "alpha_0 12, usually 50"),
        (
            SURE,
            {"neighbourhood": 0.01, "known": 0.01},
            "foreign neighbourhood",
            "alpha_0 12, usually 50",
        ),
        (
            SURE,
            {"labels": 0.01, "known": 0.01},
            "no label near",
            "label evidence 0.1, usually 0.2",
        ),
        (TORN, {"opinion": 0.01, "known": 0.01}, "torn between air and land", "air 50%, land 45%"),
        (SURE, {"opinion": 0.01, "known": 0.2}, "little support for any class", "sea 96%, land 3%"),
        (TORN, {"features": 0.05, "known": 0.9}, "torn between air and land", "air 50%, land 45%"),
        (SURE, {"known": 0.01}, "strange surroundings", "alpha_0 12, usually 50"),
        (TORN, {}, "torn between air and land", "air 50%, land 45%"),
        (SURE, {}, "nothing unusual", "sea 96%, land 3%"),
    ],
)
def test_reasons(probability, p_values, text, detail):
    assert reason_of(probability, **(P | p_values)) == (text, detail)


def test_a_model_without_p_values_has_reasons_too():
    assert reason_of(TORN, evidence=None)[0] == "torn between air and land"
    assert reason_of(SURE, evidence=None)[0] == "nothing unusual"


def test_no_edges_come_first_then_no_label():
    assert reason_of(TORN, node=2, evidence=0.0, **P)[0] == "isolated"
    assert reason_of(TORN, node=0, evidence=0.0, **P)[0] == "no label within reach"


def test_edges_count_in_both_directions():
    graph = build_graph([0, 1], [1, 2], num_nodes=4, directed=True)
    assert is_isolated(graph, np.array([3, 2, 0])).tolist() == [True, False, False]
    assert is_isolated(GRAPH, np.array([0, 1, 2])).tolist() == [False, False, True]


def test_usual_values_are_medians_of_validation_nodes():
    graph = build_graph(
        [], [], labels=[0, 1, 0, 1, 0], split=Split(train=[0, 1], val=[2, 3, 4], test=[])
    )
    values = np.array([100, 100, 1, 2, 9], np.float32)
    prediction = Prediction(
        probabilities=np.full((5, 2), 0.5),
        probabilities_no_network=np.full((5, 2), 0.5),
        alpha_0=values,
        alpha_0_no_network=values,
        label_evidence=values / 10,
    )
    usual = UsualValues.of(graph, prediction)
    assert (usual.alpha_0, usual.label_evidence) == (2.0, pytest.approx(0.2))
    without = UsualValues.of(build_graph([], [], labels=[0] * 5), prediction)
    assert (without.alpha_0, without.label_evidence) == (None, None)


def test_without_usual_values_the_figure_stands_alone():
    prediction = Prediction(
        probabilities=np.array([SURE], np.float32),
        probabilities_no_network=np.array([SURE], np.float32),
        alpha_0=np.array([12.0], np.float32),
        alpha_0_no_network=np.array([12.0], np.float32),
        p=PValues(features=np.array([0.01]), known=np.array([0.01])),
    )
    nothing = UsualValues(alpha_0=None, label_evidence=None)
    (reason,) = node_reasons(GRAPH, np.array([0]), prediction, nothing, NAMES)
    assert reason.detail == "alpha_0 12"
