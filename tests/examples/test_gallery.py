"""The gallery: its form, some of its scripts with tiny settings, and its runner.

`make gallery` runs all scripts in their own size.
"""

import re
import runpy
import xml.etree.ElementTree as ElementTree

import numba
import pytest

from tests.examples import EXAMPLES, example

SCRIPTS = sorted((EXAMPLES / "gallery").glob("*.py"))
RUN_HERE = ("01", "02", "05", "08")
"""Numbers of the scripts that run in this file: between them they use most of the library."""


def number_of(script):
    return script.name[:2]


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder to run scripts in, with tiny settings."""
    monkeypatch.setenv("GALLERY_SMALL", "1")
    monkeypatch.chdir(tmp_path)
    threads = numba.get_num_threads()
    yield tmp_path
    numba.set_num_threads(threads)


def cells(script):
    """Kind and text of the cells of a script in the percent format."""
    parts = re.split(r"^# %%(.*)$", script.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert parts[0] == ""
    return [
        (kind.strip(), text.strip()) for kind, text in zip(parts[1::2], parts[2::2], strict=True)
    ]


def test_there_are_scripts_with_different_numbers():
    assert len(SCRIPTS) >= 7
    assert [number_of(script) for script in SCRIPTS] == [
        f"{place:02}" for place in range(1, len(SCRIPTS) + 1)
    ]


@pytest.mark.parametrize("script", SCRIPTS, ids=number_of)
def test_a_script_begins_with_its_question_and_ends_with_a_picture_and_how_to_read_it(script):
    first, *_, picture, last = cells(script)
    assert first[0] == last[0] == "[markdown]"
    assert first[1].startswith("# # ")
    assert picture[0] == ""
    assert picture[1].endswith(f'chart.write("build/gallery/{script.stem}.svg")\nchart')
    assert last[1].startswith("# **How to read it.** ")
    assert 'SMALL = "GALLERY_SMALL" in os.environ' in script.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "script", [each for each in SCRIPTS if number_of(each) in RUN_HERE], ids=number_of
)
def test_a_script_runs_and_draws_its_picture(script, small):
    runpy.run_path(str(script))
    picture = small / "build" / "gallery" / f"{script.stem}.svg"
    drawing = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    assert drawing.tag.endswith("svg")
    assert sum(part.tag.endswith("path") for part in drawing.iter()) > 5


@pytest.fixture
def runner():
    pytest.importorskip("jupytext")
    pytest.importorskip("nbclient")
    return example("run_gallery")


def test_the_runner_writes_a_notebook_with_its_output(runner, tmp_path, monkeypatch, capsys):
    script = tmp_path / "scripts" / "01_sum.py"
    script.parent.mkdir()
    script.write_text("# %% [markdown]\n# # A sum\n\n# %%\nprint(20 + 22)\n", encoding="utf-8")
    monkeypatch.setattr(runner, "SCRIPTS", script.parent)
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    assert runner.main(["--root", str(tmp_path)]) == 0
    assert re.search(r"^01_sum.py: \d+ s$", capsys.readouterr().out, re.MULTILINE)
    notebook = tmp_path / "build" / "gallery" / "01_sum.ipynb"
    text, code = runner.nbformat.read(notebook, 4).cells
    assert text.source == "# A sum"
    assert code.outputs[0].text == "42\n"
    script.write_text("# %%\nraise ValueError('wrong')\n", encoding="utf-8")
    assert runner.main(["--root", str(tmp_path)]) == 1
    assert re.search(r"ValueError\S*: wrong", capsys.readouterr().err)


def test_the_runner_refuses_numbers_that_no_script_has(runner, tmp_path):
    assert runner.main(["--only", "99", "--root", str(tmp_path)]) == 1
