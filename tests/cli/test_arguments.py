"""Options of training, and the configuration that they result in."""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpn_scale.cli.arguments import (
    checked_pause,
    checked_timeout,
    completed,
    field_docs,
    run_config,
    training_parser,
    unused_seed,
)
from gpn_scale.cli.config_file import ConfigFile
from gpn_scale.cli.remembered import DEFAULT_DATA_DIR, remember_inputs
from gpn_scale.cli.run_choice import RunChoice
from gpn_scale.config import field_types_by_key
from gpn_scale.data.building import build_graph
from gpn_scale.errors import ConfigError, RunError
from gpn_scale.files import write_json
from gpn_scale.recipes import RECIPES
from gpn_scale.train.run_directory import RunDirectory


def options_of(*texts, config=None):
    options = training_parser().parse_args(texts)
    checked_timeout(options.timeout_seconds)
    out = options.out or Path("runs/none")
    choice = RunChoice(out=out, resume=options.resume, overwrite=options.overwrite)
    return completed(options, choice, None if config is None else ConfigFile(config))


@pytest.fixture(autouse=True)
def no_torchrun(monkeypatch):
    for name in ("WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT"):
        monkeypatch.delenv(name, raising=False)


def test_defaults_are_exact_mode_and_the_synthetic_graph():
    options = options_of()
    assert (options.mode, options.dataset) == ("exact", "synthetic")
    assert options.data_dir == DEFAULT_DATA_DIR
    assert options.remembered_store is None


def test_torchrun_means_minibatches(monkeypatch, tmp_path):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert options_of().mode == "minibatch"
    assert options_of("--mode", "exact").mode == "exact"
    config = tmp_path / "config.json"
    config.write_text('{"mode": "exact"}')
    assert options_of(config=config).mode == "exact"


def earlier_run(path, small_graph):
    """A directory with the configuration and the inputs of a run."""
    directory = RunDirectory(path)
    path.mkdir()
    config = run_config(options_of("--dataset", "mine", "--mode", "minibatch"), small_graph)
    write_json(directory.config, config.to_dict())
    (path / "rows").mkdir()
    (path / "rows" / "manifest.json").write_text("{}")
    remember_inputs(directory, path / "graphs", path / "rows")
    return config


def test_a_resumed_run_starts_from_what_it_was(tmp_path, small_graph):
    run = tmp_path / "run"
    config = earlier_run(run, small_graph)
    options = options_of("--out", str(run), "--resume")
    assert run_config(options, small_graph) == config
    assert (options.data_dir, options.remembered_store) == (run / "graphs", run / "rows")
    new = options_of("--out", str(run))
    assert (new.dataset, new.mode, new.data_dir) == ("synthetic", "exact", DEFAULT_DATA_DIR)


@pytest.mark.parametrize("text", [None, "{}", '{"data": {"dataset": "mine"}}'])
def test_a_run_without_its_configuration_is_not_resumed(tmp_path, small_graph, text):
    directory = RunDirectory(tmp_path / "run")
    earlier_run(directory.path, small_graph)
    given = directory.config.read_text()
    directory.checkpoint.write_bytes(b"")
    if text is None:
        directory.config.unlink()
    else:
        directory.config.write_text(text)
    with pytest.raises(RunError, match=r"config\.json is missing or incomplete, so that it is unk"):
        options_of("--out", str(directory.path), "--resume")
    (tmp_path / "config.json").write_text(given)
    config = ["--config", str(tmp_path / "config.json")]
    assert options_of("--out", str(directory.path), "--resume", *config).dataset == "synthetic"
    directory.checkpoint.unlink()
    if text is None:  # it has not begun to train
        assert options_of("--out", str(directory.path), "--resume").dataset == "synthetic"


def test_a_configuration_brings_the_inputs_of_its_run(tmp_path, small_graph):
    run = tmp_path / "run"
    config = earlier_run(run, small_graph)
    options = options_of("--out", str(tmp_path / "b"), config=run / "config.json")
    assert run_config(options, small_graph) == config
    assert (options.data_dir, options.remembered_store) == (run / "graphs", run / "rows")


def test_options_win_over_a_configuration_and_set_over_both(tmp_path, small_graph):
    run = tmp_path / "run"
    config = earlier_run(run, small_graph)
    given = ["--dataset", "other", "--mode", "exact", "--seed", "5", "--model", "GPN"]
    given += ["--data-dir", "there", "--set", "train.rng_seed=6", "--epochs", "3"]
    options = options_of(*given, config=run / "config.json")
    changed = run_config(options, small_graph)
    assert options.data_dir == Path("there")
    assert changed.data == replace(config.data, dataset="other")
    assert (changed.mode, changed.model) == ("exact", "GPN")
    assert changed.train == replace(config.train, rng_seed=6, epochs=3)
    assert changed.diffusion == config.diffusion


def test_own_options_change_the_recipe_and_set_has_the_last_word(small_graph):
    options = options_of(
        *["--split-seed", "3", "--seed", "4", "--epochs", "5", "--left-out-classes", "1"],
        *["--set", "train.rng_seed=9", "--set", "train.learning_rate=0.5"],
    )
    config = run_config(options, small_graph)
    assert (config.split.rng_seed, config.train.rng_seed, config.train.epochs) == (3, 9, 5)
    assert (config.data.left_out_classes, config.train.learning_rate) == (1, 0.5)
    assert config.evidence.budget == "latent_classes", "of the recipe for synthetic graphs"


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_can_be_chosen(small_graph, name):
    config = run_config(options_of("--recipe", name), small_graph)
    assert config == RECIPES[name]("synthetic")


def test_minibatch_mode_is_part_of_the_configuration(small_graph):
    assert run_config(options_of("--mode", "minibatch"), small_graph).mode == "minibatch"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["--mode", "exact", "--ppr", "store"], "--ppr has no effect in exact mode"),
        (["--timeout-seconds", "0"], r"--timeout-seconds is 0\.0, expected a positive number"),
        (["--left-out-classes", "few"], "left_out_classes is 'few', expected a number or 'paper'"),
        (["--set", "train.epochs"], "assignment is 'train.epochs', expected section.field=value"),
    ],
)
def test_options_that_do_not_fit_are_refused(small_graph, texts, message):
    with pytest.raises(ConfigError, match=message):
        run_config(options_of(*texts), small_graph)


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        (["--set", "split.train=0.5"], "--set split.train"),
        (["--set", "split.rng_seed=1"], "--set split.rng_seed"),
        (["--split-seed", "2"], "--split-seed"),
        (["--set", "split.val=0.1", "--split-seed", "2"], "--set split.val and --split-seed"),
        (["--set", "split.kind=public", "--set", "split.val=0.1"], "--set split.val"),
    ],
)
@pytest.mark.parametrize("mode", ["exact", "minibatch"])
def test_fields_of_a_split_that_is_not_drawn_are_refused(small_graph, texts, named, mode):
    message = f"{named} would have no effect, because mine comes with its own split"
    with pytest.raises(ConfigError, match=message):
        run_config(options_of("--dataset", "mine", "--mode", mode, *texts), small_graph)
    texts = [*texts, "--set", "split.kind=stratified"]
    config = run_config(options_of("--dataset", "mine", "--mode", mode, *texts), small_graph)
    assert config.split.kind == "stratified"


def test_a_split_seed_is_refused_for_no_dataset_of_the_paper(small_graph):
    arxiv = options_of("--dataset", "ogbn-arxiv", "--split-seed", "3")
    config = run_config(arxiv, small_graph)
    assert config.split.kind == "public"
    assert "--split-seed 3 has no effect, because ogbn-arxiv" in unused_seed(arxiv, config)
    for texts in (["CoraML", "--split-seed", "3"], ["mine", "--split-seed", "1"], ["ogbn-arxiv"]):
        options = options_of("--dataset", *texts)
        assert unused_seed(options, run_config(options, small_graph)) is None
    with pytest.raises(ConfigError, match=r"--set split.train would have no effect, .* ogbn-arxiv"):
        run_config(options_of("--dataset", "ogbn-arxiv", "--set", "split.train=0.2"), small_graph)


def test_batches_follow_the_split_that_is_set():
    labels = np.arange(20_000) % 2
    graph = build_graph([0], [1], labels=labels, num_nodes=20_000)
    minibatch = ["--dataset", "mine", "--mode", "minibatch"]
    assert run_config(options_of(*minibatch), graph).train.schedule == "cosine"
    few = run_config(options_of(*minibatch, "--set", "split.train=0.01"), graph)
    assert few.train.schedule == "constant"


def test_epochs_follow_the_batch_size_and_the_classes_that_are_set():
    graph = build_graph([0], [1], labels=np.arange(10_000) % 5, num_nodes=10_000)
    minibatch = ["--dataset", "mine", "--mode", "minibatch", "--set", "split.train=0.2"]
    config = run_config(options_of(*minibatch), graph)
    assert (config.minibatch.batch_size, config.train.epochs) == (512, 200)
    small = run_config(options_of(*minibatch, "--set", "minibatch.batch_size=32"), graph)
    assert (small.minibatch.batch_size, small.minibatch.tail_nodes) == (32, 2048)
    assert (small.train.epochs, small.opinion.epochs) == (30, 12)
    fewer = run_config(options_of(*minibatch, "--left-out-classes", "2"), graph)
    assert fewer.train.epochs == 267  # of 3 steps, for 1,200 training nodes


def test_help_explains_every_field_and_names_no_private_dataset():
    text = training_parser().format_help()
    assert "diffusion.teleport\n      Probability of returning to the root" in text
    assert "-sim" not in text
    docs = field_docs()
    assert docs.keys() == field_types_by_key().keys()
    assert all(len(doc) > 10 for doc in docs.values())
    for key in field_types_by_key():
        assert f"  {key}\n" in text


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, -math.inf, math.nan, 1e30])
def test_numbers_of_options_are_bounded(value):
    for check, flag in (
        (checked_timeout, "--timeout-seconds"),
        (checked_pause, "--checkpoint-seconds"),
    ):
        if check is checked_pause and value == 0:
            assert checked_pause(value) == 0
            continue
        with pytest.raises(ConfigError, match=rf"{flag} is {re.escape(str(value))}, expected"):
            check(value)
