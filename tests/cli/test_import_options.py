"""Options of the import: those given count before those of an earlier import."""

import pytest

from gpn_scale.cli.import_options import import_choices, import_parser, parse_kinds
from gpn_scale.data.column_roles import ColumnNames, ColumnRoles
from gpn_scale.data.import_facts import ImportFacts
from gpn_scale.data.import_record import write_record
from gpn_scale.data.import_rules import ImportRules
from gpn_scale.errors import ConfigError
from tests.data.tables import EDGES, NODES, write_csv


@pytest.fixture
def tables(tmp_path):
    nodes, edges = write_csv(tmp_path / "n.csv", NODES), write_csv(tmp_path / "e.csv", EDGES)
    return ["--nodes", str(nodes), "--edges", str(edges), "--out", str(tmp_path / "g")]


def choices(*arguments):
    return import_choices(import_parser().parse_args(arguments))


def test_nothing_given_is_the_default(tables):
    assert choices(*tables) == (ColumnNames(), ImportRules())


def test_options_become_names_and_rules(tables):
    options = ["--id", "ref", "--weight", "sum", "--drop", 'x,"a,b"', "--drop", "c", "--directed"]
    options += ["--kinds", "zip=category,a=b=date", "--unknown-ids", "add", "--missing", "fill"]
    names, rules = choices(*tables, *options, "--structural-features", "on")
    assert names == ColumnNames(id="ref", weight="sum", drop=("x", "a,b", "c"))
    assert rules == ImportRules(
        unknown_ids="add",
        missing="fill",
        kinds={"zip": "category", "a=b": "date"},
        directed=True,
        structural_features="on",
    )


def test_an_earlier_import_is_repeated_and_options_count_first(tables, tmp_path):
    columns = ColumnRoles(id="ref", label="gone", source="from", target="to", weight="sum")
    rules = ImportRules(directed=True, unknown_ids="drop", kinds={"age": "number", "lost": "text"})
    facts = ImportFacts(nodes_listed=1, edges_listed=1)
    write_record(tmp_path, columns, ["country", "lost"], rules, facts, {})
    names, rules = choices(*tables, "--like", str(tmp_path))
    assert names == ColumnNames(
        id="ref", source="from", target="to", weight="sum", drop=("country",)
    )
    assert rules == ImportRules(directed=True, unknown_ids="drop", kinds={"age": "number"})
    more = ["--no-directed", "--kinds", "country=text", "--drop", "age", "--label", "verdict"]
    names, rules = choices(*tables, "--like", str(tmp_path), *more)
    assert (names.label, names.drop, names.id) == ("verdict", ("age",), "ref")
    assert not rules.directed
    assert rules.kinds == {"age": "number", "country": "text"}


def test_kinds_need_a_column():
    with pytest.raises(ConfigError, match="--kinds holds 'zip', expected COL=KIND with one of"):
        parse_kinds(["zip"])
