import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.nn import sparse
from gpn_scale.nn.sparse import SparseMatrix, default_backend


def sparse_of(dense, **options):
    rows, columns = dense.nonzero(as_tuple=True)
    counts = torch.bincount(rows, minlength=dense.shape[0])
    indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return SparseMatrix(indptr, columns, dense[rows, columns], dense.shape[1], **options)


@given(
    rows=st.integers(1, 6), columns=st.integers(1, 6), width=st.integers(0, 4), seed=st.integers(0)
)
def test_products_and_gradients_are_those_of_the_dense_matrix(rows, columns, width, seed):
    source = torch.Generator().manual_seed(seed % 2**31)
    dense = torch.randn(rows, columns, generator=source, dtype=torch.float64)
    dense = dense * (torch.rand(rows, columns, generator=source) < 0.5)
    matrix = sparse_of(dense, backend="torch")
    factor = torch.randn(columns, width, generator=source, dtype=torch.float64, requires_grad=True)
    outer = torch.randn(rows, width, generator=source, dtype=torch.float64)
    product = matrix @ factor
    torch.testing.assert_close(product, dense @ factor)
    (product * outer).sum().backward()
    torch.testing.assert_close(factor.grad, dense.T @ outer)
    torch.testing.assert_close(
        matrix.multiply_add(factor.detach(), outer, scale=0.3, weight=2.0),
        0.3 * dense @ factor.detach() + 2.0 * outer,
    )
    out = torch.full_like(outer, torch.nan)
    matrix.multiply_add_into(factor.detach(), outer, out)
    torch.testing.assert_close(out, dense @ factor.detach() + outer)


@pytest.mark.parametrize(("largest", "kind"), [(3, torch.int32), (2, torch.int64)])
def test_offsets_and_columns_are_narrow_where_they_fit(monkeypatch, largest, kind):
    monkeypatch.setattr(sparse, "_INT32_MAX", largest)
    matrix = sparse_of(torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]]), backend="torch")
    assert matrix.indptr.dtype == matrix.indices.dtype == kind
    assert matrix.transposed().indices.dtype == kind
    torch.testing.assert_close(matrix @ torch.ones(3, 1), torch.tensor([[2.0], [4.0]]))


def test_transposing_twice_gives_the_matrix_itself():
    matrix = sparse_of(torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]]))
    assert matrix.transposed().transposed() is matrix
    assert matrix.transposed().shape == (3, 2)


def test_a_symmetric_matrix_is_its_own_transpose():
    matrix = sparse_of(torch.tensor([[1.0, 2.0], [2.0, 0.0]]), symmetric=True)
    assert matrix.transposed() is matrix


def test_a_copy_has_the_other_type():
    matrix = sparse_of(torch.eye(2), backend="torch").to(torch.device("cpu"), torch.float64)
    assert (matrix @ torch.ones(2, 1, dtype=torch.float64)).dtype == torch.float64


def test_without_torch_sparse_torch_multiplies(monkeypatch):
    monkeypatch.setattr(sparse, "torch_sparse", None)
    assert default_backend() == "torch"


def test_both_backends_agree():
    if sparse.torch_sparse is None:
        pytest.skip("torch-sparse is not installed")
    source = torch.Generator().manual_seed(3)
    dense = torch.randn(40, 30, generator=source, dtype=torch.float64)
    dense = dense * (torch.rand(40, 30, generator=source) < 0.2)
    results = []
    for backend in ("torch", "torch_sparse"):
        matrix = sparse_of(dense, backend=backend)
        factor = torch.ones(30, 5, dtype=torch.float64, requires_grad=True)
        product = matrix @ factor
        product.square().sum().backward()
        added = matrix.multiply_add(factor.detach(), product.detach(), scale=0.9, weight=0.1)
        results.append((product.detach(), factor.grad, added))
    torch.testing.assert_close(results[0], results[1])
