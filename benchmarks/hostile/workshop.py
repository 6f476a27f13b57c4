"""The files that trials damage: a small graph in every format, stores, runs and tables."""

import gzip
import json
import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

from hostile.trial import Job

NODES, CLASSES = 600, ("good", "bad", "odd")
_GRAPH = "--dataset bank --data-dir data"
_SMALL = "--threads 1 --device cpu"
_RUN = f"--run run --data-dir data {_SMALL}"
_TRAIN = f"{_GRAPH} {_SMALL} --epochs 1"
_ROWS = "--mode minibatch --ppr store --set minibatch.tail_nodes=64 --set diffusion.teleport=0.1"
_STORE = "--k 8 --clusters 4 --steps 10 --teleport 0.1 --threads 1"
_MATRIX = "--datasets bank --data-dir data --models LP --experiment clean --splits 1 --inits 1"
_LISTS = "--review 5 --label-next 3"
_LATER = "--dataset later --data-dir data --threads 1"
_CHANGES = "--dataset bank --data-dir data --threads 1 --changes changes.csv"
_MODEL = ("model.safetensors", "predictions.parquet")
_SHARDS = ("shard-00000.ppr", "shard-00001.ppr", "shard-00002.ppr")


def _job(
    call: str, uses: str = "", outputs: Sequence[str] = (), *, name: str = "", folder: str = ""
) -> Job:
    """Return a job from a command line and the names of files; outputs are in a folder."""
    command, *words = call.split()
    return Job(
        name=name or command,
        command=command,
        arguments=tuple(words),
        uses=tuple(uses.split()),
        outputs=tuple(f"{folder}{output}" for output in outputs),
    )


_JOBS = [
    _job(
        f"precompute {_GRAPH} --k 8 --clusters 4 --threads 1 --out new_store",
        "data/bank roots.txt",
        ["manifest.json"],
        name="build",
        folder="new_store/",
    ),
    _job(
        f"precompute {_GRAPH} {_STORE} --resume --out store",
        "data/bank store",
        ["manifest.json", "shard-00000.ppr"],
        name="mend",
        folder="store/",
    ),
    _job(
        f"precompute {_GRAPH} --k 8 --threads 1 --plan-only --out new_store",
        "data roots.txt",
        name="plan",
    ),
    _job("info store", "store", ["stdout"]),
    _job("verify store", "store", ["stdout"]),
    _job(
        f"update store {_LATER}",
        "data/later store",
        ["manifest.json", "generation-00001/shard-00000.ppr"],
        folder="store/",
    ),
    _job(
        f"update store {_CHANGES} --write-graph data/changed",
        "data/bank store changes.csv",
        ["store/manifest.json"],
        name="update by changes",
    ),
    _job("compact updated", "updated", ["updated/manifest.json"]),
    _job("repair updated", "updated", ["manifest.json", *_SHARDS], folder="updated/"),
    _job("info updated", "updated", ["stdout"], name="info updated"),
    _job("verify updated", "updated", ["stdout"], name="verify updated"),
    _job(
        f"precompute {_GRAPH} {_STORE} --part 2/2 --out parts",
        "data/bank parts",
        [*_SHARDS[1:], "total_mass.npy"],
        name="part",
        folder="parts/",
    ),
    _job("finish parts", "parts", ["manifest.json", *_SHARDS], folder="parts/"),
    _job(
        "import --nodes nodes.csv --edges edges.csv --out data/again",
        "nodes.csv edges.csv nodes.parquet edges.csv.gz data/bank",
    ),
    _job(f"train {_TRAIN} --out new_run", "data/bank some.json", _MODEL, folder="new_run/"),
    _job(
        f"train {_TRAIN} {_ROWS} --out new_run",
        "data/bank store",
        _MODEL,
        name="train rows",
        folder="new_run/",
    ),
    _job(
        f"train {_GRAPH} {_SMALL} --resume --out half",
        "data/bank half",
        _MODEL,
        name="resume",
        folder="half/",
    ),
    _job(
        f"train {_TRAIN} --overwrite --out run",
        "data/bank run",
        _MODEL,
        name="overwrite",
        folder="run/",
    ),
    _job(f"predict {_RUN} --dataset bank --out all.parquet", "data/bank run", ["all.parquet"]),
    _job(
        f"predict --run rows_run {_GRAPH} {_SMALL} --nodes nodes.txt --ppr store --explain 2 "
        "--out some.parquet",
        "data/bank rows_run store nodes.txt",
        ["some.parquet"],
        name="predict some",
    ),
    _job(
        f"predict --run rows_run {_LATER} --device cpu --nodes nodes.txt --ppr updated "
        "--out some.parquet",
        "data/later rows_run updated nodes.txt",
        ["some.parquet"],
        name="predict later",
    ),
    _job(
        f"predict {_RUN} --dataset bank --new-nodes new_nodes.csv --new-edges new_edges.csv "
        "--out new.csv",
        "data/bank run new_nodes.csv new_edges.csv",
        ["new.csv"],
        name="predict new",
    ),
    _job(f"evaluate {_MATRIX} --threads 1 --out new_matrix", "data/bank"),
    _job(
        f"evaluate {_MATRIX} --threads 1 --tables-only --out matrix",
        "data/bank matrix",
        ["matrix/tables/results.csv"],
        name="tables",
    ),
    _job(f"report {_RUN}", "data/bank run", ["run/report.html"]),
    _job(f"report --run half --data-dir data {_SMALL}", "data/bank half", name="report half"),
    _job(
        "report --compare run rows_run --data-dir data --out moved",
        "data/bank run rows_run",
        ["drift.json", "drift.csv"],
        name="compare",
        folder="moved/",
    ),
    _job(
        "report --compare before.parquet after.csv --data-dir data",
        "data/bank before.parquet after.csv after.jsonl",
        ["stdout"],
        name="compare tables",
    ),
    _job(
        f"triage {_RUN} {_LISTS} --out lists",
        "data/bank run",
        ["review.csv", "label_next.csv"],
        folder="lists/",
    ),
    _job("serve --run run --data-dir data --port 0", "data/bank run token.txt"),
]
JOBS = {job.name: job for job in _JOBS}
"""Calls that work, by name."""

FINDS_PROBLEMS = ("verify", "repair")
"""Commands that end with exit code 1 where a store is damaged."""
SLOW_JOBS = ("train", "train rows", "resume", "overwrite", "report", "report half", "evaluate")
SLOW_JOBS += ("predict", "predict some", "predict new", "predict later")
"""Jobs that train a model, write a page or predict."""

TO_BUILD = [
    _job("import --nodes nodes.csv --edges edges.csv --out data/bank"),
    _job(f"precompute {_GRAPH} {_STORE} --out store"),
    _job(f"precompute --dataset synthetic:nodes=600,classes=3 {_STORE} --out other_store"),
    _job(f"precompute {_GRAPH} {_STORE} --out updated"),
    _job(f"update updated {_CHANGES} --write-graph data/later"),
    _job(f"precompute {_GRAPH} {_STORE} --part 1/2 --out parts"),
    _job(f"precompute {_GRAPH} {_STORE} --part 2/2 --out parts"),
    _job(f"train {_TRAIN} --epochs 20 --out run"),
    _job(f"train {_TRAIN} {_ROWS} --out rows_run"),
    _job(f"triage {_RUN} {_LISTS} --error-among-answered 0.9 --confidence 0.6 --out built_lists"),
    _job(f"predict {_RUN} --dataset bank --out before.parquet"),
    _job(f"predict --run rows_run {_GRAPH} {_SMALL} --out after.csv"),
    _job(f"predict --run rows_run {_GRAPH} {_SMALL} --out after.jsonl"),
    _job(f"evaluate {_MATRIX} --threads 1 --out matrix"),
]
"""Calls that make the workshop, in this order."""


def write_inputs(folder: Path) -> None:
    """Write what a user brings: tables, lists of nodes, a configuration, links and pipes."""
    rng = random.Random(7)
    label = [rng.randrange(3) for _ in range(NODES)]
    rows = []
    for node in range(NODES):
        amount = f"{rng.gauss(3 * label[node], 1):.3f}" if rng.random() < 0.9 else ""
        name = CLASSES[label[node]] if rng.random() < 0.5 else ""
        cells = (f"n{node}", name, amount, rng.choice("DFI"), rng.randrange(90))
        rows.append(",".join(map(str, cells)))
    nodes = "id,label,amount,country,age\n" + "\n".join(rows) + "\n"
    pairs = set()
    while len(pairs) < 3 * NODES:
        a, b = rng.randrange(NODES), rng.randrange(NODES)
        if a != b and (label[a] == label[b] or rng.random() < 0.2):
            pairs.add((min(a, b), max(a, b)))
    edges = "source,target\n" + "".join(f"n{a},n{b}\n" for a, b in sorted(pairs))
    (folder / "nodes.csv").write_text(nodes)
    (folder / "edges.csv").write_text(edges)
    (folder / "edges.csv.gz").write_bytes(gzip.compress(edges.encode(), mtime=0))
    (folder / "changes.csv").write_text(_changes(sorted(pairs)))
    (folder / "nodes.txt").write_text("n7\nn0\nn599\nn20\nn21\n")
    (folder / "roots.txt").write_text("7\n0\n599\n")
    (folder / "token.txt").write_text("a-token-of-some-length-0123456789\n")
    (folder / "some.json").write_text('{"train": {"epochs": 1}, "encoder": {"hidden": 8}}\n')
    (folder / "new_nodes.csv").write_text("id,amount,country,age\nx1,2.5,D,30\nx2,0.1,F,7\n")
    (folder / "new_edges.csv").write_text("source,target\nx1,n3\nx1,n9\nx2,n3\n")
    raw = folder / "data" / "raw"
    raw.mkdir(parents=True)
    (raw / "nodes.csv").write_text("id,label,size\n" + "a,x,1\nb,y,2\nc,x,3\n" * 1)
    (raw / "edges.csv").write_text("source,target\na,b\nb,c\n")


def _changes(pairs: Sequence[tuple[int, int]]) -> str:
    """Return a table that removes some edges and adds others."""
    removed = [f"n{a},n{b},remove" for a, b in pairs[:3]]
    added = [f"n{a},n{a + 1},add" for a in range(0, NODES, 100) if (a, a + 1) not in pairs]
    return "\n".join(["source,target,change", *removed, *added]) + "\n"


def write_arrays(folder: Path) -> None:
    """Write the graph in the other formats that are read; needs pyarrow and NumPy."""
    import numpy as np
    import pyarrow.csv
    import pyarrow.parquet

    from gpn_scale.data.graph_folder import open_graph
    from gpn_scale.data.npz import write_npz

    write_npz(open_graph(folder / "data" / "bank"), folder / "data" / "plain.npz")
    table = pyarrow.csv.read_csv(folder / "nodes.csv")
    pyarrow.parquet.write_table(table, folder / "nodes.parquet")
    rng = np.random.default_rng(1)
    ends = rng.integers(40, size=(2, 90))
    np.savez(
        folder / "data" / "pairs.npz",
        edge_index=ends,
        x=rng.normal(size=(40, 3)).astype(np.float32),
        y=rng.integers(3, size=40),
    )


def write_leftovers(folder: Path) -> None:
    """Write an unfinished run and decisions; they follow from the finished run."""
    shutil.copytree(folder / "run", folder / "half")
    for name in (*_MODEL, "report.json", "report.md", "report.html", "promise.json"):
        (folder / "half" / name).unlink(missing_ok=True)
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.data.splits import prepare_graph
    from gpn_scale.page.run_record import read_run
    from gpn_scale.serve.decisions import DecisionLog, run_fingerprint
    from gpn_scale.train.run_directory import RunDirectory

    record = read_run(RunDirectory(folder / "run"))
    assert record.report is not None
    graph = prepare_graph(load_graph("bank", folder / "data"), record.config)
    run = run_fingerprint(record.report.fingerprint, graph.fingerprint())
    log = DecisionLog(folder / "run" / "decisions.jsonl", run, "bank")
    for node in ("n1", "n2"):
        log.append(node, "accept", label=None, note="seen", model="m")
    log.append("n3", "relabel", label="odd", note=None, model="m")


def add_special_files(folder: Path) -> None:
    """Make the pipes, links and odd files that hostile options name, in the folder of a trial."""
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    (folder / "nowhere").symlink_to("missing/file")
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "empty").touch()
    (folder / "folder").mkdir()
    (folder / "noise").write_bytes(random.Random(3).randbytes(3000))
    (folder / "deep.json").write_text("[" * 10_000)
    (folder / "list.json").write_text(json.dumps([1, 2]))


def copy_piece(workshop: Path, folder: Path, name: str) -> None:
    """Copy a file or folder of the workshop into the folder of a trial."""
    source, target = workshop / name, folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target)
