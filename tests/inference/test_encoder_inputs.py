import numpy as np
import pytest

from gpn_scale.inference import inputs as inputs_module
from gpn_scale.inference.encoder_inputs import column_moments
from tests.data.test_features import sparse as csr_of


@pytest.mark.parametrize("rows_at_a_time", [1, 100])
@pytest.mark.parametrize("sparse", [False, True])
def test_moments_count_the_zeros(monkeypatch, rows_at_a_time, sparse):
    monkeypatch.setattr(inputs_module, "_MOMENT_ROWS", rows_at_a_time)
    dense = np.array([[0.0, 2.0], [4.0, 0.0]], np.float32)
    mean, square = column_moments(csr_of(dense) if sparse else dense, "none")
    assert mean.tolist() == [2.0, 1.0]
    assert square.tolist() == [8.0, 2.0]


def test_moments_are_of_the_scaled_rows():
    words = np.array([[1.0, 3.0], [0.0, 2.0]], np.float32)
    mean, _ = column_moments(words, "row_sum")
    assert mean.tolist() == [0.125, 0.875]
