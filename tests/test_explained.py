import errno
import json
import os
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from safetensors import SafetensorError, safe_open

from gpn_scale.errors import GraphError, MachineError
from gpn_scale.explained import Explained, as_user_error
from gpn_scale.files import replacing


def error_of(run):
    try:
        run()
    except BaseException as error:
        return error
    raise AssertionError("no error")


def write_to_a_full_disk():
    with open("/dev/full", "w") as file:
        file.write("x")


@pytest.mark.parametrize(
    ("number", "step"),
    [
        (errno.ENOSPC, "free space on this disk"),
        (errno.EACCES, "give this user permission"),
        (errno.EROFS, "choose a folder that can be written"),
        (errno.EFBIG, "raise the limit on the size of files"),
        (errno.ENAMETOOLONG, "choose a shorter name"),
        (errno.EMFILE, "raise the limit on open files"),
        (errno.EIO, "check the disk"),
    ],
)
def test_errors_of_the_system_name_the_file_and_what_to_do(number, step):
    error = OSError(number, os.strerror(number), "run/model")
    assert str(as_user_error(error)).startswith(f"run/model: {os.strerror(number)}: {step}")


def test_the_file_that_was_to_be_written_is_named(tmp_path):
    def write():
        with replacing(tmp_path / "model"):
            raise OSError(errno.EFBIG, "File too large")

    assert str(as_user_error(error_of(write))).startswith(
        f"{tmp_path}/model: File too large: raise"
    )

    def save():
        with replacing(tmp_path / "model"):
            raise SafetensorError(
                "Error while serializing: I/O error: File too large (os error 27)"
            )

    assert str(as_user_error(error_of(save))).startswith(f"{tmp_path}/model: File too large: raise")


def test_other_errors_of_the_system():
    assert str(as_user_error(OSError(errno.EBADF, "Bad file descriptor"))) == (
        "a file cannot be read or written: Bad file descriptor"
    )
    assert str(as_user_error(OSError("odd"))) == "a file cannot be read or written (odd)"
    both = OSError(errno.EXDEV, "Invalid cross-device link", "a", None, "b")
    assert str(as_user_error(both)) == "a and b: Invalid cross-device link"
    assert "No space left on device" in str(as_user_error(error_of(write_to_a_full_disk)))


@pytest.mark.parametrize(
    "allocate",
    [
        lambda: np.empty(1 << 60),
        lambda: np.empty(1 << 62, np.float64),
        lambda: np.zeros((1 << 40, 1 << 40)),
        lambda: torch.empty(1 << 55),
        lambda: torch.empty(1 << 31, 1 << 31, 1 << 31),
        lambda: torch.empty(1 << 62, dtype=torch.float64),
        lambda: bytearray(1 << 60),
        lambda: pa.allocate_buffer(1 << 60),
    ],
)
def test_allocations_that_cannot_be_had(allocate):
    problem = as_user_error(error_of(allocate))
    assert isinstance(problem, MachineError)
    assert str(problem).startswith("not enough memory (")


def test_errors_of_other_packages(tmp_path):
    (tmp_path / "x").write_text("x")
    assert isinstance(error := error_of(lambda: safe_open(tmp_path / "x", "pt")), SafetensorError)
    assert "a model or checkpoint file cannot be read" in str(as_user_error(error))
    error = error_of(lambda: pa.parquet.read_schema(tmp_path / "x"))
    assert "a table cannot be read or written" in str(as_user_error(error))
    assert "UTF-8" in str(as_user_error(error_of(lambda: b"\xff".decode())))
    assert "zero byte" in str(as_user_error(error_of(lambda: os.stat("a\0b"))))
    assert "killed from outside" in str(as_user_error(BrokenProcessPool("abruptly")))


def test_faults_of_the_program_are_not_explained():
    for error in (KeyError("x"), ZeroDivisionError(), TypeError(), AssertionError(), ValueError()):
        assert as_user_error(error) is None
    assert as_user_error(BrokenPipeError()) is None
    assert as_user_error(error_of(lambda: json.loads("{"))) is None


def test_a_block_raises_what_is_explained():
    with pytest.raises(MachineError, match="not enough memory"), Explained():
        raise MemoryError
    with pytest.raises(KeyError), Explained():
        raise KeyError("x")
    known = GraphError("known")
    with pytest.raises(GraphError) as caught, Explained():
        raise known
    assert caught.value is known
    with pytest.raises(KeyboardInterrupt), Explained():
        raise KeyboardInterrupt


def test_links_in_a_circle_are_the_users(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with (
        pytest.raises(MachineError, match="its symbolic links form a cycle: replace them"),
        Explained(),
    ):
        (tmp_path / "loop").resolve(strict=True)
