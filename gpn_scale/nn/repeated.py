"""Sparse features that training multiplies by the encoder's first weights in every step.

Shapes: N nodes, F features, H hidden units.
"""

from typing import Any

import torch
from torch import Tensor

from gpn_scale.nn.sparse import SparseMatrix

_DENSE_FRACTION = 0.3
"""Fraction of nonzero entries from which a dense product is as fast (benchmarks/bench_inputs.py).

A dense copy then takes less memory than the sparse matrix and its transpose."""


class RepeatedInputs:
    """Features of all nodes that remember their last product with weights.

    Validation after a step and the forward pass of the next step multiply by the same weights, so
    every second product is free. Weights are compared by value. With many nonzero entries the
    features are stored densely.

    >>> matrix = SparseMatrix(torch.tensor([0, 1]), torch.tensor([1]), torch.tensor([2.0]), 9)
    >>> inputs = RepeatedInputs(matrix)
    >>> (inputs @ torch.arange(9.0).view(9, 1)).tolist()
    [[2.0]]

    Args:
        matrix: The features, (N, F).
    """

    def __init__(self, matrix: SparseMatrix) -> None:
        self.shape = matrix.shape
        rows, columns = matrix.shape
        is_dense = len(matrix.values) >= _DENSE_FRACTION * max(rows * columns, 1)
        self._sparse = None if is_dense else matrix
        self._dense = matrix.to_dense() if is_dense else None
        self._weights_FH: Tensor | None = None
        self._product_NH: Tensor | None = None

    def __matmul__(self, weights_FH: Tensor) -> Tensor:
        """Return the differentiable product with a (F, H) matrix, (N, H)."""
        product_NH: Tensor = _Product.apply(weights_FH, self)  # type: ignore[no-untyped-call]
        return product_NH

    def multiply(self, weights_FH: Tensor) -> Tensor:
        """Return the product, (F, H) -> (N, H), without autograd; it must not be changed."""
        if (
            self._product_NH is None
            or self._weights_FH is None
            or not torch.equal(self._weights_FH, weights_FH)
        ):
            self._product_NH = self._computed(weights_FH)
            self._weights_FH = weights_FH.detach().clone()
        return self._product_NH

    def multiply_transposed(self, gradient_NH: Tensor) -> Tensor:
        """Return the product of the transposed features, (N, H) -> (F, H), without autograd."""
        if self._dense is not None:
            return self._dense.T @ gradient_NH
        assert self._sparse is not None
        return self._sparse.transposed().multiply(gradient_NH)

    def _computed(self, weights_FH: Tensor) -> Tensor:
        if self._dense is not None:
            return self._dense @ weights_FH
        assert self._sparse is not None
        return self._sparse.multiply(weights_FH)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights_FH: Tensor, inputs: RepeatedInputs) -> Tensor:
        ctx.inputs = inputs
        return inputs.multiply(weights_FH).detach()  # autograd marks its output, not the kept one

    @staticmethod
    def backward(ctx: Any, gradient_NH: Tensor) -> tuple[Tensor, None]:
        return ctx.inputs.multiply_transposed(gradient_NH.contiguous()), None
