import numpy as np

from gpn_scale.drift.comparison import compare
from gpn_scale.drift.verdict import most_moved_part
from tests.drift.samples import columns_of, raw_graph, scored, strange

OWN = columns_of(600)


def stranger(fraction=0.2, **changed):
    names = ("p_known", "p_features")
    return scored(600, **{name: strange(OWN[name], fraction) for name in names}, **changed)


def test_nothing_has_moved():
    drift = compare(scored(600), scored(600))
    assert drift.verdict == (
        "Nothing has moved beyond what chance explains: 4.5 % of the nodes look unknown in A, "
        "4.5 % in B."
    )
    assert drift.advice == ("There is nothing to do: compare again next time.",)
    assert drift.most_moved_part is None


def test_more_nodes_look_unknown_by_a_part_and_columns():
    age = np.random.default_rng(9).normal(65, 10, 600)
    country = ["XK"] * 200 + ["DE"] * 400
    graph = raw_graph(age=age, country=country)
    drift = compare(scored(600), stranger(), graph_a=raw_graph(), graph_b=graph)
    assert drift.verdict.startswith("The share of nodes that look unknown rose from 4.5 % to 2")
    assert drift.verdict.endswith(
        ", mostly by their features, most in the columns age and country."
    )
    assert drift.advice[0].startswith("Review the nodes that look unknown")
    assert "train again" in drift.advice[1]
    assert "recorded as before." in drift.advice[2]


def test_fewer_nodes_look_unknown():
    drift = compare(stranger(), scored(600))
    assert "fell from 2" in drift.verdict
    assert "mostly by their features" in drift.verdict
    assert not any("Review" in each for each in drift.advice)


def test_one_column_is_named_with_its_new_values():
    country = np.where(np.arange(600) < 150, "XK", "DE")
    drift = compare(
        scored(600), scored(600), graph_a=raw_graph(), graph_b=raw_graph(country=country)
    )
    assert drift.verdict == (
        "Predictions have not moved (4.5 % of the nodes look unknown in A, 4.5 % in B), but inputs "
        "have, most in the column country (new values: 'XK' (150); vanished values: 'FR', 'NL')."
    )
    assert "so far, nodes do not look stranger because of them" in drift.advice[0]


def test_a_distribution_that_moves_above_the_level():
    half = np.where(OWN["p_known"] > 0.05, OWN["p_known"] / 2 + 0.025, OWN["p_known"])
    drift = compare(scored(600), scored(600, p_known=half.astype(np.float32)))
    assert drift.verdict.startswith("Nodes look stranger on the whole, but 4.5 % of the nodes")
    assert drift.advice[0].startswith("Review")


def test_classes_that_move():
    one = {"predicted_class": [0] * 600, "predicted_class_name": ["private"] * 600}
    drift = compare(scored(600, abstain=[False] * 600), scored(600, abstain=[False] * 600, **one))
    assert drift.verdict.startswith("The share of nodes predicted as private rose from 3")
    assert drift.verdict.endswith("in B.")
    assert "Check some predictions of the classes" in drift.advice[0]
    assert "promised error rate does not hold after a drift" in drift.advice[1]


def test_classes_that_move_with_the_p_values_are_in_the_verdict_too():
    one = {"predicted_class": [0] * 600, "predicted_class_name": ["private"] * 600}
    drift = compare(scored(600), stranger(**one))
    first, second = drift.verdict.split(". The share of nodes predicted as private rose from 3")
    assert first.startswith("The share of nodes that look unknown rose from 4.5 % to 2")
    assert second.endswith("to 100.0 %.")


def test_models_without_p_values_have_a_verdict():
    bare = {f"p_{name}": None for name in ("known", "features", "neighbourhood", "opinion")}
    assert compare(scored(600, **bare), scored(600, **bare)).verdict == (
        "Nothing has moved beyond what chance explains."
    )


def test_single_nodes_that_moved_are_worth_a_look():
    p_known = OWN["p_known"].copy()
    first = int(np.argmax(p_known))
    p_known[first] = 0.005
    drift = compare(scored(600), scored(600, p_known=p_known))
    assert drift.advice == ("Nothing moved overall; single nodes that did are listed here.",)


def test_a_part_that_moves_the_other_direction_is_no_cause():
    less = np.sqrt(OWN["p_opinion"]).astype(np.float32)
    drift = compare(scored(600), stranger(p_opinion=less))
    moved = {part.name for part in drift.parts if part.moved}
    assert moved == {"known", "features", "opinion"}
    assert most_moved_part(drift.parts).name == "features"


def test_long_names_are_cut():
    name = "x" * 200
    a = raw_graph(**{name: np.arange(600)})
    b = raw_graph(**{name: np.arange(600) + 500})
    verdict = compare(scored(600), scored(600), graph_a=a, graph_b=b).verdict
    assert len(verdict) < 200
