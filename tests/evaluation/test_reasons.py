import numpy as np
import pytest

from gpn_scale.evaluation.p_values import PValues
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.reasons import NOTHING_UNUSUAL, reason_kind, reasons


def prediction_with(p, probabilities):
    total = np.ones(len(probabilities), np.float32)
    return Prediction(
        probabilities=probabilities,
        probabilities_no_network=probabilities,
        alpha_0=total,
        alpha_0_no_network=total,
        p=p,
    )


PROBABILITIES = np.array([[0.2, 0.5, 0.3]] * 5, np.float32)


def test_the_smallest_p_value_is_the_reason():
    p = PValues(
        features=np.array([0.01, 0.5, 0.5, 0.5, 0.1]),
        neighbourhood=np.array([0.5, 0.01, 0.5, 0.5, 0.2]),
        opinion=np.array([0.5, 0.5, 0.01, 0.5, 0.2]),
        labels=np.array([0.5, 0.5, 0.5, 0.11, 0.2]),
        known=np.full(5, 0.5),
    )
    assert reasons(prediction_with(p, PROBABILITIES), ["a", "b", "c"]).tolist() == [
        "foreign features",
        "foreign neighbourhood",
        "torn between b and c",
        NOTHING_UNUSUAL,
        "foreign features",
    ]


def test_the_opinion_tells_doubt_between_classes_from_little_support():
    probabilities = np.array([[0.06, 0.89, 0.05], [0.05, 0.9, 0.05]], np.float32)
    p = PValues(opinion=np.full(2, 0.01), known=np.full(2, 0.01))
    texts = reasons(prediction_with(p, probabilities), ["a", "b", "c"])
    assert texts.tolist() == ["torn between b and a", "little support for any class"]


def test_a_part_that_is_missing_is_never_the_reason():
    p = PValues(labels=np.full(5, 0.01), known=np.full(5, 0.01))
    assert set(reasons(prediction_with(p, PROBABILITIES), ["a", "b", "c"])) == {"no label near"}


@pytest.mark.parametrize("count", [0, 1])
def test_few_nodes(count):
    p = PValues(opinion=np.full(count, 0.01), known=np.full(count, 0.01))
    texts = reasons(prediction_with(p, PROBABILITIES[:count]), ["a", "b", "c"])
    assert texts.tolist() == ["torn between b and c"] * count


def test_a_model_without_p_values_has_no_reasons():
    assert reasons(prediction_with(None, PROBABILITIES), ["a", "b", "c"]) is None


def test_reasons_of_a_kind_have_one_name():
    assert reason_kind("torn between a and b") == reason_kind("torn between b and c")
    assert reason_kind("") == "nothing unusual"
