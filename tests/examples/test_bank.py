"""The trial of docs/own_data.md: two raw tables, three commands, and next month's tables."""

import csv
import doctest
import json
import shlex

import pytest

from gpn_scale.cli.import_graph import main as import_graph
from gpn_scale.cli.predict import main as predict
from gpn_scale.cli.train import main as train
from gpn_scale.cli.triage import main as triage
from tests.examples import EXAMPLES, example

COMMANDS = {
    "gpn-import": import_graph,
    "gpn-train": train,
    "gpn-predict": predict,
    "gpn-triage": triage,
}
PAGE = EXAMPLES.parent / "docs" / "own_data.md"
ACCOUNTS = 3000


def commands_of_the_page():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [shlex.split(line) for line in lines if line.startswith("gpn-") and "debian" not in line]


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """The folder of the trial, after all commands of the page."""
    folder = tmp_path_factory.mktemp("bank")
    example("bank").write_bank(folder, ACCOUNTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, *arguments in commands_of_the_page():
            more = ["--epochs", "60", "--threads", "1"] if name == "gpn-train" else []
            assert COMMANDS[name]([*arguments, *more]) == 0, arguments
    return folder


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_page_has_the_three_commands_and_those_of_next_month():
    names = [name for name, *_ in commands_of_the_page()]
    assert names == ["gpn-import", "gpn-train", "gpn-triage", "gpn-import", "gpn-predict"]


def test_unknown_ids_are_refused_with_a_table_of_all_faults(tmp_path, monkeypatch, capsys):
    example("bank").write_bank(tmp_path, 200)
    monkeypatch.chdir(tmp_path)
    options = next(arguments for name, *arguments in commands_of_the_page())
    options = [each for each in options if each not in ("--unknown-ids", "drop")]
    assert import_graph(options) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert "payments_october.csv" in error
    assert "'OTHER-" in error
    assert "--unknown-ids refuse|add|drop" in error
    assert not (tmp_path / "graphs").exists()


def test_few_labels_are_named_and_figures_have_intervals(bank):
    report = json.loads((bank / "run" / "report.json").read_text())
    low, high = report["intervals"]["test"]["accuracy"]
    assert low < report["metrics"]["test"]["accuracy"] < high
    assert high - low > 0.2
    assert "'merchant' has 12 labelled nodes" in report["warnings"][0]


def test_next_month_has_the_model_s_names_and_the_right_columns(bank):
    truth = {row["account_no"]: row["kind"] for row in rows_of(bank / "truth.csv")}
    predicted = {
        row["node_name"]: row["predicted_class_name"] for row in rows_of(bank / "november.csv")
    }
    assert predicted.keys() == truth.keys()
    assert set(predicted.values()) == {"private", "merchant", "fraud"}
    known = [account for account, kind in truth.items() if kind != "ring"]
    right = sum(predicted[account] == truth[account] for account in known)
    assert right > 0.8 * len(known)


def test_what_is_new_next_month_is_counted(bank, monkeypatch, capsys):
    monkeypatch.chdir(bank)
    (*_, (_, *arguments)) = commands_of_the_page()
    assert predict([*arguments, "--overwrite"]) == 0
    output = capsys.readouterr().out
    countries = sum(row["country"] == "XK" for row in rows_of(bank / "accounts_november.csv"))
    assert f"{countries} values of 'country' are not among those of training" in output
    renamed = sum(row["verdict"] == "shop" for row in rows_of(bank / "accounts_november.csv"))
    assert f"not know the class 'shop'; the labels of {renamed} nodes were ignored" in output


def test_the_lists_name_accounts_and_reasons(bank):
    review, label_next = (
        rows_of(bank / "lists" / name) for name in ("review.csv", "label_next.csv")
    )
    accounts = {row["account_no"] for row in rows_of(bank / "accounts_october.csv")}
    assert (len(review), len(label_next)) == (100, 50)
    assert all(row["id"] in accounts and row["reason"] for row in [*review, *label_next])


def test_the_python_of_the_page_gives_what_it_says():
    results = doctest.testfile(str(PAGE), module_relative=False)
    assert results.attempted > 10
    assert results.failed == 0
