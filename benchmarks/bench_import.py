"""How long does the import of two raw tables take, and how much memory?

    python benchmarks/bench_import.py --nodes 1000000 --edges 10000000 --columns 20 --work DIR
    python benchmarks/bench_import.py --nodes 10000000 --edges 100000000 --columns 5 --work DIR

Makes a table of nodes with columns of all kinds and a table of edges from a seed, imports them in a
process of its own, and prints one JSON line with seconds and peak memory.
"""

import argparse
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

PART_ROWS = 1_000_000
WORDS = np.char.add("word", np.arange(500).astype(np.str_))


def make_tables(folder: Path, nodes: int, edges: int, columns: int, kind: str, seed: int) -> None:
    """Write `nodes` and `edges` into `folder`, as CSV or Parquet, in parts that fit into memory."""
    rng = np.random.default_rng(seed)
    makers = [_numbers, _categories, _booleans, _dates, _texts]

    def node_part(start: int, count: int) -> dict[str, Any]:
        table = {"ref": _ids(np.arange(start, start + count))}
        table["label"] = _with_gaps(rng.choice(["ok", "bad"], count), 0.97, rng)
        for number in range(columns):
            maker = makers[number % len(makers)]
            table[f"{maker.__name__.strip('_')}_{number}"] = maker(count, rng)
        return table

    def edge_part(start: int, count: int) -> dict[str, Any]:
        ends = {name: _ids(rng.integers(0, nodes, count)) for name in ("payer", "payee")}
        return ends | {"sum": rng.exponential(size=count).round(3) + 0.001}

    _write(folder / f"nodes.{kind}", node_part, nodes)
    _write(folder / f"edges.{kind}", edge_part, edges)


def _write(path: Path, part: Callable[[int, int], dict[str, Any]], num_rows: int) -> None:
    writer = None
    for start in range(0, num_rows, PART_ROWS):
        table = pa.table(part(start, min(PART_ROWS, num_rows - start)))
        if writer is None:
            make = parquet.ParquetWriter if path.suffix == ".parquet" else csv.CSVWriter
            writer = make(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _ids(numbers: Any) -> Any:
    return pc.binary_join_element_wise("N", pa.array(numbers).cast(pa.string()), "")


def _with_gaps(values: Any, fraction: float, rng: np.random.Generator) -> Any:
    return pa.array(values, mask=rng.random(len(values)) < fraction)


def _numbers(count: int, rng: np.random.Generator) -> Any:
    return _with_gaps(rng.normal(size=count).round(4), 0.05, rng)


def _categories(count: int, rng: np.random.Generator) -> Any:
    names = np.char.add("place ", np.arange(30).astype(np.str_))
    return _with_gaps(names[rng.integers(0, 30, count)], 0.05, rng)


def _booleans(count: int, rng: np.random.Generator) -> Any:
    return pa.array(np.array(["no", "yes"])[rng.integers(0, 2, count)])


def _dates(count: int, rng: np.random.Generator) -> Any:
    return pa.array(np.datetime64("2020-01-01") + rng.integers(0, 2000, count)).cast(pa.string())


def _texts(count: int, rng: np.random.Generator) -> Any:
    chosen = WORDS[rng.integers(0, len(WORDS), (count, 5))]
    return pa.array([" ".join(row) for row in chosen.tolist()])


def measure(arguments: tuple[Path, str]) -> dict[str, Any]:
    """Import the tables in `folder` and return time and memory."""
    from gpn_scale.cli.import_graph import main as import_graph
    from gpn_scale.data.graph_folder import open_graph
    from gpn_scale.memory import peak_rss_bytes

    folder, kind = arguments
    before = peak_rss_bytes()
    began = time.perf_counter()
    words = ["--nodes", f"{folder}/nodes.{kind}", "--edges", f"{folder}/edges.{kind}"]
    words += ["--id", "ref", "--source", "payer", "--target", "payee", "--weight", "sum"]
    if import_graph([*words, "--out", str(folder / "graph"), "--overwrite"]):
        raise SystemExit(2)
    seconds, peak = time.perf_counter() - began, peak_rss_bytes()
    graph = open_graph(folder / "graph")
    return {
        "kind": kind,
        "nodes": graph.num_nodes,
        "stored_edges": graph.num_edges,
        "features": graph.num_features,
        "seconds": round(seconds, 2),
        "peak_rss_before_mib": before >> 20,
        "peak_rss_mib": peak >> 20,
    }


def main() -> None:
    """Make the tables, import them in a process of its own, and print the measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=2_000)
    parser.add_argument("--edges", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--kind", choices=["csv", "parquet"], default="csv")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="use the tables in --work again")
    parser.add_argument(
        "--work", type=Path, help="folder for the tables (default: a temporary one)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if options.work is None else options.work
        folder.mkdir(parents=True, exist_ok=True)
        sizes = (options.nodes, options.edges, options.columns)
        if not (options.keep and (folder / f"edges.{options.kind}").exists()):
            make_tables(folder, *sizes, options.kind, options.seed)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(json.dumps(pool.apply(measure, ((folder, options.kind),))), flush=True)


if __name__ == "__main__":
    main()
