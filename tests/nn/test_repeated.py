import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.nn.repeated import RepeatedInputs
from tests.nn.test_sparse import sparse_of


def features(rows, columns, fraction, seed):
    source = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, columns, generator=source, dtype=torch.float64)
    return values * (torch.rand(rows, columns, generator=source) < fraction)


@given(
    rows=st.integers(1, 6),
    columns=st.integers(1, 8),
    width=st.integers(1, 3),
    fraction=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    seed=st.integers(0, 2**31 - 1),
)
def test_products_and_gradients_follow_weights_that_change_in_place(
    rows, columns, width, fraction, seed
):
    dense = features(rows, columns, fraction, seed)
    inputs = RepeatedInputs(sparse_of(dense, backend="torch"))
    source = torch.Generator().manual_seed(seed)
    weights = torch.randn(columns, width, generator=source, dtype=torch.float64, requires_grad=True)
    outer = torch.randn(rows, width, generator=source, dtype=torch.float64)
    for _ in range(3):
        for _ in range(2):  # the second product is remembered
            weights.grad = None
            product = inputs @ weights
            torch.testing.assert_close(product, dense @ weights)
            (product * outer).sum().backward()
            torch.testing.assert_close(weights.grad, dense.T @ outer)
        with torch.no_grad():
            weights.add_(torch.randn(weights.shape, generator=source, dtype=weights.dtype))


@pytest.mark.parametrize("fraction", [0.1, 0.6], ids=["sparse", "dense"])
def test_equal_weights_are_multiplied_once(fraction):
    inputs = RepeatedInputs(sparse_of(features(20, 30, fraction, seed=1)))
    weights = torch.ones(30, 2, dtype=torch.float64)
    first = inputs.multiply(weights)
    assert inputs.multiply(weights.clone()) is first
    second = inputs.multiply(2 * weights)
    assert second is not first
    torch.testing.assert_close(second, 2 * first)
    narrow = inputs.multiply(weights[:, :1])
    torch.testing.assert_close(narrow, first[:, :1])


def test_sparse_products_have_the_bits_of_the_matrix():
    matrix = sparse_of(features(20, 30, 0.2, seed=2))
    weights = torch.randn(30, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    inputs = RepeatedInputs(matrix)
    for _ in range(2):
        assert torch.equal(inputs @ weights, matrix @ weights)


def test_the_remembered_product_stays_out_of_the_graph_of_gradients():
    inputs = RepeatedInputs(sparse_of(features(5, 4, 0.2, seed=4)))
    weights = torch.ones(4, 2, dtype=torch.float64, requires_grad=True)
    product = inputs @ weights
    assert product.requires_grad
    assert not inputs.multiply(weights).requires_grad
