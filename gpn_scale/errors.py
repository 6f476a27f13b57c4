"""The exceptions a caller may want to catch; each message says what, got, expected, next step."""


class GpnScaleError(Exception):
    """Root of all errors that are the caller's to mend."""


class ConfigError(GpnScaleError, ValueError):
    """A configuration field, command-line option or override is wrong."""


class GraphError(GpnScaleError, ValueError):
    """A graph, a split or the file that should hold one is wrong."""


class StoreError(GpnScaleError, ValueError):
    """A store of PPR rows, or the directory that should hold one, cannot be used as asked."""


class RunError(GpnScaleError):
    """A run directory or a checkpoint cannot be used as asked."""


class ElsewhereError(GpnScaleError):
    """Another process of the run has failed and says why; this one only ends with it."""


class NumericalError(GpnScaleError, ArithmeticError):
    """A non-finite number appeared where the mathematics has none."""


class MissingScoreError(GpnScaleError):
    """A model was asked for an uncertainty score that it does not have."""
