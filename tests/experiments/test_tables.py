import csv
import math

import pytest
from gpn_scale.experiments.matrix import Cell, CellResult

from gpn_scale.errors import ConfigError
from gpn_scale.experiments.paper_figures import Figure, PaperKey, read_ablation, read_paper
from gpn_scale.experiments.tables import Entry, cell_text, entries, to_csv, to_latex, to_markdown

PAPER = {PaperKey("G", "GPN", "clean", "accuracy"): Figure(80.0, 0.5)}


def results(*accuracies, model="GPN"):
    return {
        Cell("G", model, False, split, 1): CellResult(
            "f", {"clean": {"accuracy": value, "nll": 2 * value}}
        )
        for split, value in enumerate(accuracies, start=1)
    }


def test_means_errors_and_differences():
    found = {e.metric: e for e in entries(results(0.7, 0.8, 0.9), PAPER)}
    assert found["accuracy"].mean == pytest.approx(80.0)
    assert found["accuracy"].error == pytest.approx(10 / math.sqrt(3))
    assert found["accuracy"].difference == pytest.approx(0.0)
    assert found["nll"].mean == pytest.approx(1.6)  # no share, not in percent
    assert found["nll"].paper is None
    assert found["nll"].runs == 3


def test_the_csv_has_a_line_per_number():
    lines = list(csv.DictReader(to_csv(entries(results(0.7), PAPER)).splitlines()))
    assert [line["metric"] for line in lines] == ["accuracy", "nll"]
    assert (lines[0]["mean"], lines[0]["standard_error"], lines[0]["runs"]) == ("70", "", "1")
    assert (lines[0]["paper"], lines[0]["difference"]) == ("80", "-10")
    assert lines[1]["paper"] == ""


def test_tables_for_people_name_what_is_missing():
    other = {Cell("G", "PostNet", False, 1, 1): CellResult("f", {"clean": {"accuracy": 0.5}})}
    table = entries(results(0.7, 0.9) | other, PAPER)
    markdown = to_markdown(table)
    assert "| graph | model | accuracy | nll |" in markdown
    assert "| G | GPN | 80.0 ± 10.0 (paper 80.0, +0.0) | 1.6 ± 0.2 |" in markdown
    assert "| G | PostNet | 50.0 | n.a. |" in markdown
    latex = to_latex(table)
    assert r"G & GPN & $80.0 \pm 10.0$ (paper $80.0$, $+0.0$) & $1.6 \pm 0.2$ \\" in latex
    assert latex.count(r"\begin{tabular}{llrr}") == latex.count(r"\end{tabular}") == 1


def test_what_is_no_share_has_digits_instead_of_decimals():
    values = {"accuracy": (4.0, 0.04), "nll": (1.2345, 0.00567), "conformal_size": (1234.5, 6.78)}
    found = {
        name: cell_text(Entry("G", "GPN", "clean", name, mean, error, 3))
        for name, (mean, error) in values.items()
    }
    assert found["accuracy"] == "4.0 ± 0.0"
    assert found["nll"] == "1.23 ± 0.0057"
    assert found["conformal_size"] == "1.23e+03 ± 6.8"


def test_experiments_stand_in_their_order_whichever_was_run_first():
    cell = Cell("G", "GPN", False, 1, 1)
    turned = CellResult("f", {"isolated": {"a": 1.0}, "clean": {"b": 1.0}})
    assert [e.experiment for e in entries({cell: turned})] == ["clean", "isolated"]


def test_minibatches_are_compared_with_the_papers_gpn():
    (accuracy, _) = entries(results(0.7, model="GPN-minibatch"), PAPER)
    assert accuracy.difference == pytest.approx(-10.0)
    assert all(e.paper is None for e in entries(results(0.7, model="GPN[a.b=1]"), PAPER))


def test_the_ablation_stands_in_where_the_tables_have_no_figure(tmp_path):
    header = "dataset,model"
    for name in ("misclassification", "feature_perturbations"):
        (tmp_path / f"{name}.csv").write_text(f"table,{header}\n")
    (tmp_path / "clean_and_left_out_classes.csv").write_text(f"{header},clean_acc\nCoraML,GPN,81\n")
    assert len(read_paper(tmp_path)) == 1
    (tmp_path / "ablation_coraml_validation.csv").write_text(
        "model,acc,normal_auroc_epist_nonet\nGPN,82,99\nPostNet,52,98\nAPPNP,85,60\n"
    )
    found = read_paper(tmp_path)
    assert found[PaperKey("CoraML", "GPN", "clean", "accuracy")].value == 81.0
    assert found[PaperKey("CoraML", "PostNet", "clean", "accuracy")].value == 52.0
    perturbed = PaperKey("CoraML", "GPN", "isolated", "auroc_epistemic_no_network@normal")
    assert found[perturbed].value == 99.0
    assert not any(key.model == "APPNP" for key in found)
    own = read_ablation(tmp_path)
    assert own[PaperKey("CoraML", "GPN", "clean", "accuracy")].value == 82.0


def test_the_papers_tables_are_read_in_our_words(tmp_path):
    with pytest.raises(ConfigError, match=r"clean_and_left_out_classes\.csv is missing"):
        read_paper(tmp_path)
    (tmp_path / "clean_and_left_out_classes.csv").write_text(
        "dataset,model,clean_acc,clean_acc_se,loc_auroc_epist,loc_auroc_epist_se\n"
        "G,GPN,81.5,0.1,86.3,0.2\nG,APPNP,85.0,0.1,n.a.,\n"
    )
    (tmp_path / "misclassification.csv").write_text("dataset,model,aupr_alea\nG,GPN,48.0\n")
    (tmp_path / "feature_perturbations.csv").write_text(
        "table,dataset,model,norm_acc,norm_epist_nonet,norm_epist_nonet_se\naupr,G,GPN,80,100.0,0\n"
        "aupr,G,GPN,80,25.0,0\n"
    )
    found = read_paper(tmp_path)
    assert found[PaperKey("G", "GPN", "clean", "accuracy")] == Figure(81.5, 0.1)
    assert found[PaperKey("G", "GPN", "left-out-classes", "auroc_epistemic")] == Figure(86.3, 0.2)
    assert PaperKey("G", "APPNP", "left-out-classes", "auroc_epistemic") not in found
    assert found[PaperKey("G", "GPN", "misclassification", "aupr_aleatoric")].value == 48.0
    key = PaperKey("G", "GPN", "isolated", "aupr_epistemic_no_network@normal")
    assert found[key] == Figure(100.0, 0.0)
