import io
import os
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale import reading
from gpn_scale.data.npz_arrays import mapped_arrays, read_arrays
from gpn_scale.errors import GraphError


def npy(array, shape=None):
    stream = io.BytesIO()
    np.save(stream, array)
    content = stream.getvalue()
    if shape is None:
        return content
    old, new = str(array.shape).encode(), str(shape).encode()
    return content.replace(old + b", }" + b" " * (len(new) - len(old)), new + b", }")


def put(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def test_only_wanted_arrays_are_read(tmp_path):
    path = put(tmp_path / "a.npz", x=npy(np.arange(3)), y=b"damaged")
    arrays = read_arrays(path, lambda name: name == "x")
    assert {name: each.tolist() for name, each in arrays.items()} == {"x": [0, 1, 2]}


def test_an_array_that_promises_too_much_is_refused(tmp_path):
    path = put(tmp_path / "a.npz", x=npy(np.arange(3), (3000000000000,)))
    with pytest.raises(
        GraphError, match=r"'x' of shape \(3000000000000,\) and type int64 does not"
    ):
        read_arrays(path, lambda name: True)


def test_an_archive_that_unpacks_to_far_more_is_refused(tmp_path, monkeypatch):
    path = put(tmp_path / "a.npz", x=npy(np.zeros(1 << 20)))
    assert read_arrays(path, lambda name: True)["x"].size == 1 << 20
    monkeypatch.setattr(reading, "UNPACKED_BYTES", 1 << 20)
    with pytest.raises(GraphError, match=r"unpacks to 8,388,736 bytes, expected at most"):
        read_arrays(path, lambda name: True)


@pytest.mark.parametrize("kind", ["fifo", "folder"])
def test_only_regular_files_are_opened(tmp_path, kind):
    path = tmp_path / "a.npz"
    os.mkfifo(path) if kind == "fifo" else path.mkdir()
    with pytest.raises(GraphError, match=r"expected a regular file.*a graph in \.npz format"):
        read_arrays(path, lambda name: True)


@pytest.mark.parametrize("header", [b"-" * 9000 + b"1", b"{'descr': '<i8', 'shape': (1,", b"("])
def test_headers_that_are_no_headers_are_refused(tmp_path, header):
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with pytest.raises(GraphError, match=r"cannot be read as \.npz without pickle"):
        read_arrays(put(tmp_path / "a.npz", x=member), lambda name: True)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damage_gives_arrays_or_one_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damage") / "a.npz"
    content = bytearray(put(path, x=npy(np.arange(6)), y=npy(np.eye(2))).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with suppress(GraphError):
        read_arrays(path, lambda name: True)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("memory_bytes", [0, 1 << 20])
def test_mapped_arrays_are_those_that_were_saved(tmp_path, save, memory_bytes):
    arrays = {
        "a": np.arange(12, dtype=np.int64).reshape(2, 6),
        "b": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(3, 2)),
        "c": np.empty((0, 4), np.float32),
        "d": np.array(7),
        "other": np.array([None], dtype=object),
    }
    save(tmp_path / "x.npz", **arrays)
    mapped = mapped_arrays(tmp_path / "x.npz", ["a", "b", "c", "d"], tmp_path, memory_bytes)
    for name, array in mapped.items():
        assert array.dtype == arrays[name].dtype
        assert array.shape == arrays[name].shape
        assert array.tolist() == arrays[name].tolist()
    assert isinstance(mapped["a"], np.memmap) == (save is np.savez or memory_bytes == 0)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npz"]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damaged_and_pickled_arrays_are_not_mapped(tmp_path, save):
    path = tmp_path / "x.npz"
    save(path, a=np.arange(1000), o=np.array([None], dtype=object))
    with pytest.raises(GraphError, match="has no array 'b': download the file again"):
        mapped_arrays(path, ["b"])
    with pytest.raises(GraphError, match="array 'o' is pickled"):
        mapped_arrays(path, ["o"])
    content = bytearray(path.read_bytes())
    content[400] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(GraphError, match=r"cannot be read as \.npz without pickle"):
        mapped_arrays(path, ["a"])
    path.write_bytes(b"PK\3\4")
    with pytest.raises(GraphError, match=r"cannot be read as \.npz without pickle"):
        mapped_arrays(path, ["a"])
    with pytest.raises(GraphError, match="cannot be read"):
        mapped_arrays(tmp_path / "none.npz", ["a"])
