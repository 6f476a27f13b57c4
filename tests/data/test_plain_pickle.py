import pickle
from collections import defaultdict
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.data.plain_pickle import read_plain_pickle
from gpn_scale.errors import FileError
from tests.data.raw_files import Marker

PYTHON_2_GRAPH = (
    b"\x80\x02ccollections\ndefaultdict\nq\x01c__builtin__\nlist\nq\x02\x85Rq\x03"
    b"(K\x00]q\x04(K\x01K\x02eK\x01]q\x05K\x00au."
)
PYTHON_2_ARRAY = (
    b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b"
    b"\x87Rq\x03(K\x01K\x02K\x01\x86cnumpy\ndtype\nq\x04U\x02i4K\x00K\x01\x87Rq\x05(K\x03U\x01<"
    b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x08\x07\x00\x00\x00\xff\xff\xff\xfftb."
)

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.integers() | st.text(), inner),
    max_leaves=20,
).filter(lambda value: value is not None)


@given(plain, st.integers(0, 5))
def test_plain_values_are_those_of_pickle(value, protocol):
    content = pickle.dumps(value, protocol=protocol)
    assert read_plain_pickle(content, "x") == pickle.loads(content)


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "i1", "<i8", ">u2", "?"])
@pytest.mark.parametrize("shape", [(0, 3), (4,), (3, 2)])
def test_arrays_are_those_of_pickle(protocol, dtype, shape):
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for value in (array, np.asfortranarray(array)):
        given_back = read_plain_pickle(pickle.dumps(value, protocol=protocol), "x")
        np.testing.assert_array_equal(given_back, value)
        assert given_back.dtype.isnative


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_matrices_are_those_of_pickle(protocol):
    matrix = scipy.sparse.csr_matrix(np.array([[0, 2.5, 0], [0, 0, 0], [1, 0, 3]]))
    given_back = read_plain_pickle(pickle.dumps(matrix, protocol=protocol), "x")
    np.testing.assert_array_equal(given_back.toarray(), matrix.toarray())


def test_pickles_of_python_2_are_read():
    assert read_plain_pickle(PYTHON_2_GRAPH, "x") == {0: [1, 2], 1: [0]}
    assert pickle.loads(PYTHON_2_GRAPH) == defaultdict(list, {0: [1, 2], 1: [0]})
    assert read_plain_pickle(PYTHON_2_ARRAY, "x").tolist() == [[7], [-1]]


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("wrap", [lambda each: each, lambda each: [1, each], lambda e: {0: e}])
def test_what_would_run_is_refused(tmp_path, protocol, wrap):
    path = tmp_path / "marker"
    content = pickle.dumps(wrap(Marker(path)), protocol=protocol)
    with pytest.raises(FileError, match="x: refused to read this pickle, since it names "):
        read_plain_pickle(content, "x")
    assert not path.exists()
    pickle.loads(content)
    assert path.exists()  # the pickle does what it should


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"cos\nsystem\n(S'true'\ntR.", "it names os.system"),
        (b"ccollections\ndefaultdict\n(cnumpy\ndtype\ntR.", "a default other than an empty list"),
        (b"cnumpy\ndtype\n(S'O8'\nI0\nI1\ntR.", "an array holds 'O8', expected numbers"),
        (b"cscipy.sparse.csr\ncsr_matrix\n(tR.", "it calls something else"),
        (b"cscipy.sparse.csr\ncsr_matrix\n)\x81.", "an array has no content"),
        (b"cscipy.sparse.csr\ncsr_matrix\n)\x81}b.", "no vector 'indptr'"),
        (b"cnumpy\nndarray\n.", "more or less than one value"),
        (b"}(]I1\nu.", "keys of a dictionary"),
        (b"(I1\nI2\n", "damaged pickle"),
        (b"I1\nI2\n.", "more or less than one value"),
        (b"P0\n.", "the instruction PERSID"),
        (b"\x82\x01.", "the instruction EXT1"),
        (b"(i__builtin__\nlist\n.", "the instruction INST"),
        (b"]}b.", "sets the state of something else"),
        (b"I0\n(I1\ne.", "adds to something else than a list"),
        (b"g5\n.", "damaged pickle"),
        (b"t.", "a mark is missing"),
        (b"(\x85.", "a mark stands where a value should"),
        (b"L" + b"9" * 5000 + b"L\n.", "damaged pickle"),
        (PYTHON_2_ARRAY.replace(b"K\x02K\x01\x86", b"K\x03K\x01\x86"), r"shape \(3, 1\) holds 8 b"),
        (PYTHON_2_ARRAY.replace(b"U\x01<", b"U\x01!"), "the type of an array is damaged"),
        (PYTHON_2_ARRAY.replace(b"cnumpy\nndarray", b"cnumpy\ndtype"), "a class of its own"),
        (b"", "damaged pickle"),
    ],
)
def test_anything_else_is_refused(content, reason):
    with pytest.raises(FileError, match=reason):
        read_plain_pickle(content, "x")


@pytest.mark.parametrize(
    "change",
    [
        {"indptr": np.array([0, 1, 5])},
        {"indptr": np.array([0, 2, 1])},
        {"indptr": np.array([0.0, 1.0, 2.0])},
        {"indices": np.array([0, 9])},
        {"indices": np.array([-1, 0])},
        {"indices": np.array([[0, 1]])},
        {"data": np.ones(3)},
        {"_shape": (2, -1)},
        {"_shape": (1 << 40, 3)},
        {"_shape": 7},
    ],
)
def test_matrices_whose_pieces_do_not_fit_are_refused(change):
    matrix = scipy.sparse.csr_matrix(np.array([[0, 2.0], [1.0, 0]]))
    matrix.__dict__.update(change)
    with pytest.raises(FileError, match="refused to read this pickle, since "):
        read_plain_pickle(pickle.dumps(matrix, protocol=2), "x")


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_damage_gives_a_value_or_one_error(data):
    matrix = scipy.sparse.csr_matrix(np.eye(2))
    whole = data.draw(st.sampled_from([PYTHON_2_ARRAY, PYTHON_2_GRAPH, pickle.dumps(matrix, 2)]))
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(1, len(content)))]
    with suppress(FileError):
        read_plain_pickle(bytes(content), "x")


@given(st.binary(max_size=200))
def test_noise_gives_a_value_or_one_error(content):
    with suppress(FileError):
        read_plain_pickle(content, "x")


def test_repeated_references_are_not_copied():
    """Lists of a hundred references to the list before, 30 deep: 10^60 values if copied."""
    content = b"]q\x00" + b"".join(
        b"](" + (b"h" + bytes([level])) * 100 + b"eq" + bytes([level + 1]) for level in range(30)
    )
    value = read_plain_pickle(b"(" + content + b"l.", "x")
    for _ in range(30):
        value = value[-1]
    assert value[0] == []
