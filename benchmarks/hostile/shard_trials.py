"""Games with the files of stores and graphs: swapped, foreign, missing, cut while they are open."""

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from hostile.commands import Command
from hostile.trial import Job, Trial, generator
from hostile.workshop import FINDS_PROBLEMS, JOBS, NODES

Game = Callable[[Path, random.Random], None]
_JOBS = ("predict some", "verify", "info", "mend", "train rows", "update")
_SHARDS = "shard-*.ppr"


def shard_trials(commands: dict[str, Command], rng_seed: int, count: int) -> list[Trial]:
    """Return games, and calls of the library whose files change while they are open."""
    del commands
    return [_trial(number, generator(rng_seed, "shards", number)) for number in range(count)]


def _trial(number: int, rng: random.Random) -> Trial:
    if number % 3 == 0:
        opened = OPENED[number // 3 % len(OPENED)]
        return Trial(
            section="shards",
            number=number,
            job=_with_other(JOBS["predict some"]),
            note=f"{opened.__name__} while it is open",
            call=partial(_explained, opened, rng),
        )
    game = GAMES[number % len(GAMES)]
    job = JOBS[rng.choice(_JOBS)]
    return Trial(
        section="shards",
        number=number,
        job=_with_other(job),
        note=game.__name__,
        prepare=partial(_played, game, rng),
        is_compared=True,
        codes=(0, 1, 2) if job.command in FINDS_PROBLEMS else (0, 2),
    )


def _with_other(job: Job) -> Job:
    """Return the job with the store of another graph beside its own files."""
    return replace(job, uses=(*job.uses, "other_store"))


def _played(game: Game, rng: random.Random, folder: Path) -> None:
    game(folder, rng)


def _shards(folder: Path, name: str = "store") -> list[Path]:
    return sorted((folder / name).glob(_SHARDS))


def swap(folder: Path, rng: random.Random) -> None:
    """Exchange two shards of a store."""
    first, second = rng.sample(_shards(folder), 2)
    first.rename(folder / "x")
    second.rename(first)
    (folder / "x").rename(second)


def borrow(folder: Path, rng: random.Random) -> None:
    """Take a shard of another graph's store."""
    path = rng.choice(_shards(folder))
    shutil.copyfile(folder / "other_store" / path.name, path)


def lose(folder: Path, rng: random.Random) -> None:
    """Remove a shard."""
    rng.choice(_shards(folder)).unlink()


def double(folder: Path, rng: random.Random) -> None:
    """Put a shard in the place of another one, or at the end."""
    first, second = rng.sample(_shards(folder), 2)
    end = folder / "store" / "shard-00003.ppr"
    shutil.copyfile(first, second if rng.random() < 0.7 else end)


def cut(folder: Path, rng: random.Random) -> None:
    """Truncate a shard, perhaps at the end of a block."""
    path = rng.choice(_shards(folder))
    size = path.stat().st_size
    os.truncate(path, rng.choice([0, 8, 64, size // 2, size - 8, size - 1]))


def exchange_part(folder: Path, rng: random.Random) -> None:
    """Take clusters, cut masses, manifest or claim of another graph's store."""
    name = rng.choice(["clusters.npy", "cut.npy", "manifest.json", "build.json"])
    shutil.copyfile(folder / "other_store" / name, folder / "store" / name)


def exchange_all(folder: Path, rng: random.Random) -> None:
    """Take another graph's store, with or without a shard of the right one."""
    kept = rng.choice(_shards(folder))
    content = kept.read_bytes()
    shutil.rmtree(folder / "store")
    shutil.copytree(folder / "other_store", folder / "store")
    if rng.random() < 0.5:
        kept.write_bytes(content)


def lose_part(folder: Path, rng: random.Random) -> None:
    """Remove a file that is no shard."""
    name = rng.choice(["clusters.npy", "cut.npy", "manifest.json", "build.json"])
    (folder / "store" / name).unlink()


def link(folder: Path, rng: random.Random) -> None:
    """Replace a shard by a link to another one."""
    first, second = rng.sample(_shards(folder), 2)
    first.unlink()
    first.symlink_to(second.name)


GAMES: tuple[Game, ...] = (
    *(swap, borrow, lose, double, cut, exchange_part, exchange_all, lose_part, link),
)


def cut_shard(folder: Path, rng: random.Random) -> None:
    """Read rows of a store, cut its shards, and read all rows."""
    import numpy as np

    from gpn_scale.ppr.store import PPRStore

    store = PPRStore.open(folder / "store")
    before = store.rows(np.arange(NODES))
    store.rows([rng.randrange(NODES)])
    for path in _shards(folder):
        os.truncate(path, rng.choice([0, 100, path.stat().st_size // 2]))
    after = store.rows(np.arange(NODES))
    assert np.array_equal(before.weights, after.weights)


def cut_graph(folder: Path, rng: random.Random) -> None:
    """Open a graph, cut one of its arrays, and use it all."""
    from gpn_scale.data.datasets import load_graph

    fingerprint = load_graph("bank", folder / "data").fingerprint()
    graph = load_graph("bank", folder / "data")
    for path in sorted((folder / "data" / "bank").glob("*.npy")):
        os.truncate(path, rng.choice([0, 60, 128]))
    assert graph.fingerprint() == fingerprint


def cut_graph_before_prediction(folder: Path, rng: random.Random) -> None:
    """Open a graph and a model, cut the graph's arrays, and predict."""
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.estimator import GPNClassifier

    graph = load_graph("bank", folder / "data")
    classifier = GPNClassifier.load(folder / "rows_run" / "model.safetensors", device="cpu")
    for path in sorted((folder / "data" / "bank").glob("*.npy")):
        os.truncate(path, rng.choice([0, 60, 128]))
    classifier.predict(graph)


def lose_shard(folder: Path, rng: random.Random) -> None:
    """Open a store, remove a shard, and read all rows."""
    import numpy as np

    from gpn_scale.ppr.store import PPRStore

    store = PPRStore.open(folder / "store")
    rng.choice(_shards(folder)).unlink()
    store.rows(np.arange(NODES))


OPENED: tuple[Game, ...] = (cut_shard, cut_graph, cut_graph_before_prediction, lose_shard)


def _explained(game: Game, rng: random.Random, folder: Path) -> int:
    """Return the exit code of a call of the library, as a command would have it."""
    from gpn_scale.cli.console import run_command
    from gpn_scale.command_line import CommandParser

    return run_command(CommandParser, lambda _: game(folder, rng), [])
