import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.id_list import read_id_list
from gpn_scale.errors import FileError


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_ids_are_read_back(tmp_path_factory, ids):
    path = tmp_path_factory.mktemp("ids") / "ids.txt"
    path.write_text("".join(f"{each}\n" for each in ids))
    np.testing.assert_array_equal(read_id_list(path), ids)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no data"),
        (b"1.5\n", "line 1 is '1.5'"),
        (b"1 2\n3 4\n", "line 1 is '1 2'"),
        (b"# ids\n7\n\n 8 # eight\nx\n", "line 5 is 'x'"),
        (b"9" * 5000, r"line 1 is '9{40}\.\.\.'"),
        (b"9" * 30, "line 1|could not convert|too large"),
        (b"\xff\n", "is not text in UTF-8"),
    ],
)
def test_other_content_is_refused(tmp_path, content, reason):
    (tmp_path / "ids.txt").write_bytes(content)
    with pytest.raises(FileError, match=rf"(?s)ids.txt cannot be read \(.*{reason}.*node id per"):
        read_id_list(tmp_path / "ids.txt")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match=r"a pipe \(FIFO\)"):
        read_id_list(tmp_path / "pipe")
    with pytest.raises(FileError, match="No such file"):
        read_id_list(tmp_path / "none")
