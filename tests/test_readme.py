"""Every command of the README runs here, or is listed with the reason why it does not."""

import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import precompute.cli
from gpn_scale.cli.import_graph import main as import_graph
from gpn_scale.cli.predict import main as predict
from gpn_scale.cli.train import main as train
from gpn_scale.cli.triage import main as triage
from gpn_scale.data.npz import write_npz
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph

REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
RUN = {
    "gpn-import": (import_graph, []),
    "gpn-train": (train, ["--epochs", "3", "--threads", "1"]),
    "gpn-triage": (triage, []),
    "gpn-precompute": (precompute.cli.main, ["--threads", "1"]),
    "gpn-predict": (predict, []),
}
"""Commands that are run in this process, and arguments that make them short."""
NOT_RUN = {
    "pip install gpn-scale": "it needs a package index; the wheel has a test of its own",
    "make demo": "it installs into a new environment; its steps are commands with their own tests",
    "make test": "it runs this test",
}
"""Commands that are not run, and why."""
ACCOUNTS = 300
MOST_LINES = 120


def blocks():
    """The language and the text of every block of code."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands():
    """The lines of all shell blocks, without comments."""
    lines = [line for language, text in blocks() if language == "sh" for line in text.splitlines()]
    return [line.partition(" #")[0].strip() for line in lines if line.strip()]


def test_the_readme_is_short():
    assert len(README.splitlines()) <= MOST_LINES


def test_every_block_is_run_or_listed():
    assert {language for language, _ in blocks()} == {"sh", "python"}
    for language, text in blocks():
        if language == "python":  # which doctest runs
            assert text.startswith(">>> ")
    unknown = [line for line in commands() if line not in NOT_RUN and line.split()[0] not in RUN]
    assert not unknown, "run these commands here, or list them with a reason"
    assert set(commands()) >= NOT_RUN.keys()


def write_bank(folder):
    """Two tables like those of the README's bank: half of the accounts have a verdict."""
    rng = np.random.default_rng(1)
    bad = rng.random(ACCOUNTS) < 0.4
    volume = rng.normal(100 + 80 * bad, 20)
    verdict = np.where(np.arange(ACCOUNTS) % 2, np.where(bad, "fraud", "fine"), "")
    accounts = [f"a{i},{volume[i]:.1f},{verdict[i]}" for i in range(ACCOUNTS)]
    same = [rng.choice(np.flatnonzero(bad == bad[i]), 4) for i in range(ACCOUNTS)]
    payments = [f"a{i},a{j}" for i in range(ACCOUNTS) for j in same[i] if i != j]
    (folder / "accounts.csv").write_text("account_no,volume,verdict\n" + "\n".join(accounts))
    (folder / "payments.csv").write_text("payer,payee\n" + "\n".join(payments))


def test_the_commands_run_as_they_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_bank(tmp_path)
    (tmp_path / "data").mkdir()
    small = SyntheticConfig(nodes=200, classes=3, features=6, unseen_classes=0)
    graph = synthetic_graph(small)
    counts = np.abs(graph.features)  # the recipe of CoraML expects a bag of words
    write_npz(replace(graph, features=counts), tmp_path / "data" / "CoraML.npz")
    (tmp_path / "nodes.txt").write_text("3\n5\n")
    for line in commands():
        if line not in NOT_RUN:
            name, *arguments = shlex.split(line)
            main, more = RUN[name]
            assert main([*arguments, *more]) == 0, line
    assert (tmp_path / "lists" / "review.csv").read_text().count("\n") == 101
    assert (tmp_path / "lists" / "label_next.csv").read_text().count("\n") == 51
    assert (tmp_path / "some.parquet").exists()


@pytest.mark.parametrize("target", re.findall(r"`make (\w+)`|^make (\w+)", README, re.MULTILINE))
def test_targets_of_make_exist(target):
    command = ["make", "--dry-run", *filter(None, target)]
    subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL)


def test_commands_in_the_text_exist():
    scripts = (REPOSITORY / "pyproject.toml").read_text()
    for name in set(re.findall(r"\bgpn-[a-z]+", README)) - {"gpn-scale"}:
        assert f"\n{name} = " in scripts
