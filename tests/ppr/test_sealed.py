"""JSON of a store with its own checksum."""

import pytest

from gpn_scale.errors import StoreError
from gpn_scale.ppr.sealed import (
    FORMAT,
    FORMAT_VERSION,
    checksum,
    differences,
    file_checksum,
    holds,
    read_sealed,
    sealed,
    write_if_other,
)


def test_sealed_text_depends_on_the_content_alone(tmp_path):
    value = {"format": FORMAT, "format_version": FORMAT_VERSION, "b": 1, "a": [None, 0.5]}
    assert sealed(value) == sealed(dict(reversed(value.items())))
    path = tmp_path / "sealed.json"
    path.write_text(sealed(value))
    read = read_sealed(path)
    assert {name: read[name] for name in value} == value
    path.write_text(sealed(value).replace("0.5", "0.6"))
    with pytest.raises(StoreError, match="wrong checksum") as caught:
        read_sealed(path)
    assert caught.value.arguments == ("existing=resume",)


def test_checksums_of_files_start_anywhere(tmp_path):
    (tmp_path / "file").write_bytes(b"abcdef")
    assert file_checksum(tmp_path / "file", start=2) == checksum(b"cdef")
    with pytest.raises(StoreError, match="is missing or cannot be read"):
        file_checksum(tmp_path / "none")


@pytest.mark.parametrize(
    ("stored", "wanted", "exact", "clause"),
    [
        ({"k": 1}, {"k": 1}, False, ""),
        ({"k": 1, "more": 2}, {"k": 1}, False, ""),
        ({"k": 1, "more": 2}, {"k": 1}, True, "more: stored 2, wanted nothing"),
        ({"k": 1}, {"k": 1.0}, False, ""),
        ({"k": 1}, {"k": 1.0}, True, "k: stored 1, wanted 1.0"),
        ({}, {"num_nodes": 3}, False, "num nodes: stored nothing, wanted 3"),
    ],
)
def test_differences_are_named(stored, wanted, exact, clause):
    none = {"parameters": {}}
    assert differences(stored | none, wanted | none, exact=exact) == clause
    parameters = differences({"parameters": stored}, {"parameters": wanted}, exact=exact)
    assert parameters == (clause and "parameter " + clause.replace("num nodes", "num_nodes"))


def test_a_file_is_written_only_if_its_bytes_differ(tmp_path):
    path = tmp_path / "file"
    assert not holds(path, b"")
    write_if_other(path, b"abc")
    before = path.stat().st_ino
    write_if_other(path, b"abc")
    assert path.stat().st_ino == before
    assert not holds(path, b"abcd")
    assert not holds(path, b"abd")
    write_if_other(path, b"abd")
    assert path.read_bytes() == b"abd"
    assert not holds(tmp_path, b"")  # a directory
