from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.feature_labels import FeatureLabel, distinct_names

LABELS = st.lists(
    st.builds(FeatureLabel, st.sampled_from("ab"), st.sampled_from(["x", "x (2)", "x\0"]))
)


@given(LABELS)
def test_names_are_distinct(labels):
    names = distinct_names(labels)
    assert len(set(names)) == len(labels)
    assert not any("\0" in name for name in names)


@given(st.permutations([FeatureLabel(column, "x") for column in "abc"]))
def test_the_order_of_columns_makes_no_difference(labels):
    names = dict(zip((label.column for label in labels), distinct_names(labels), strict=True))
    assert names == {"a": "x", "b": "x (2)", "c": "x (3)"}


def test_long_labels_keep_their_ends():
    name, other = distinct_names([FeatureLabel("a", "x" * 200 + f"#{end}") for end in (17, 18)])
    assert len(name) < 100
    assert (name[-3:], other[-3:]) == ("#17", "#18")
