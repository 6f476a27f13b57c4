import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.errors import FileError
from gpn_scale.json_shapes import check_shape

SHAPE = {
    "name": str,
    "count": int,
    "share": (float, None),
    "seconds": {str: float},
    "files": [str],
    "ends": {str: ([float], None)},
    "facts": {"nodes": int},
    "flag": bool,
    "pair": [float, str],
    "more?": {"a?": int},
}
VALUE = {
    "name": "a",
    "count": 3,
    "share": None,
    "seconds": {"train": 1, "predict": 0.5},
    "files": [],
    "ends": {"accuracy": [0.1, 1], "ece": None},
    "facts": {"nodes": 7, "more": "x"},
    "flag": True,
    "pair": [1.5, "x"],
}


def test_a_value_of_the_shape_passes():
    check_shape(VALUE, SHAPE, "x")
    check_shape(VALUE | {"more": {"a": 7}}, SHAPE, "x")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": None}, "x.name is None, expected a text"),
        ({"count": 1.5}, "x.count is 1.5, expected a whole number"),
        ({"count": True}, "x.count is True, expected a whole number"),
        ({"share": "1"}, "x.share is '1', expected a number or null"),
        ({"seconds": [1]}, r"x.seconds is \[1\], expected an object"),
        ({"seconds": {"train": None}}, "x.seconds.train is None, expected a number"),
        ({"files": {}}, "x.files is {}, expected a list"),
        ({"files": ["a", 1]}, r"x.files\[1\] is 1, expected a text"),
        ({"ends": {"ece": ["a"]}}, r"x.ends.ece\[0\] is 'a', expected a number"),
        ({"facts": {}}, "x.facts has no entry 'nodes'"),
        ({"pair": [1.5]}, r"x.pair is \[1.5\], expected 2 elements"),
        ({"pair": ["x", 1.5]}, r"x.pair\[0\] is 'x', expected a number"),
        ({"more": None}, "x.more is None, expected an object"),
        ({"more": {"a": "b"}}, "x.more.a is 'b', expected a whole number"),
        ({"flag": 1}, "x.flag is 1, expected true or false"),
    ],
)
def test_other_values_are_named(change, message):
    with pytest.raises(FileError, match=f"^{message}$"):
        check_shape(VALUE | change, SHAPE, "x")


@pytest.mark.parametrize("value", [None, [], 7, "text"])
def test_another_kind_of_document_is_refused(value):
    with pytest.raises(FileError, match=r"^x is .*, expected an object"):
        check_shape(value, SHAPE, "x")


def fits(value, shape):
    """A slow, obvious version of the check."""
    if isinstance(shape, tuple):
        return any(fits(value, each) for each in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(each, shape[0]) for each in value)
    if isinstance(shape, dict) and str in shape:
        return isinstance(value, dict) and all(fits(each, shape[str]) for each in value.values())
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(
            key in value and fits(value[key], inner) for key, inner in shape.items()
        )
    if shape is None or value is None or isinstance(value, bool):
        return value is shape if shape is None else isinstance(value, bool) and shape is bool
    return isinstance(value, (int, float) if shape is float else shape)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
)
plain = st.sampled_from([str, int, float, bool, None])
shapes = st.recursive(
    plain,
    lambda inner: (
        inner.map(lambda each: [each])
        | inner.map(lambda each: {str: each})
        | st.dictionaries(st.sampled_from("ab"), inner, min_size=1)
    ),
)


@given(values, shapes | st.tuples(plain, plain))
def test_the_check_is_that_of_its_description(value, shape):
    try:
        check_shape(json.loads(json.dumps(value)), shape, "x")
    except FileError:
        assert not fits(value, shape)
    else:
        assert fits(value, shape)
