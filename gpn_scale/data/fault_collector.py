"""`FaultCollector`: goes on after a fault, so that all faults are reported together."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from gpn_scale.data.faults import Fault, TableFaults

_T = TypeVar("_T")


class FaultCollector:
    """Collects faults, and the arguments that change what is allowed.

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
        """Add faults, if there are any, and the arguments that change what is allowed."""
        added = list(faults)
        self._faults += added
        self._arguments |= dict.fromkeys(arguments if added else ())

    def attempt(self, function: Callable[[], _T]) -> _T | None:
        """Return the result of a function; if it raises `TableFaults`, keep them for later."""
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
