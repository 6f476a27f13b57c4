"""`topk_ppr`: certified top-k personalised PageRank, from arrays to arrays.

Shapes: N nodes, E edges, B roots, k entries per row.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numba
import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from gpn_scale.config import DiffusionConfig, Normalisation, PPRConfig
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.data.node_positions import node_positions
from gpn_scale.diffusion.transition import transition_matrix
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.field_types import require
from gpn_scale.ppr.rows import Rows
from precompute.edge_inputs import EdgesLike, graph_of_edges
from precompute.mass_bounds import mass_bounds
from precompute.mpi import SingleProcess
from precompute.resources import default_resources, thread_limit
from precompute.row_engine import RowEngine, chosen_method
from precompute.row_sums import row_totals, sum_steps
from precompute.scratch_memory import plan_slots

NO_NODE = -1
"""Id that fills the unused places of a row with fewer than k entries."""

_NORMALISATIONS: dict[str, Normalisation] = {"row": "rw", "sym": "sym"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TopKRows:
    """The largest entries of the personalised-PageRank rows of some roots.

    Every row is certified. With pi the exact row of its root,

    - `weights` never exceed the exact ones: 0 <= weight of u <= pi(u);
    - `missing_mass` bounds what is missing: sum of pi - sum of `weights` <= `missing_mass`. So a
      kept weight is too small by at most `missing_mass`, and no node outside the row weighs more.

    Both statements hold for the returned numbers, up to the rounding of float64 sums (1e-12 of a
    weight), and up to 4e-6 of a swept row of few `steps` that has lost nothing else.
    docs/certificate.md proves them.

    >>> rows = topk_ppr([[0, 1, 2, 3], [1, 2, 3, 0]], k=2, teleport=0.5, tolerance=1e-6)
    >>> rows.ids[0], rows.weights[0].round(4)  # the exact weights are 8/15, 4/15, 2/15 and 1/15
    (array([0, 1], dtype=int32), array([0.5333, 0.2667], dtype=float32))
    >>> rows.missing_mass.round(4)
    array([0.2, 0.2, 0.2, 0.2], dtype=float32)
    >>> rows.is_certain[0].tolist()
    [True, True]
    >>> rows.to_scipy().shape
    (4, 4)
    """

    roots: NodeIds
    """The roots, in the order in which they were given, (B,)."""
    ids: NDArray[np.int32]
    """Nodes by decreasing weight, ties by increasing id, (B, k); `NO_NODE` in unused places."""
    weights: NDArray[np.float32]
    """Weights of these nodes, (B, k); 0 in unused places."""
    missing_mass: NDArray[np.float32]
    """Upper bound on the mass of the exact row that is missing from the returned one, (B,)."""
    num_nodes: int
    """Number N of nodes of the graph."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of entries of each row, (B,)."""
        return np.asarray((self.ids != NO_NODE).sum(1))

    @property
    def is_certain(self) -> NDArray[np.bool_]:
        """Whether an entry is certainly one of the k largest of the exact row, (B, k).

        No node outside the row weighs more than `missing_mass`, so at most k - 1 nodes weigh more
        than an entry with at least this weight. Ties count as being among the largest.
        """
        enough = self.weights >= self.missing_mass[:, None]
        return np.asarray(enough & (self.ids != NO_NODE))

    def to_scipy(self) -> Any:
        """Return the rows as a `scipy.sparse.csr_array` of shape (B, N), with sorted columns."""
        used = self.ids != NO_NODE
        indptr = np.append(0, np.cumsum(used.sum(1)))
        shape = (len(self.roots), self.num_nodes)
        matrix = scipy.sparse.csr_array((self.weights[used], self.ids[used], indptr), shape=shape)
        matrix.sort_indices()
        return matrix


def topk_ppr(
    edges: EdgesLike,
    roots: ArrayLike | None = None,
    *,
    k: int = 32,
    teleport: float = 0.15,
    normalisation: Literal["row", "sym"] = "row",
    steps: int | None = None,
    tolerance: float | None = None,
    method: Literal["auto", "sweep", "push"] = "auto",
    num_nodes: int | None = None,
    edge_weight: ArrayLike | None = None,
    directed: bool = True,
    self_loops: bool = False,
    threads: int | None = None,
) -> TopKRows:
    """Return the k largest entries of personalised-PageRank rows, with a certificate.

    The row of a root v is row v of Pi = t (I - (1 - t) S)^-1: the probability that a walk from v,
    which stops with probability t before every step, stops at each node. `TopKRows` states what is
    certified about a row. A row depends on the method, but neither on the number of threads nor on
    the other roots. Memory grows with N, E and B k; for larger graphs, `gpn-precompute` writes
    rows to disk. The first call compiles the kernels, which takes half a minute.

    >>> rows = topk_ppr(np.array([[0, 1, 2], [1, 2, 3]]), roots=[3, 0], k=2, directed=False)
    >>> rows.ids
    array([[2, 3],
           [1, 0]], dtype=int32)
    >>> bool((rows.weights.sum(1) + rows.missing_mass >= 1).all())
    True

    Args:
        edges: Sources and targets, (2, E); or a tuple (indptr, indices) of compressed rows; or a
            sparse matrix (N, N) of scipy, whose entry (u, v) is the weight of u -> v; or a `Graph`.
            Loops are dropped, and repeated edges become one, whose weight is their sum.
        roots: Node ids in any order, (B,); None for all nodes.
        k: Number of entries per row, or the number of nodes if that is smaller.
        teleport: Probability t of stopping before each step, in (0, 1).
        normalisation: `row` for S = D^-1 A, whose rows sum to 1; `sym` for D^-1/2 A D^-1/2.
        steps: Number of steps after which a walk stops; None for no limit.
        tolerance: Accuracy of the rows before the cut to k entries. A push ends when every node's
            residual is below `tolerance` times its number of edges; sweeps end when further ones
            are estimated to gain less than `tolerance` in total. None for 1e-6 (push) or 8e-3
            (sweep).
        method: `push` computes each root by itself; `sweep` computes all nodes from their
            neighbours' rows, which is faster for many roots; `auto` chooses by their number.
        num_nodes: N, for edges (2, E); by default the largest id + 1.
        edge_weight: Positive weights in the order of the edges, (E,); a matrix has its own.
        directed: Whether walks follow edges only from source to target; ignored for a `Graph`.
        self_loops: Whether every node gets a loop of weight 1. If false, only nodes without edges
            get one, so that walks stay there.
        threads: Number of threads; None for all cores.

    Raises:
        GraphError: edges or roots are not valid.
        ConfigError: another argument has a value that is not allowed.
    """
    graph = graph_of_edges(edges, num_nodes=num_nodes, edge_weight=edge_weight, directed=directed)
    chosen = _roots(graph, roots)
    config = _config(
        k=_clipped(k, graph.num_nodes),
        method=method,
        tolerance=tolerance,
        teleport=teleport,
        normalisation=normalisation,
        steps=steps,
        self_loops=self_loops,
    )
    with _threads_kept():
        return _padded(_rows(graph, config, chosen, threads), chosen, config.k, graph.num_nodes)


def _clipped(k: int, most: int) -> int:
    """Return k, at most `most`; other types than int are left to the configuration's checks."""
    is_whole = isinstance(k, Integral) and not isinstance(k, bool)
    return min(int(k), most) if is_whole else k


def _roots(graph: Graph, roots: ArrayLike | None) -> NodeIds:
    if roots is None:
        return np.arange(graph.num_nodes)
    try:
        return node_positions(graph, roots)
    except GraphError as error:
        message = str(error).replace("nodes", "roots", 1)
        raise GraphError(message, arguments=("roots",)) from None


def _config(
    *,
    k: int,
    method: Literal["auto", "sweep", "push"],
    tolerance: float | None,
    normalisation: str,
    steps: int | None,
    **diffusion: Any,
) -> PPRConfig:
    """Return the configuration of the engine; messages name the arguments of `topk_ppr`."""
    require(normalisation in _NORMALISATIONS, "normalisation", normalisation, "'row' or 'sym'")
    require(steps is None or isinstance(steps, Integral), "steps", steps, "a whole number or None")
    accuracy: dict[str, Any] = {}
    if tolerance is not None:
        accuracy = {"push_tolerance": tolerance, "sweep_tolerance": tolerance}
    try:
        return PPRConfig(
            diffusion=DiffusionConfig(
                normalisation=_NORMALISATIONS[normalisation],
                steps="inf" if steps is None else steps,
                **diffusion,
            ),
            k=k,
            clusters=0,
            method=method,
            **accuracy,
        )
    except ConfigError as error:
        message, names = str(error).replace("or inf", "or None"), error.arguments
        for prefix in ("diffusion.", "push_", "sweep_"):
            message = message.replace(prefix, "")
            names = tuple(name.removeprefix(prefix) for name in names)
        raise ConfigError(message, arguments=names) from None


def _rows(graph: Graph, config: PPRConfig, roots: NodeIds, threads: int | None) -> Rows:
    """Return the finished rows of `roots`, in their order."""
    method = chosen_method(config, len(roots), graph.num_nodes)
    diffusion = config.diffusion
    engine = RowEngine(
        transition_matrix(graph, diffusion.normalisation, diffusion.self_loops),
        config,
        SingleProcess(),
        threads=_slots(graph.num_nodes, threads, push=method == "push"),
    )
    totals = row_totals(engine)
    engine.release_exact_weight()
    bounds = mass_bounds(engine, graph, steps=sum_steps(engine), cluster_of_node=None)
    of_roots = bounds.totals(roots, totals[roots])
    if method == "push":
        return engine.finish(engine.push(roots), of_roots)
    rows = engine.sweep(lambda *_: None).of(roots)
    return engine.finish(rows, of_roots, swept_roots=roots)


def _slots(num_nodes: int, threads: int | None, *, push: bool) -> int:
    """Return the number of threads whose scratch memory fits."""
    resources = default_resources()
    most = thread_limit()
    allowed = threads is None or (isinstance(threads, Integral) and 1 <= threads <= most)
    require(allowed, "threads", threads, f"a whole number from 1 to {most}, or None")
    return plan_slots(
        num_nodes, threads or resources.threads, resources.memory_bytes, push=push
    ).slots


@contextmanager
def _threads_kept() -> Iterator[None]:
    """Restore numba's number of threads, which an engine sets, for the caller's own kernels."""
    before = numba.get_num_threads()
    try:
        yield
    finally:
        numba.set_num_threads(before)


def _padded(rows: Rows, roots: NodeIds, k: int, num_nodes: int) -> TopKRows:
    row = rows.row_of_entry()
    place = np.arange(rows.num_entries) - rows.row_ptr[row]
    ids = np.full((len(roots), k), NO_NODE, np.int32)
    weights = np.zeros((len(roots), k), np.float32)
    ids[row, place], weights[row, place] = rows.ids, rows.weights
    return TopKRows(
        roots=roots,
        ids=ids,
        weights=weights,
        missing_mass=rows.missing_mass,
        num_nodes=num_nodes,
    )
