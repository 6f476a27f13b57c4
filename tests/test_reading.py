import gzip
import os
import socket
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale import reading
from gpn_scale.errors import FileError
from gpn_scale.reading import (
    check_file,
    file_size,
    open_file,
    open_gzip,
    parse_json,
    read_bytes,
    read_json,
    read_text,
)

READERS = [
    open_file,
    check_file,
    file_size,
    lambda path: read_bytes(path, 10),
    read_text,
    read_json,
    open_gzip,
]


@pytest.mark.parametrize("read", READERS)
def test_only_regular_files_are_opened(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name, kind in (
        ("pipe", r"a pipe \(FIFO\)"),
        ("link", r"a pipe \(FIFO\)"),
        ("", "a folder"),
    ):
        with pytest.raises(FileError, match=rf"{name} is {kind}, expected a regular file"):
            read(tmp_path / name)
    with pytest.raises(FileError, match="is a device"):
        read("/dev/zero")
    with pytest.raises(FileError, match="cannot be the path of a file"):
        read("a\0b")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none")


def test_a_socket_is_not_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(OSError, match="socket"):
            open_file("socket")


def test_a_link_to_a_file_is_followed(tmp_path):
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_text(tmp_path / "link") == "text"
    assert file_size(tmp_path / "link") == 4


def test_files_are_bounded(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_bytes(tmp_path / "file", 5) == b"12345"
    with pytest.raises(FileError, match="holds 5 bytes, expected at most 4"):
        read_bytes(tmp_path / "file", 4)
    with pytest.raises(FileError, match="holds 5 bytes, expected at most 3"):
        read_json(tmp_path / "file", 3)


def test_text_is_utf8_with_any_line_ends(tmp_path):
    (tmp_path / "file").write_bytes("é\r\nb\rc\n".encode())
    assert read_text(tmp_path / "file") == "é\nb\nc\n"
    (tmp_path / "file").write_bytes(b"ab\xff")
    with pytest.raises(FileError, match=r"file is not text in UTF-8 \(byte 3 is 0xff\)"):
        read_text(tmp_path / "file")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 10_000, "nested more than 64 deep"),
        ("[" * 10_000 + "]" * 10_000, "nested more than 64 deep"),
        ('{"a":' * 66 + "1" + "}" * 66, "nested more than 64 deep"),
        ("9" * 5000, "a number has too many digits"),
        ("[NaN]", "it holds NaN, expected finite numbers"),
        ("[-Infinity]", "it holds -Infinity"),
        ("[1e999]", "it holds 1e999"),
        ("{", "Expecting property name"),
        ("", "Expecting value"),
    ],
)
def test_json_that_cannot_be_used_is_refused(text, reason):
    with pytest.raises(FileError, match=rf"x is not JSON that can be read \({reason}"):
        parse_json(text, "x")


def test_json_may_be_as_deep_as_the_limit():
    text = "[" * 65 + "]" * 65
    assert len(parse_json(text, "x")) == 1


def test_infinity_where_it_is_allowed():
    assert parse_json("[Infinity, 1e999]", "x", allow_nan=True) == [float("inf")] * 2


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.text() | st.binary() | json_values.map(reading.json.dumps))
def test_any_text_gives_a_value_or_one_error(text):
    with suppress(FileError):
        parse_json(text, "x")


@given(json_values)
def test_values_are_those_of_json(value):
    assert parse_json(reading.json.dumps(value), "x") == value


def test_unpacked_content_is_bounded(tmp_path, monkeypatch):
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(bytes(5 << 20)))
    with open_gzip(path) as stream:
        assert len(stream.read()) == 5 << 20
    monkeypatch.setattr(reading, "UNPACKED_BYTES", 1 << 20)
    with (
        open_gzip(path) as stream,
        pytest.raises(FileError, match=r"holds more than 1,0.* unpacked"),
    ):
        stream.read()


def test_files_are_closed(tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(b"1"))
    before = len(os.listdir("/proc/self/fd"))
    for read in READERS:
        with suppress(FileError):
            opened = read(path)
            if hasattr(opened, "close"):
                opened.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_packed_file_that_was_never_written_to_its_end_is_refused(tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(bytes(300_000)) + bytes(100))  # padding is allowed
    with open_gzip(path) as stream:
        assert len(stream.read()) == 300_000
    os.truncate(path, 1 << 40)
    with pytest.raises(FileError, match="ends with more than 65,536 zero bytes"):
        open_gzip(path)


def test_a_pipe_is_refused_with_another_way(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="regular file: write its output to a file"):
        open_file(tmp_path / "pipe")
