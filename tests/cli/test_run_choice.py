"""Which directory a run gets."""

from pathlib import Path

import pytest

from gpn_scale.cli.run_choice import RunChoice, chosen_run
from gpn_scale.distributed import World
from gpn_scale.errors import RunError
from gpn_scale.train.run_directory import RunDirectory

VARIABLES = ("TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_MAX_RESTARTS")


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def choose(out=None, *, resume=False, overwrite=False, dataset="mine"):
    asked = RunChoice(out=out, resume=resume, overwrite=overwrite)
    return chosen_run(asked, dataset, World())


def begin(path, launch=""):
    directory = RunDirectory(Path(path))
    directory.path.mkdir(parents=True, exist_ok=True)
    directory.begin(overwrite=False, launch=launch)
    return directory


def restart(monkeypatch, run_id="job"):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", run_id)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")


@pytest.mark.parametrize(
    ("dataset", "folder"),
    [
        ("mine", "runs/mine"),
        ("synthetic:nodes=100", "runs/synthetic"),
        ("some/folder/mine", "runs/mine"),
        ("..", "runs/%2E."),
    ],
)
def test_the_default_is_named_after_the_dataset(dataset, folder, capsys):
    assert choose(dataset=dataset).out == Path(folder)
    assert Path(folder).is_dir()
    assert capsys.readouterr().err == ""


def test_a_second_run_gets_a_number_and_says_so(capsys):
    begin("runs/mine")
    assert choose().out == Path("runs/mine_2")
    assert (
        capsys.readouterr().err
        == "runs/mine already holds a run; writing this one to runs/mine_2\n"
    )
    assert choose().out == Path("runs/mine_2"), "which holds no run yet"
    begin("runs/mine_2")
    assert choose().out == Path("runs/mine_3")
    Path("runs/mine_4").write_text("a file")
    begin("runs/mine_3")
    assert choose().out == Path("runs/mine_5")


def test_a_folder_with_other_things_is_used():
    Path("runs/mine/store").mkdir(parents=True)
    assert choose().out == Path("runs/mine")


@pytest.mark.parametrize("flag", ["resume", "overwrite"])
def test_resuming_and_overwriting_take_the_last_default(flag):
    assert choose(**{flag: True}).out == Path("runs/mine")
    for name in ("mine", "mine_2", "mine_3"):
        begin(f"runs/{name}")
    chosen = choose(**{flag: True})
    assert chosen.out == Path("runs/mine_3")
    assert (chosen.resume, chosen.overwrite) == (flag == "resume", flag == "overwrite")


def test_a_given_directory_that_holds_a_run_is_refused():
    begin("mine")
    with pytest.raises(RunError, match="mine already holds a run"):
        choose(Path("mine"))
    assert choose(Path("mine"), resume=True).out == Path("mine")
    assert choose(Path("other")).out == Path("other")


@pytest.mark.parametrize("given", [None, Path("runs/mine")])
def test_a_restart_continues_what_the_same_launch_has_begun(monkeypatch, given):
    begin("runs/mine", launch="job")
    restart(monkeypatch)
    chosen = choose(given, overwrite=True)
    assert chosen.out == Path("runs/mine")
    assert (chosen.resume, chosen.overwrite) == (True, False)


def test_a_restart_leaves_runs_of_other_launches_alone(monkeypatch):
    begin("runs/mine", launch="other")
    restart(monkeypatch)
    assert choose().out == Path("runs/mine_2")
    with pytest.raises(RunError, match="already holds a run"):
        choose(Path("runs/mine"))
    begin("runs/mine_2", launch="job")
    assert choose().out == Path("runs/mine_2")
    assert choose().resume


def test_a_folder_that_cannot_be_made_is_refused():
    Path("runs").write_text("a file")
    with pytest.raises(RunError, match=r"runs/mine cannot be created \(Not a directory\)"):
        choose()
