import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.checked_json import CHECKSUM, read_checked_json, write_checked_json
from gpn_scale.errors import FileError

objects = st.dictionaries(
    st.text(max_size=5).filter(lambda key: key != CHECKSUM),
    st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    max_size=5,
)


@given(objects)
def test_an_object_is_read_back(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("checked") / "x.json"
    write_checked_json(path, values)
    assert read_checked_json(path) == values


@given(st.data())
def test_a_flipped_bit_changes_nothing_or_is_noticed(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("checked") / "x.json"
    values = {"threshold": 0.25, "name": "bank", "nodes": [1, 2]}
    write_checked_json(path, values)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(bytes(content))
    try:
        read = read_checked_json(path)
    except FileError:
        return
    extra = {key: read.pop(key) for key in list(read) if key not in values}
    assert read == values
    assert len(extra) <= 1  # the name of the checksum itself


def test_a_document_without_checksum_is_not_checked(tmp_path):
    (tmp_path / "x.json").write_text('{"a": 1}')
    assert read_checked_json(tmp_path / "x.json") == {"a": 1}


@pytest.mark.parametrize("document", [[], 7, None])
def test_other_documents_are_refused(tmp_path, document):
    (tmp_path / "x.json").write_text(json.dumps(document))
    with pytest.raises(FileError, match="expected an object"):
        read_checked_json(tmp_path / "x.json")
