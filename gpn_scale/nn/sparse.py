"""Constant sparse matrix whose product with a dense one is fast and differentiable.

It serves as sparse features in the encoder's first layer, as adjacency of the diffusion and as the
rows of a batch.
"""

import warnings
from typing import Any, Literal

import torch
from torch import Tensor

try:
    with warnings.catch_warnings():
        # torch_sparse uses deprecated decorators of torch; users cannot change that.
        warnings.filterwarnings("ignore", message="`torch.jit.*` is deprecated")
        import torch_sparse
except ImportError:
    torch_sparse = None

Backend = Literal["torch", "torch_sparse"]
_INT32_MAX = torch.iinfo(torch.int32).max


def default_backend() -> Backend:
    """Return `torch_sparse` if that package is importable, else `torch` (its CSR kernels).

    >>> default_backend() in ("torch", "torch_sparse")
    True
    """
    return "torch" if torch_sparse is None else "torch_sparse"


class SparseMatrix:
    """Constant matrix in CSR format; gradients flow to the dense factor of a product only.

    The transpose, which the backward pass multiplies with, is built on first use and kept; a
    symmetric matrix is its own transpose. Offsets and columns are int32 if they fit and the kernels
    accept it: that takes less memory and is faster on the CPU, where MKL would convert them on
    every call.

    >>> indptr, indices = torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1])
    >>> matrix = SparseMatrix(indptr, indices, torch.tensor([2.0, 3.0, 4.0]), num_columns=2)
    >>> matrix @ torch.eye(2)
    tensor([[0., 2.],
            [3., 4.]])

    Args:
        indptr: Row offsets, (rows + 1,), int32 or int64.
        indices: Columns, (nnz,), int32 or int64.
        values: Values, (nnz,).
        num_columns: Number of columns.
        symmetric: Whether the matrix equals its transpose; not checked.
        backend: Kernels to multiply with.
        transposed: The transpose, if it is known; not checked.
    """

    def __init__(
        self,
        indptr: Tensor,
        indices: Tensor,
        values: Tensor,
        num_columns: int,
        *,
        symmetric: bool = False,
        backend: Backend | None = None,
        transposed: "SparseMatrix | None" = None,
    ) -> None:
        self.shape = (len(indptr) - 1, num_columns)
        self.symmetric = symmetric
        self.backend: Backend = backend or default_backend()
        wide = self.backend == "torch_sparse" or max(len(indices), *self.shape) > _INT32_MAX
        kind = torch.int64 if wide else torch.int32
        self.indptr, self.indices, self.values = indptr.to(kind), indices.to(kind), values
        self._kernel = _kernel_matrix(self.indptr, self.indices, values, self.shape, self.backend)
        self._transposed: SparseMatrix | None = self if symmetric else transposed

    @property
    def dtype(self) -> torch.dtype:
        """Floating-point type of the values."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Device of the values."""
        return self.values.device

    def to(self, device: torch.device, dtype: torch.dtype) -> "SparseMatrix":
        """Return a copy on `device` with the floating-point type `dtype`."""
        return SparseMatrix(
            self.indptr.to(device),
            self.indices.to(device),
            self.values.to(device, dtype),
            self.shape[1],
            symmetric=self.symmetric,
            backend=self.backend,
        )

    def transposed(self) -> "SparseMatrix":
        """Return the transpose, in CSR format."""
        if self._transposed is None:
            order = torch.argsort(self.indices, stable=True)
            counts = torch.bincount(self.indices, minlength=self.shape[1])
            rows = torch.repeat_interleave(
                torch.arange(self.shape[0], device=self.device), self.indptr.diff()
            )
            indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
            self._transposed = SparseMatrix(
                indptr, rows[order], self.values[order], self.shape[0], backend=self.backend
            )
            self._transposed._transposed = self
        return self._transposed

    def to_dense(self) -> Tensor:
        """Return the matrix with all its zeros, (rows, columns)."""
        dense: Tensor = self._kernel.to_dense()
        return dense

    def multiply(self, dense: Tensor) -> Tensor:
        """Return the product with a (columns, k) matrix, without autograd."""
        if dense.shape[1] == 0:  # torch's CSR kernel refuses empty results
            return dense.new_zeros(self.shape[0], 0)
        product: Tensor = self._kernel @ dense
        return product

    def multiply_add(self, dense: Tensor, added: Tensor, scale: float, weight: float) -> Tensor:
        """Return `scale * (self @ dense) + weight * added`, in one pass if the kernels allow."""
        if self.backend == "torch_sparse" or added.numel() == 0:
            return self.multiply(dense).mul_(scale).add_(added, alpha=weight)
        return torch.addmm(added, self._kernel, dense, beta=weight, alpha=scale)

    def multiply_add_into(self, dense: Tensor, added: Tensor, out: Tensor) -> None:
        """Write `self @ dense + added` into `out`, which must not share memory with either."""
        if self.backend == "torch_sparse" or added.numel() == 0:
            torch.add(self.multiply(dense), added, out=out)
        else:
            torch.addmm(added, self._kernel, dense, out=out)

    def __matmul__(self, dense: Tensor) -> Tensor:
        """Return the differentiable product with a (columns, k) matrix."""
        product: Tensor = _Product.apply(dense, self)  # type: ignore[no-untyped-call]
        return product


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix
        return matrix.multiply(dense)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.matrix.transposed().multiply(gradient.contiguous()), None


def _kernel_matrix(
    indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int], backend: Backend
) -> Any:
    if backend == "torch_sparse":
        return torch_sparse.SparseTensor(
            rowptr=indptr, col=indices, value=values, sparse_sizes=shape, is_sorted=True
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        return torch.sparse_csr_tensor(indptr, indices, values, shape, check_invariants=False)
