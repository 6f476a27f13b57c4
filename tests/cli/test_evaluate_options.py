from pathlib import Path

import pytest

from gpn_scale.cli.evaluate_options import (
    evaluation_parser,
    requested_matrix,
    split_datasets,
    table_choice,
)
from gpn_scale.errors import ConfigError
from gpn_scale.experiments.catalogue import EXPERIMENTS
from gpn_scale.experiments.trained import FRACTIONS


def requested(*arguments):
    return requested_matrix(evaluation_parser().parse_args(["--out", "o", *arguments]))


def test_defaults_are_all_experiments_on_the_synthetic_graph():
    request = requested()
    assert request.datasets == ("synthetic",)
    assert request.models == ("GPN", "GPN-minibatch")
    assert request.experiments == tuple(EXPERIMENTS)
    assert request.fractions == FRACTIONS
    assert (request.splits, request.inits, request.left_out_classes) == (10, 10, "paper")
    assert (request.out, request.data_dir) == (Path("o"), Path("data"))


def test_lists_are_split_at_commas_and_hold_every_name_once():
    request = requested(
        *("--datasets", "CoraML,synthetic:nodes=9,classes=3,CoraML"),
        *("--models", "LP,VGCN,LP"),
        *("--experiment", "clean,,isolated,clean"),
        *("--fractions", "0.2,0.5,"),
        *("--set", "train.epochs=2", "--set", "train.patience=1"),
    )
    assert request.datasets == ("CoraML", "synthetic:nodes=9,classes=3")
    assert request.models == ("LP", "VGCN")
    assert request.experiments == ("clean", "isolated")
    assert request.fractions == (0.2, 0.5)
    assert request.changes == ("train.epochs=2", "train.patience=1")


def test_class_sets_and_own_seeds():
    assert (requested().class_sets, requested().own_seeds) == ((0,), False)
    request = requested("--class-sets", "0,3,", "--own-seeds")
    assert (request.class_sets, request.own_seeds) == ((0, 3), True)
    with pytest.raises(ConfigError, match="class_sets got 'all', expected whole numbers"):
        requested("--class-sets", "all")


def test_keys_of_a_synthetic_graph_stay_together():
    text = "A,synthetic:nodes=10,classes=3,B,synthetic:nodes=5"
    names = ["A", "synthetic:nodes=10,classes=3", "B", "synthetic:nodes=5"]
    assert list(split_datasets(text)) == names


def test_groups_add_their_models():
    request = requested("--experiment", "ablation", "--models", "VGCN")
    assert request.models == ("VGCN", "PostNet", "PostNet-Diff", "GPN", "GPN-LOG-beta")


def test_texts_that_are_no_fractions_are_refused():
    with pytest.raises(ConfigError, match="fractions got 'half', expected numbers"):
        requested("--fractions", "half")


def test_metrics_are_those_of_the_experiments(tmp_path):
    def chosen(*arguments):
        options = evaluation_parser().parse_args(["--out", "o", *arguments])
        options.command = "gpn-evaluate --out o"
        return table_choice(options, ["clean", "isolated"])

    assert chosen().columns is None
    assert chosen().command == "gpn-evaluate --out o"
    choice = chosen("--metrics", "ece, accuracy,", "--latex", "t.tex", "--png")
    assert [column.metric for column in choice.columns] == ["ece", "accuracy"]
    assert (choice.latex, choice.png) == (Path("t.tex"), True)
    with pytest.raises(ConfigError, match="metrics got 'id_accuracy', which none of"):
        chosen("--metrics", "id_accuracy")
    with pytest.raises(ConfigError, match="which is a folder: name a file in it"):
        chosen("--latex", str(tmp_path))


def test_latex_tables_replace_nothing_but_latex_tables(tmp_path):
    path = tmp_path / "results.tex"
    options = evaluation_parser().parse_args(["--out", "o", "--latex", str(path)])
    options.command = "gpn-evaluate"
    for content in ("", "% gpn-evaluate (gpn_scale 0.1.0)\n"):
        path.write_text(content)
        assert table_choice(options, ["clean"]).latex == path
    for content in ("My thesis\n", "% my thesis\n", "\0"):
        path.write_text(content)
        with pytest.raises(ConfigError, match="an existing file that this command did not write"):
            table_choice(options, ["clean"])
