"""A constant sparse matrix whose product with a dense one is differentiable and fast.

Used twice: sparse features times the first weight matrix, and the diffusion's adjacency.
"""

import warnings
from typing import Any, Literal

import torch
from torch import Tensor

try:
    with warnings.catch_warnings():
        # Its decorators are deprecated in torch; nothing that its users could change.
        warnings.filterwarnings("ignore", message="`torch.jit.*` is deprecated")
        import torch_sparse
except ImportError:
    torch_sparse = None

Backend = Literal["torch", "torch_sparse"]
_INT32_MAX = torch.iinfo(torch.int32).max


def default_backend() -> Backend:
    """`torch_sparse` when that package is importable, else torch's own CSR kernels."""
    return "torch" if torch_sparse is None else "torch_sparse"


class SparseMatrix:
    """Rows of (column, value) pairs, CSR; a constant: gradients flow to the dense factor only.

    The transposed matrix, which the backward pass multiplies with, is built on first use and kept.
    A symmetric matrix is its own. Offsets and columns are kept in int32 where they fit it and the
    kernels take it: less memory, and on the CPU faster, since MKL would convert them every time.

    Args:
        indptr: Row offsets, (rows + 1,), int32 or int64.
        indices: Columns, (nnz,), int32 or int64.
        values: (nnz,).
        num_columns: Number of columns.
        symmetric: Promise that the matrix equals its transpose.
        backend: Kernels to multiply with.
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
    ) -> None:
        self.shape = (len(indptr) - 1, num_columns)
        self.symmetric = symmetric
        self.backend: Backend = backend or default_backend()
        wide = self.backend == "torch_sparse" or max(len(indices), *self.shape) > _INT32_MAX
        kind = torch.int64 if wide else torch.int32
        self.indptr, self.indices, self.values = indptr.to(kind), indices.to(kind), values
        self._kernel = _kernel_matrix(self.indptr, self.indices, values, self.shape, self.backend)
        self._transposed: SparseMatrix | None = self if symmetric else None

    @property
    def dtype(self) -> torch.dtype:
        """Of the values."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Where the values live."""
        return self.values.device

    def to(self, device: torch.device, dtype: torch.dtype) -> "SparseMatrix":
        """A copy elsewhere or with another floating-point type."""
        return SparseMatrix(
            self.indptr.to(device),
            self.indices.to(device),
            self.values.to(device, dtype),
            self.shape[1],
            symmetric=self.symmetric,
            backend=self.backend,
        )

    def transposed(self) -> "SparseMatrix":
        """The transpose, in CSR too."""
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

    def multiply(self, dense: Tensor) -> Tensor:
        """Product with a (columns, k) matrix; outside of autograd."""
        if dense.shape[1] == 0:  # torch's CSR kernel refuses empty results
            return dense.new_zeros(self.shape[0], 0)
        product: Tensor = self._kernel @ dense
        return product

    def multiply_add(self, dense: Tensor, added: Tensor, scale: float, weight: float) -> Tensor:
        """`scale * (self @ dense) + weight * added`, in one pass where the kernels have one."""
        if self.backend == "torch_sparse" or added.numel() == 0:
            return self.multiply(dense).mul_(scale).add_(added, alpha=weight)
        return torch.addmm(added, self._kernel, dense, beta=weight, alpha=scale)

    def multiply_add_into(self, dense: Tensor, added: Tensor, out: Tensor) -> None:
        """`self @ dense + added` into `out`, which shares memory with neither."""
        if self.backend == "torch_sparse" or added.numel() == 0:
            torch.add(self.multiply(dense), added, out=out)
        else:
            torch.addmm(added, self._kernel, dense, out=out)

    def __matmul__(self, dense: Tensor) -> Tensor:
        """Differentiable product with a (columns, k) matrix."""
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
