"""`FaultCollector`: collects faults so that all of them are reported together."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from gpn_scale.data.faults import Fault, TableFaults

_T = TypeVar("_T")


class FaultCollector:
    """Collects faults, and the arguments that would allow the faulty input.

    >>> faults = FaultCollector()
    >>> faults.add([Fault(file="nodes.csv", column="id", advice="name it")], "id")
    >>> faults.report()
    Traceback (most recent call last):
        ...
    gpn_scale.data.faults.TableFaults: 1 fault in the tables:
      file       row  column  value  what to do
      nodes.csv  all  id             name it
    """

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._arguments: dict[str, None] = {}

    def add(self, faults: Iterable[Fault], *arguments: str) -> None:
        """Add faults, if there are any, and the arguments that would allow the faulty input."""
        added = list(faults)
        self._faults += added
        self._arguments |= dict.fromkeys(arguments if added else ())

    def attempt(self, function: Callable[[], _T]) -> _T | None:
        """Return the result of a function; if it raises `TableFaults`, collect them instead."""
        try:
            return function()
        except TableFaults as error:
            self.add(error.faults, *error.arguments)
            return None

    def report(self) -> None:
        """Raise all faults that were collected.

        Raises:
            TableFaults: there are faults.
        """
        if self._faults:
            raise TableFaults(self._faults, arguments=tuple(self._arguments))
