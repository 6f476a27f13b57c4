import pytest

from launch.evaluate import main

SMALL = "synthetic:nodes=200,classes=4,unseen_classes=0,features=6"
QUICK = ["--datasets", SMALL, "--splits", "2", "--inits", "1", "--set", "train.epochs=2"]
QUICK += ["--left-out-classes", "1", "--fractions", "0.2,0.8"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Tables of one call that nothing disturbed."""
    out = tmp_path_factory.mktemp("whole")
    assert main([*QUICK, "--experiment", "all,ablation", "--out", str(out)]) == 0
    return out / "tables"


def test_a_matrix_in_two_calls_and_two_processes_gives_the_same_tables(whole, tmp_path):
    few = [*QUICK, "--out", str(tmp_path), "--models", "GPN", "--experiment", "clean"]
    few[few.index("--splits") + 1] = "1"
    assert main(few) == 0
    again = [*QUICK, "--experiment", "all,ablation", "--out", str(tmp_path), "--processes", "2"]
    assert main(again) == 0
    for name in ("results.csv", "results.md", "results.tex"):
        assert (tmp_path / "tables" / name).read_bytes() == (whole / name).read_bytes()


def test_tables_have_every_model_and_experiment(whole):
    text = (whole / "results.md").read_text()
    for model in ("GPN", "GPN-minibatch", "PostNet", "PostNet-Diff", "GPN-LOG-beta"):
        assert f"| {SMALL} | {model} |" in text
    for name in ("clean", "misclassification", "left-out-classes", "isolated", "edge-shift"):
        assert f"## {name}\n" in text
    assert "nan" not in text
    page = (whole.parent / "report.html").read_text()
    # Five models, with and without left-out classes, two splits.
    assert "20 of 20 trainings have results" in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--experiment", "cleen"], "--experiment got 'cleen', expected one of clean"),
        (["--models", "GPT"], "--models got 'GPT', expected some of GPN"),
        (["--models", "GPN[train.epochs=1"], "expected NAME[section.field=value;...]"),
        (["--models", "GPN[train.epoch=1]"], "there is no field 'train.epoch'"),
        (["--fractions", "0,0.5"], "shift fraction got 0.0"),
        (["--fractions", "half"], "--fractions got 'half'"),
        (["--splits", "0"], "got 0 splits"),
        (["--processes", "0"], "--processes got 0"),
        (["--left-out-classes", "3"], "cannot leave out 3 of 4 classes"),
        (["--left-out-classes", "paper"], "the paper has no figure for"),
        (["--paper", "nowhere"], "clean_and_left_out_classes.csv is missing"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, capsys, words, message):
    assert main([*QUICK, "--out", str(tmp_path), *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("error:") == 1
