"""Faults are kept until all are known."""

import pytest

from gpn_scale.data.fault_collector import FaultCollector
from gpn_scale.data.faults import Fault, TableFaults


def refuse(name, *arguments):
    raise TableFaults([Fault(file=name, advice="fix it")], arguments=arguments)


def test_faults_and_arguments_are_joined():
    faults = FaultCollector()
    assert faults.attempt(lambda: 7) == 7
    assert faults.attempt(lambda: refuse("a", "id", "drop")) is None
    faults.add([Fault(file="b", advice="fix it")], "drop", "label")
    faults.add([], "weight")
    with pytest.raises(TableFaults) as error:
        faults.report()
    assert [fault.file for fault in error.value.faults] == ["a", "b"]
    assert error.value.arguments == ("id", "drop", "label")


def test_without_faults_nothing_is_raised():
    FaultCollector().report()


def test_other_errors_are_not_kept():
    with pytest.raises(ZeroDivisionError):
        FaultCollector().attempt(lambda: 1 / 0)
