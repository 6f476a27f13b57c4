"""The record of an import says how to repeat it."""

import json

import pytest

from gpn_scale import __version__
from gpn_scale.data.column_roles import ColumnRoles
from gpn_scale.data.import_facts import ImportFacts
from gpn_scale.data.import_record import RECORD, read_record, write_record
from gpn_scale.data.import_rules import ImportRules
from gpn_scale.errors import GraphError

COLUMNS = ColumnRoles(id="ref", label="verdict", source="a", target="b", features=("age",))
RULES = ImportRules(unknown_ids="drop", kinds={"zip": "category", "age": "number"})


@pytest.fixture
def folder(tmp_path):
    facts = ImportFacts(nodes_listed=2, edges_listed=1)
    files = {"nodes": "/tables/n.csv", "edges": "/tables/e.csv"}
    write_record(tmp_path, COLUMNS, ["note", "sum"], RULES, facts, files)
    return tmp_path


def test_the_record_survives(folder):
    record = read_record(folder)
    assert record.rules == RULES
    assert (record.names.id, record.names.label, record.names.weight) == ("ref", "verdict", None)
    assert record.names.drop == ("note", "sum")
    content = json.loads((folder / RECORD).read_text())
    assert content["library_version"] == __version__
    assert content["files"]["edges"] == "/tables/e.csv"
    assert content["facts"]["nodes_listed"] == 2


def test_other_tables_may_lack_what_is_not_needed(folder):
    record = read_record(folder)
    names = record.names_in(["ref", "age", "note"], ["a", "b"])
    assert (names.id, names.label, names.drop) == ("ref", None, ("note",))
    assert record.names_in(["verdict"], ["sum"]).label == "verdict"
    assert record.names_in(["x"], ["y"]).id == "ref"
    assert record.rules_in(["ref", "age"]).kinds == {"age": "number"}


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content | {"format_version": 2},
        lambda content: {"format_version": 1},
        lambda content: content | {"columns": {"id": "ref"}},
        lambda content: content | {"columns": content["columns"] | {"more": 1}},
        lambda content: content | {"rules": {"unknown_ids": "guess"}},
        lambda content: [],
    ],
)
def test_a_damaged_record_is_refused(folder, change):
    path = folder / RECORD
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(GraphError, match=r"import\.json cannot be read .*expected the folder of"):
        read_record(folder)


def test_a_missing_or_broken_record_is_refused(folder):
    (folder / RECORD).write_text("{")
    with pytest.raises(GraphError, match=r"import\.json cannot be read \(FileError: .*not JSON"):
        read_record(folder)
    (folder / RECORD).unlink()
    with pytest.raises(GraphError, match=r"\(No such file or directory\)") as error:
        read_record(folder)
    assert error.value.arguments == ("like",)


def test_a_record_with_a_flipped_letter_is_refused(folder):
    path = folder / RECORD
    path.write_text(path.read_text().replace('"ref"', '"reg"'))
    with pytest.raises(GraphError, match="is damaged: its checksum is"):
        read_record(folder)
