"""New nodes from the command line: predictions with the user's ids and class names."""

import csv
import re

import numpy as np
import pyarrow as pa
import pytest

from gpn_scale.cli.import_graph import main as import_graph
from gpn_scale.cli.predict import main
from gpn_scale.cli.train import main as train
from gpn_scale.data.datasets import load_graph
from gpn_scale.estimator import GPNClassifier
from tests.data.tables import write_csv

COUNT = 120


def accounts(rng):
    kind = np.arange(COUNT) % 2
    return {
        "no": [f"A{i:03}" for i in range(COUNT)],
        "verdict": [("legit", "fraud")[k] if i < 100 else None for i, k in enumerate(kind)],
        "country": [("DE", "FR")[k] for k in kind],
        "balance": (kind * 4 + rng.normal(size=COUNT)).round(3),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with an imported graph and a run that was trained on it."""
    folder, rng = tmp_path_factory.mktemp("bank"), np.random.default_rng(1)
    nodes = accounts(rng)
    ends = rng.integers(0, COUNT // 2, (2, 300)) * 2 + rng.integers(0, 2, 300)
    edges = {"from": [nodes["no"][i] for i in ends[0]], "to": [nodes["no"][i] for i in ends[1]]}
    tables = ["--nodes", str(write_csv(folder / "accounts.csv", nodes))]
    tables += ["--edges", str(write_csv(folder / "payments.csv", edges))]
    columns = ["--id", "no", "--label", "verdict", "--source", "from", "--target", "to"]
    assert import_graph([*tables, *columns, "--out", str(folder / "graphs" / "bank")]) == 0
    options = ["--dataset", "bank", "--data-dir", str(folder / "graphs"), "--epochs", "60"]
    assert train([*options, "--out", str(folder / "run")]) == 0
    return folder


NEW = {"balance": [0.1, 4.2], "country": ["DE", "FR"], "no": ["N1", "N2"]}
LINKS = {"from": ["N1", "A002", "N2"], "to": ["A000", "N1", "A001"]}


def predict(folder, tmp_path, nodes=NEW, edges=LINKS, *more):
    options = ["--run", str(folder / "run"), "--out", str(tmp_path / "x.csv")]
    options += ["--new-nodes", str(write_csv(tmp_path / "new.csv", nodes))]
    if edges is not None:
        options += ["--new-edges", str(write_csv(tmp_path / "links.csv", edges))]
    return main([*options, *more])


def rows(tmp_path):
    with (tmp_path / "x.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_new_nodes_have_their_ids_and_the_names_of_classes(folder, tmp_path, capsys):
    assert predict(folder, tmp_path) == 0
    table = rows(tmp_path)
    assert [(row["node_name"], row["predicted_class_name"]) for row in table] == [
        ("N1", "legit"), ("N2", "fraud"),
    ]  # fmt: skip
    assert all(float(row["alpha_0_lower"]) <= float(row["alpha_0"]) * (1 + 1e-5) for row in table)
    assert "p_known" in table[0]
    printed = capsys.readouterr().out
    assert "no rate of false alarms is promised" in printed
    assert f"written: {tmp_path / 'x.csv'}" in printed


def test_the_prediction_is_that_of_the_classifier(folder, tmp_path):
    assert predict(folder, tmp_path) == 0
    graph = load_graph("bank", folder / "graphs")
    classifier = GPNClassifier.load(folder / "run" / "model.safetensors")
    features = graph.preparation.apply(pa.table(NEW)).features
    result = classifier.predict_new(graph, features, [[0, 2], [1]])
    given = [float(row["alpha_0"]) for row in rows(tmp_path)]
    assert given == pytest.approx(result.prediction.alpha_0.tolist(), rel=1e-4)


def test_new_nodes_may_have_no_edges(folder, tmp_path):
    assert predict(folder, tmp_path, NEW, None) == 0
    assert len(rows(tmp_path)) == 2


def test_given_columns_count_before_remembered_ones(folder, tmp_path):
    nodes = {"key": NEW["no"], "balance": NEW["balance"], "country": NEW["country"]}
    edges = {"u": LINKS["from"], "v": LINKS["to"]}
    columns = ["--id", "key", "--source", "u", "--target", "v"]
    assert predict(folder, tmp_path, nodes, edges, *columns) == 0
    assert [row["node_name"] for row in rows(tmp_path)] == ["N1", "N2"]


def test_surprises_are_noted(folder, tmp_path, capsys):
    assert predict(folder, tmp_path, NEW | {"country": ["DE", "US"]}) == 0
    assert re.search(r"note: 1 value of 'country' is not among those", capsys.readouterr().out)


def test_all_faults_are_listed_and_nothing_is_written(folder, tmp_path, capsys):
    nodes = {"no": ["N1", "A000"], "balance": ["1", "2"]}
    assert predict(folder, tmp_path, nodes, LINKS | {"to": ["A000", "N1", "nobody"]}) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("error: 4 faults in the tables:\n")
    for part in ("'A000'", "'N2'", "'nobody'", "country"):
        assert part in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--new-edges", "e.csv"], "--new-edges only applies to new nodes: add --new-nodes"),
        (["--id", "no"], "--id only applies to new nodes: add --new-nodes FILE"),
        (["--new-nodes", "n.csv", "--nodes", "n.txt"], "--new-nodes adds others: use only one"),
    ],
)
def test_options_that_do_not_go_together_are_refused(folder, tmp_path, capsys, options, message):
    out = str(tmp_path / "x.csv")
    assert main(["--run", str(folder / "run"), "--out", out, *options]) == 2
    assert message in capsys.readouterr().err


def next_month(folder, tmp_path, change):
    """Import changed tables like those of this month, and predict them."""
    with (folder / "accounts.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    columns = change({name: [row[name] for row in table] for name in table[0]})
    words = ["--nodes", str(write_csv(tmp_path / "later.csv", columns))]
    words += ["--edges", str(folder / "payments.csv"), "--like", str(folder / "graphs" / "bank")]
    assert import_graph([*words, "--out", str(tmp_path / "later")]) == 0
    words = ["--run", str(folder / "run"), "--dataset", "later", "--data-dir", str(tmp_path)]
    return main([*words, "--out", str(tmp_path / "x.csv")])


def test_next_month_has_the_same_names_and_columns(folder, tmp_path, capsys):
    def change(columns):
        columns["verdict"] = [text.replace("fraud", "scam") for text in columns["verdict"]]
        columns["country"][0] = "US"
        return dict(reversed(columns.items()))

    assert next_month(folder, tmp_path, change) == 0
    printed = capsys.readouterr().out
    assert "The model does not know the class 'scam'" in printed
    assert "1 value of 'country' is not among those of training (first: 'US')" in printed
    later = {row["node_name"]: row["predicted_class_name"] for row in rows(tmp_path)}
    assert (
        main(["--run", str(folder / "run"), "--out", str(tmp_path / "x.csv"), "--overwrite"]) == 0
    )
    before = {row["node_name"]: row["predicted_class_name"] for row in rows(tmp_path)}
    assert set(later.values()) == {"legit", "fraud"}
    assert sum(later[name] == before[name] for name in before) >= COUNT - 5


def test_a_column_that_next_month_lacks_is_named(folder, tmp_path, capsys):
    def change(columns):
        return {name: columns[name] for name in columns if name != "balance"}

    assert next_month(folder, tmp_path, change) == 2
    errors = capsys.readouterr().err
    assert re.search(r"balance .*add the column, or train again without it", errors)
    assert "Traceback" not in errors
