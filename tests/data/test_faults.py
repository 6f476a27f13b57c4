"""Faults of tables are reported together, in one readable table."""

from gpn_scale.data.faults import SHOWN_FAULTS, Fault, TableFaults
from gpn_scale.errors import GraphError


def test_the_message_has_a_line_per_fault():
    faults = [
        Fault(file="nodes.csv", row=3, column="age", value="old", advice="write a number", count=4),
        Fault(file="edges.csv", column="to", advice="add the column"),
    ]
    error = TableFaults(faults, arguments=("kinds",))
    lines = str(error).splitlines()
    assert lines[0] == "2 faults in the tables:"
    assert " ".join(lines[2].split()) == "nodes.csv 3 and 3 more age 'old' write a number"
    assert lines[3].split() == ["edges.csv", "all", "to", "add", "the", "column"]
    assert error.faults == tuple(faults)
    assert error.arguments == ("kinds",)
    assert isinstance(error, GraphError)


def test_long_lists_and_values_are_shortened():
    faults = [Fault(file="n", row=i, value="x" * 90, advice="fix") for i in range(SHOWN_FAULTS + 5)]
    lines = str(TableFaults(faults)).splitlines()
    assert lines[-1] == "  ... and 5 more"
    assert len(lines) == SHOWN_FAULTS + 3
    assert max(map(len, lines)) < 80
    assert "\n" not in lines[2]


def test_values_cannot_break_the_table():
    message = str(TableFaults([Fault(file="n", value="a\nb\x1b[31m", advice="fix")]))
    assert len(message.splitlines()) == 3
    assert "\x1b" not in message
