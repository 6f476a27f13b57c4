"""A batch as tensors, prepared by a background thread and copied to the device ahead of its step.

Everything whose size depends on the data is computed here on the host, so that a step on a GPU
never waits for a size: the entries of rows, the transposes for backward passes, and each node's
fraction of its cluster's mean.

Shapes: B roots, N nodes that this rank encodes, P clusters, C classes, F features.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from gpn_scale.data.graph import CSRFeatures
from gpn_scale.distributed import World
from gpn_scale.inference.encoder_inputs import as_tensor
from gpn_scale.nn.encoder import Inputs
from gpn_scale.nn.model import Aggregation
from gpn_scale.nn.sparse import SparseMatrix
from gpn_scale.ppr.batches import PPRBatch

ClusterMeans = Callable[[Tensor, Tensor | None], Tensor]
"""Takes the means of a batch's clusters, 0 for those without nodes, and which clusters have nodes
(None: all); returns the means to use."""


@dataclass(frozen=True, slots=True, eq=False)
class SparseArrays:
    """A sparse matrix and its transpose, as arrays in CSR format."""

    indptr: Tensor
    indices: Tensor
    values: Tensor
    transposed_indptr: Tensor
    transposed_indices: Tensor
    transposed_values: Tensor
    num_columns: int

    @classmethod
    def of(
        cls,
        indptr: NDArray[Any],
        indices: NDArray[Any],
        values: NDArray[Any],
        num_columns: int,
    ) -> "SparseArrays":
        """Return the matrix with its transpose; entries of a column keep their order."""
        shape = len(indptr) - 1, num_columns
        other = csr_matrix((values, indices, indptr), shape=shape).tocsc()
        return cls(
            as_tensor(indptr),
            as_tensor(indices),
            as_tensor(values),
            as_tensor(other.indptr),
            as_tensor(other.indices),
            as_tensor(other.data),
            num_columns,
        )

    def matrix(self) -> SparseMatrix:
        """Return the matrix, which knows its transpose."""
        other = self.transposed_indptr, self.transposed_indices, self.transposed_values
        transposed = SparseMatrix(*other, len(self.indptr) - 1)
        own = self.indptr, self.indices, self.values
        return SparseMatrix(*own, self.num_columns, transposed=transposed)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceBatch:
    """The tensors of a batch, on the host or on the device."""

    features: Tensor | SparseArrays
    """Features of the nodes that this rank encodes, (N, F)."""
    sums: SparseArrays
    """Rows of the roots and, below them, means of the clusters, over these nodes; (B + P, N)."""
    cluster_weight_BP: Tensor
    """Weight of each cluster's mean evidence; P may be 0 (no tail)."""
    present_P: Tensor | None
    """Which clusters have nodes in the whole batch; None if all have."""
    label_B: Tensor
    """Labels of the roots."""
    first_row: int
    """Position of the first encoded node in the whole batch's support."""

    @classmethod
    def on_host(
        cls, batch: PPRBatch, labels: NDArray[np.integer[Any]], dtype: torch.dtype
    ) -> "DeviceBatch":
        """Return the tensors of a batch; real numbers except features have the type `dtype`."""
        assert batch.features is not None
        num_clusters = batch.cluster_weight.shape[1]
        present = np.bincount(batch.cluster, minlength=num_clusters)[:num_clusters] > 0
        weight_BP = torch.from_numpy(batch.cluster_weight).to(dtype)
        return cls(
            features=_features(batch, dtype),
            sums=_sums(batch, num_clusters, dtype),
            cluster_weight_BP=weight_BP,
            present_P=None if present.all() else torch.from_numpy(present),
            label_B=torch.from_numpy(labels[batch.root_global].astype(np.int64)),
            first_row=batch.encoded.start,
        )

    @property
    def num_roots(self) -> int:
        """Number of roots, B."""
        return len(self.label_B)

    def map(self, change: Callable[[Tensor], Tensor]) -> "DeviceBatch":
        """Return the batch with every tensor changed."""
        changed: DeviceBatch = _mapped(self, change)
        return changed

    def tensors(self) -> list[Tensor]:
        """Return all tensors."""
        seen: list[Tensor] = []

        def note(tensor: Tensor) -> Tensor:
            seen.append(tensor)
            return tensor

        self.map(note)
        return seen

    def inputs(self, dtype: torch.dtype) -> Inputs:
        """Return the features as the encoder takes them."""
        if isinstance(self.features, SparseArrays):
            return self.features.matrix()
        return self.features.to(dtype)

    def aggregation(self, tracked: ClusterMeans, world: World) -> Aggregation:
        """Return the map from the values of this rank's nodes to those of all roots.

        Every rank adds up what its own nodes contribute to the roots and to the clusters; one sum
        over ranks, of B + P rows, joins them.

        Args:
            tracked: Completes the clusters' means over the batch.
            world: The ranks that divide the batch.
        """
        sums = self.sums.matrix()
        sizes = [self.num_roots, self.cluster_weight_BP.shape[1]]

        def aggregate(own_NC: Tensor) -> Tensor:
            total = world.shared(sums @ own_NC)
            if not sizes[1]:
                return total
            kept_BC, mean_PC = torch.split(total, sizes)
            return torch.addmm(kept_BC, self.cluster_weight_BP, tracked(mean_PC, self.present_P))

        return aggregate


def _mapped(record: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return a dataclass with every tensor changed, also within dataclasses that it holds."""
    changes = {}
    for each in fields(record):
        value = getattr(record, each.name)
        if isinstance(value, Tensor):
            changes[each.name] = change(value)
        elif isinstance(value, SparseArrays):
            changes[each.name] = _mapped(value, change)
    return replace(record, **changes)


def _features(batch: PPRBatch, dtype: torch.dtype) -> Tensor | SparseArrays:
    features = batch.features
    if isinstance(features, CSRFeatures):
        values = features.values.astype(_numpy_type(dtype))
        return SparseArrays.of(features.indptr, features.indices, values, features.num_columns)
    return as_tensor(np.asarray(features))


def _sums(batch: PPRBatch, num_clusters: int, dtype: torch.dtype) -> SparseArrays:
    """Return the rows and the means of the clusters as one matrix, (B + P, N)."""
    kind, encoded = _numpy_type(dtype), batch.encoded
    indptr, indices = batch.rows.row_ptr, batch.rows.ids
    values = batch.rows.weights.astype(kind)
    if num_clusters:
        total_P = np.bincount(batch.cluster, batch.weight_in_cluster, num_clusters)
        cluster_N = batch.cluster[encoded]
        fraction_N = batch.weight_in_cluster[encoded] / total_P[cluster_N]
        order = np.argsort(cluster_N, kind="stable")
        ends = np.cumsum(np.bincount(cluster_N, minlength=num_clusters))
        indptr = np.concatenate([indptr, indptr[-1] + ends])
        indices = np.concatenate([indices, order])
        values = np.concatenate([values, fraction_N[order].astype(kind)])
    # The kernels take 32 bits, and a batch has far fewer entries.
    narrow = np.int32 if len(indices) < np.iinfo(np.int32).max else np.int64
    num_nodes = encoded.stop - encoded.start
    return SparseArrays.of(indptr.astype(narrow), indices.astype(narrow), values, num_nodes)


def _numpy_type(dtype: torch.dtype) -> type[np.floating[Any]]:
    return np.float64 if dtype == torch.float64 else np.float32


class Copies(Protocol):
    """Copies tensors from the host to a device."""

    def pinned(self, tensor: Tensor) -> Tensor:
        """Return the tensor in pinned memory, which the device can read directly."""

    def stream(self) -> AbstractContextManager[Any]:
        """Return a context in which copies are queued beside the computation."""

    def to_device(self, tensor: Tensor) -> Tensor:
        """Queue a copy, and return it."""

    def join(self, tensors: list[Tensor]) -> None:
        """Make the computation, but not the host, wait for the copies queued so far."""


class CudaCopies:
    """Copies on a separate CUDA stream.

    Args:
        device: A CUDA device.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def pinned(self, tensor: Tensor) -> Tensor:  # noqa: D102
        return tensor.pin_memory()

    def stream(self) -> AbstractContextManager[Any]:  # noqa: D102
        return torch.cuda.stream(self._side)

    def to_device(self, tensor: Tensor) -> Tensor:  # noqa: D102
        return tensor.to(self._device, non_blocking=True)

    def join(self, tensors: list[Tensor]) -> None:  # noqa: D102
        current = torch.cuda.current_stream(self._device)
        current.wait_stream(self._side)
        for tensor in tensors:  # their memory must not be reused before the computation is done
            tensor.record_stream(current)


def copies_to(device: torch.device) -> Copies | None:
    """Return the copier to a device, or None if no copies are needed."""
    return CudaCopies(device) if device.type == "cuda" else None


def copied_ahead(batches: Iterator[DeviceBatch], copies: Copies | None) -> Iterator[DeviceBatch]:
    """Yield the batches on the device; the copy of the next one is queued before one is yielded.

    Args:
        batches: Batches on the host, in pinned memory (`Copies.pinned`).
        copies: Copies them to the device; None to yield them unchanged.
    """
    if copies is None:
        yield from batches
        return
    waiting: list[DeviceBatch] = []
    for batch in batches:
        with copies.stream():
            waiting.append(batch.map(copies.to_device))
        if len(waiting) == 2:
            yield _joined(waiting.pop(0), copies)
    for copied in waiting:
        yield _joined(copied, copies)


def _joined(batch: DeviceBatch, copies: Copies) -> DeviceBatch:
    copies.join(batch.tensors())
    return batch
