"""The exceptions that a caller may want to catch.

A message states what is wrong, what was given, what is expected and what to do next, in terms of
Python arguments. `arguments` lists these, so that a command can add its own flags.
"""

from collections.abc import Sequence


class GpnScaleError(Exception):
    """Base class of all errors that the caller can fix.

    >>> try:
    ...     raise ConfigError("k is 0, expected at least 1", arguments=["k"])
    ... except GpnScaleError as error:
    ...     error.arguments
    ('k',)

    Args:
        message: One sentence.
        arguments: Names of the arguments or configuration fields (`section.field`) to change.
    """

    is_table = False
    """Whether the message is a table of several lines."""

    def __init__(self, message: str, *, arguments: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.arguments = tuple(arguments)

    @property
    def sentence(self) -> str:
        r"""The message on one line for a terminal; line breaks in names appear as `\n` and `\r`."""
        if self.is_table:
            return str(self)
        return str(self).replace("\n", "\\n").replace("\r", "\\r")


class ConfigError(GpnScaleError, ValueError):
    """An argument or a configuration field has a value that is not allowed.

    >>> from gpn_scale.config import PPRConfig
    >>> PPRConfig(k=0)
    Traceback (most recent call last):
        ...
    gpn_scale.errors.ConfigError: k is 0, expected at least 1
    """


class GraphError(GpnScaleError, ValueError):
    """A graph, a split or a file that should hold one is not valid.

    >>> from gpn_scale import build_graph
    >>> build_graph([], [])
    Traceback (most recent call last):
        ...
    gpn_scale.errors.GraphError: graph 'graph': got 0 nodes, expected 1 to 2147483647
    """


class StoreError(GpnScaleError, ValueError):
    """A PPR store, or the directory that should hold one, cannot be used as requested.

    >>> from gpn_scale import PPRStore
    >>> PPRStore.open("empty")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpn_scale.errors.StoreError: empty is not a PPR store (no manifest.json): build one ...
    """


class FileError(GpnScaleError, ValueError):
    """A file is not a regular file, is too large, or is not in the expected format.

    >>> from gpn_scale.reading import check_file
    >>> check_file("/dev/null")
    Traceback (most recent call last):
        ...
    gpn_scale.errors.FileError: /dev/null is a device, expected a regular file
    """


class MachineError(GpnScaleError):
    """The machine refused an operation: the disk is full, permission is denied, memory runs out.

    >>> from gpn_scale.explained import as_user_error
    >>> str(as_user_error(MemoryError())).partition(":")[0]
    'not enough memory (MemoryError)'
    """


class RunError(GpnScaleError):
    """A run directory, a model file or a checkpoint cannot be used as requested.

    >>> from gpn_scale import GPNClassifier
    >>> GPNClassifier().save("model.safetensors")
    Traceback (most recent call last):
        ...
    gpn_scale.errors.UnfittedError: this classifier has no model yet: call fit or load first
    """


class UnfittedError(RunError, ValueError, AttributeError):
    """A classifier was asked for something that only a trained one has.

    It is an `AttributeError` so that `hasattr(classifier, "classes_")` works.

    >>> from gpn_scale import GPNClassifier
    >>> hasattr(GPNClassifier(), "classes_")
    False
    """


class ElsewhereError(GpnScaleError):
    """Another process of the run has failed and reports the reason; this process only stops.

    >>> issubclass(ElsewhereError, GpnScaleError)
    True
    """


class MissingExtraError(GpnScaleError, ImportError):
    """A package of an extra is needed and cannot be imported.

    >>> from unittest.mock import patch
    >>> from gpn_scale.extras import check_extra
    >>> with patch.dict("sys.modules", {"gpytorch": None}):
    ...     check_extra("gp", "GGP")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpn_scale.errors.MissingExtraError: GGP needs the package gpytorch, which cannot be imported ...
    """


class NumericalError(GpnScaleError, ArithmeticError):
    """A number that should be finite is not.

    >>> isinstance(NumericalError("the loss of epoch 3 is nan"), ArithmeticError)
    True
    """


class MissingScoreError(GpnScaleError):
    """A model was asked for an uncertainty score that it does not have.

    >>> import numpy as np
    >>> from gpn_scale.evaluation.scored_prediction import ScoredPrediction
    >>> prediction = ScoredPrediction(model="GCN", probabilities=np.array([[0.5, 0.5]]))
    >>> prediction.epistemic  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpn_scale.errors.MissingScoreError: GCN has no epistemic score, only class probabilities: ...
    """
