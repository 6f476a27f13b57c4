"""Options of the command line as arguments of a build."""

import os
import re
from dataclasses import replace

import numba
import numpy as np
import pytest

from gpn_scale.config import DiffusionConfig, PPRConfig
from gpn_scale.data.graph import Split
from gpn_scale.data.splits import stratified_split
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.errors import ConfigError
from precompute.accuracy_targets import Target
from precompute.arguments import (
    chosen_roots,
    existing_of,
    part_of,
    ppr_config,
    ppr_parser,
    resources_of,
    target_of,
)
from precompute.mpi import SingleProcess
from precompute.resources import default_resources


def parsed(*options):
    return ppr_parser().parse_args(["--out", "store", *options])


@pytest.fixture(scope="module")
def small():
    return synthetic_graph(SyntheticConfig(nodes=100, classes=3, features=2))


def test_without_options_the_configuration_is_the_default():
    assert ppr_config(parsed()) == PPRConfig()
    assert target_of(parsed()) is None
    assert existing_of(parsed()) == "refuse"


def test_every_option_reaches_the_configuration():
    options = "--teleport .3 --normalisation rw --steps inf --self-loops off --k 9 --clusters 3"
    options += " --method push --keep 20 --sweeps 4 --sweep-tolerance .1 --push-tolerance .2"
    diffusion = DiffusionConfig(teleport=0.3, normalisation="rw", steps="inf", self_loops=False)
    assert ppr_config(parsed(*options.split())) == PPRConfig(
        diffusion=diffusion,
        k=9,
        clusters=3,
        method="push",
        keep=20,
        sweeps=4,
        sweep_tolerance=0.1,
        push_tolerance=0.2,
    )


def test_an_existing_store_is_resumed_or_overwritten():
    assert existing_of(parsed("--resume")) == "resume"
    assert existing_of(parsed("--overwrite")) == "overwrite"


def test_targets():
    assert target_of(parsed("--target-mass", "0.5")) == Target("mass", 0.5)
    assert target_of(parsed("--target-recall", "0.9", "--k", "5")) == Target("recall", 0.9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target-mass", "0.5", "--target-recall", "0.5"], "are both given, expected"),
        (["--target-mass", "0.5", "--k", "5"], "--target-mass chooses k, but --k 5 is given too"),
        (["--target-mass", "1.5"], "the target mass is 1.5, expected a number in (0, 1)"),
        (["--target-recall", "0"], "the target recall is 0.0, expected a number in (0, 1)"),
    ],
)
def test_wrong_targets_are_refused(options, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        target_of(parsed(*options))


def test_resources(monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 3)
    given = resources_of(parsed("--threads", "3", "--memory-budget", "0.5"), SingleProcess())
    assert (given.threads, given.memory_bytes) == (3, 500_000_000)
    assert resources_of(parsed(), SingleProcess()).threads == default_resources(1).threads


def test_threads_are_limited_by_those_of_numba(monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 1)
    with pytest.raises(ConfigError, match=r"--threads got 2, expected at most 1: .*THREADS=2"):
        resources_of(parsed("--threads", "2"), SingleProcess())


def test_sets_of_roots(small):
    assert chosen_roots(small, "synthetic", "all", 1) is None
    np.testing.assert_array_equal(
        chosen_roots(small, "synthetic", "labelled", 1), np.flatnonzero(small.labels >= 0)
    )
    train = chosen_roots(small, "synthetic", "train", 1)
    split = stratified_split(small, rng_seed=1).split
    assert train.tolist() == sorted([*split.train, *split.val])
    assert (chosen_roots(small, "synthetic", "train", 2).tolist()) != train.tolist()


def test_roots_for_training_are_those_of_the_recipe(small):
    labels = np.arange(100) % 2
    own = replace(small, labels=labels.astype(np.int32), num_classes=2, marks={}, split=None)
    assert len(chosen_roots(own, "mine", "train", 1)) == 80
    assert len(chosen_roots(own, "CoraML", "train", 1)) == 20
    public = own.with_split(Split(train=[0, 1], val=[2], test=[3]))
    assert chosen_roots(public, "mine", "train", 1).tolist() == [0, 1, 2]


def test_roots_of_a_file_are_sorted(small, tmp_path):
    (tmp_path / "roots.txt").write_text("5\n3\n60\n")
    assert chosen_roots(small, "synthetic", str(tmp_path / "roots.txt"), 1).tolist() == [3, 5, 60]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("1\n1\n", "contains node 1 more than once"),
        ("1\n100\n", r"contains node 100, expected ids in \[0, 100\)"),
        ("-1\n", "contains node -1"),
        ("one\n", "cannot be read"),
    ],
)
def test_bad_roots_are_refused(small, tmp_path, ids, message):
    (tmp_path / "roots.txt").write_text(ids)
    with pytest.raises(ConfigError, match=message):
        chosen_roots(small, "synthetic", str(tmp_path / "roots.txt"), 1)


def test_a_pipe_of_roots_is_refused_at_once(small, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match=r"--roots .* is a pipe \(FIFO\).*; other choices"):
        chosen_roots(small, "synthetic", str(tmp_path / "pipe"), 1)


def test_parts_are_two_numbers():
    assert part_of(ppr_parser().parse_args(["--out", "s"])) is None
    assert part_of(ppr_parser().parse_args(["--part", "07/16", "--out", "s"])) == (7, 16)
    for text in ("", "/", "1/", "/2", "1/2/3", "1.0/2", "a/b", "1 /2", "\u0661/2", f"1/{10**18}"):
        with pytest.raises(ConfigError, match=r"--part got .*, expected two whole numbers I/N"):
            part_of(ppr_parser().parse_args(["--part", text, "--out", "s"]))
