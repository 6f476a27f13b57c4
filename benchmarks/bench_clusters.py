"""What does clustering a graph cost, and how many edges does it cut, with and without coarsening?

    python benchmarks/bench_clusters.py --dataset synthetic:nodes=3000000 [--metis-edges E]

Prints one JSON line: seconds in one thread, memory beside the graph, fraction of cut edges and
cluster sizes. METIS gets at most E edge directions (default: as in precompute), so a large E means
METIS alone, and a small E coarsens any graph. There is one run per process, since memory is
measured; kernels are compiled before it.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.memory import KEPT_BLOCK_BYTES, keep_freed_blocks, resident_bytes
from precompute import coarsening
from precompute.clusters import partition_nodes

_ROWS_AT_A_TIME = 1 << 18


def compile_kernels() -> None:
    """Cluster a small graph with coarsening."""
    before = coarsening.METIS_EDGES
    coarsening.METIS_EDGES = 1000
    partition_nodes(synthetic_graph(SyntheticConfig(nodes=2000)), 4)
    coarsening.METIS_EDGES = before


def cut_fraction(graph: Graph, cluster: NDArray[np.int32]) -> float:
    """Return the fraction of edges between clusters."""
    cut = 0
    for start in range(0, graph.num_nodes, _ROWS_AT_A_TIME):
        offsets = graph.indptr[start : start + _ROWS_AT_A_TIME + 1]
        row = np.repeat(cluster[start : start + _ROWS_AT_A_TIME], np.diff(offsets))
        cut += np.count_nonzero(row != cluster[graph.indices[offsets[0] : offsets[-1]]])
    return cut / max(graph.num_edges, 1)


def measure(graph: Graph, num_clusters: int) -> dict[str, float]:
    """Cluster the graph once; return time, memory, cut and sizes."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    present = resident_bytes()[0]
    began, began_cpu = time.perf_counter(), time.process_time()
    cluster = partition_nodes(graph, num_clusters)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
    peak = resident_bytes()[1]
    sizes = np.bincount(cluster, minlength=num_clusters)
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "bytes": peak - present,
        "predicted_bytes": coarsening.partition_bytes(graph.num_nodes, graph.num_edges),
        "cut": round(cut_fraction(graph, cluster), 4),
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
    }


def main() -> None:
    """Measure one graph and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--clusters", type=int, default=32)
    parser.add_argument("--metis-edges", type=int, default=coarsening.METIS_EDGES)
    options = parser.parse_args()
    keep_freed_blocks(KEPT_BLOCK_BYTES["exact"])
    compile_kernels()
    coarsening.METIS_EDGES = options.metis_edges
    graph = load_graph(options.dataset, options.data_dir)
    facts = {"dataset": options.dataset, "nodes": graph.num_nodes, "edges": graph.num_edges}
    facts["metis_edges"] = options.metis_edges
    print(json.dumps(facts | measure(graph, options.clusters)))


if __name__ == "__main__":
    main()
