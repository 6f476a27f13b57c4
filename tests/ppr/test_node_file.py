import io

import numpy as np
import pytest

from gpn_scale.errors import StoreError
from gpn_scale.ppr.node_file import read_node_file
from gpn_scale.ppr.sealed import checksum


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def read(path, data, wanted=None, dtype="<i4", size=3, below=5):
    path.write_bytes(data)
    return read_node_file(path, wanted or checksum(data), dtype, size, below=below)


def test_a_vector_comes_back(tmp_path):
    values = np.array([0, 4, 2], np.int32)
    np.testing.assert_array_equal(read(tmp_path / "f", npy(values)), values, strict=True)
    empty = np.array([], np.float32)
    assert read(tmp_path / "f", npy(empty), dtype="<f4", size=0).size == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([0, 5, 2], np.int32), r"a number is out of the range \[0, 5\)"),
        (np.array([0, -1, 2], np.int32), "a number is out of the range"),
        (np.array([0, 1], np.int32), r"it holds int32 of shape \(2,\)"),
        (np.array([0, 1, 2], np.int64), r"it holds int64 of shape \(3,\)"),
    ],
)
def test_other_content_is_refused(tmp_path, values, message):
    with pytest.raises(StoreError, match=rf"{message}.*existing='resume'"):
        read(tmp_path / "f", npy(values))


def test_masses_are_finite(tmp_path):
    for value in (np.nan, np.inf):
        with pytest.raises(StoreError, match="out of the range"):
            read(tmp_path / "f", npy(np.array([value], np.float32)), None, "<f4", 1, np.inf)


def test_damaged_and_missing_files(tmp_path):
    with pytest.raises(StoreError, match=r"its checksum is .*, expected .*existing='resume'"):
        read(tmp_path / "f", b"other", wanted=checksum(b"content"))
    with pytest.raises(StoreError, match="is damaged: "):
        read(tmp_path / "f", b"not an array")
    with pytest.raises(StoreError, match="is missing or cannot be read"):
        read_node_file(tmp_path / "none", "", "<i4", 3, below=3)
