import numpy as np
import pytest

from gpn_scale.drift.classes import class_drifts
from gpn_scale.drift.reference import ComparedNodes
from tests.drift.samples import scored


def drifts(a, b):
    return class_drifts(a, b, ComparedNodes.of(a, b))


def with_classes(names, **changed):
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return scored(
        len(names),
        predicted_class=[numbers[name] for name in names],
        predicted_class_name=names,
        **changed,
    )


def test_classes_are_matched_by_name_and_sorted_by_change():
    a = with_classes(["x"] * 50 + ["y"] * 50)
    b = with_classes(["z"] * 30 + ["y"] * 55 + ["x"] * 15)
    drift = drifts(a, b)
    assert [each.name for each in drift.classes] == ["x", "z", "y"]
    assert [each.change for each in drift.classes] == pytest.approx([-0.35, 0.3, 0.05])
    assert [each.status for each in drift.classes] == ["", "new", ""]
    assert [each.moved for each in drift.classes] == [True, True, False]
    assert drifts(b, a).classes[1].status == "vanished"


def test_equal_tables_have_not_moved():
    drift = drifts(scored(200), scored(200))
    assert not any(each.moved or each.change for each in drift.classes)
    before, after = drift.probability
    assert before == after
    assert drift.left_out == ()


def test_classes_without_names_go_by_number():
    a = with_classes(["x"] * 40)
    b = scored(40, predicted_class=[0] * 20 + [3] * 20, predicted_class_name=None)
    drift = drifts(a, b)
    assert [(each.name, each.change) for each in drift.classes] == [("0", -0.5), ("3", 0.5)]
    assert "classes go by their numbers" in drift.left_out[0]


def test_models_of_other_classes_are_told():
    a = scored(40, probability_0=[0.5] * 40, probability_1=[0.5] * 40)
    b = scored(40, probability_0=[1.0] * 40)
    assert "The model of A has 2 classes and that of B has 1" in drifts(a, b).left_out[0]


def test_means_and_promises():
    a = scored(40, aleatoric=np.full(40, -0.75, np.float32), abstain=[True] * 10 + [False] * 30)
    drift = drifts(a, scored(40, abstain=[False] * 40))
    assert drift.probability[0].value == 0.75
    assert [share.count for share in drift.abstained] == [10, 0]
    assert drift.to_dict()["abstained"]["a"]["share"] == 0.25
    one = drifts(a, scored(40))
    assert one.abstained is None
    assert "only A says which they are" in one.left_out[0]


def test_few_nodes_have_no_mean():
    drift = drifts(scored(10), scored(40))
    assert drift.probability is None
    assert "they need 20 nodes of A and of B, and there are 10 and 40" in drift.left_out[0]
    assert drift.to_dict()["mean_probability"] is None
