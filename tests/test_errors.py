import pickle

import pytest

from gpn_scale import errors
from gpn_scale.errors import ConfigError, GpnScaleError, GraphError, NumericalError, StoreError

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, GpnScaleError)
]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_names_the_arguments_to_change_in_every_process(kind):
    error = pickle.loads(pickle.dumps(kind("k is 0", arguments=["k", "clusters"])))
    assert type(error) is kind
    assert str(error) == "k is 0"
    assert error.arguments == ("k", "clusters")
    assert kind("k is 0").arguments == ()


@pytest.mark.parametrize("kind", [ConfigError, GraphError, StoreError])
def test_wrong_values_are_value_errors(kind):
    assert issubclass(kind, ValueError)


def test_numbers_that_are_not_finite_are_arithmetic_errors():
    assert issubclass(NumericalError, ArithmeticError)


def test_names_with_line_breaks_stay_in_one_sentence():
    error = ConfigError("two\nlines\r does not exist")
    assert error.sentence == r"two\nlines\r does not exist"
    assert str(error) == "two\nlines\r does not exist"
