"""The exceptions that a caller may want to catch.

A message says what is wrong, what was given, what is expected and what to do next, in terms of the
arguments of a Python call. `arguments` names them, so that a command can add its own flags.
"""

from collections.abc import Sequence


class GpnScaleError(Exception):
    """Base class of all errors that the caller can fix.

    Args:
        message: One sentence.
        arguments: Names of the arguments or configuration fields (`section.field`) to change.
    """

    def __init__(self, message: str, *, arguments: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.arguments = tuple(arguments)


class ConfigError(GpnScaleError, ValueError):
    """An argument or a configuration field has a value that is not allowed."""


class GraphError(GpnScaleError, ValueError):
    """A graph, a split or a file that should hold one is not valid."""


class StoreError(GpnScaleError, ValueError):
    """A PPR store, or the directory that should hold one, cannot be used as requested."""


class RunError(GpnScaleError):
    """A run directory, a model file or a checkpoint cannot be used as requested."""


class ElsewhereError(GpnScaleError):
    """Another process of the run has failed and reports the reason; this one only stops."""


class NumericalError(GpnScaleError, ArithmeticError):
    """A number that should be finite is not."""


class MissingScoreError(GpnScaleError):
    """A model was asked for an uncertainty score that it does not have."""
