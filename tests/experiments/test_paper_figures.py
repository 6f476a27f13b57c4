import pytest

from gpn_scale.errors import ConfigError
from gpn_scale.experiments.paper_figures import (
    Figure,
    PaperKey,
    paper_key,
    read_ablation,
    read_paper,
)


def test_minibatches_are_compared_with_the_papers_gpn():
    key = paper_key("G", "GPN-minibatch", "clean", "accuracy")
    assert key == PaperKey("G", "GPN", "clean", "accuracy")
    assert paper_key("G", "VGCN", "clean", "ece") == PaperKey("G", "VGCN", "clean", "ece")


def test_the_ablation_stands_in_where_the_tables_have_no_figure(tmp_path):
    header = "dataset,model"
    for name in ("misclassification", "feature_perturbations"):
        (tmp_path / f"{name}.csv").write_text(f"table,{header}\n")
    (tmp_path / "clean_and_left_out_classes.csv").write_text(f"{header},clean_acc\nCoraML,GPN,81\n")
    assert len(read_paper(tmp_path)) == 1
    (tmp_path / "ablation_coraml_validation.csv").write_text(
        "model,acc,normal_auroc_epist_nonet\nGPN,82,99\nPostNet,52,98\nAPPNP,85,60\n"
    )
    figures = read_paper(tmp_path)
    assert figures[PaperKey("CoraML", "GPN", "clean", "accuracy")].value == 81.0
    assert figures[PaperKey("CoraML", "PostNet", "clean", "accuracy")].value == 52.0
    perturbed = PaperKey("CoraML", "GPN", "isolated", "auroc_epistemic_no_network@normal")
    assert figures[perturbed].value == 99.0
    assert not any(key.model == "APPNP" for key in figures)
    own = read_ablation(tmp_path)
    assert own[PaperKey("CoraML", "GPN", "clean", "accuracy")].value == 82.0


def test_the_papers_tables_are_read_with_the_names_of_our_tables(tmp_path):
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
    figures = read_paper(tmp_path)
    assert figures[PaperKey("G", "GPN", "clean", "accuracy")] == Figure(81.5, 0.1)
    assert figures[PaperKey("G", "GPN", "left-out-classes", "auroc_epistemic")] == Figure(86.3, 0.2)
    assert PaperKey("G", "APPNP", "left-out-classes", "auroc_epistemic") not in figures
    assert figures[PaperKey("G", "GPN", "misclassification", "aupr_aleatoric")].value == 48.0
    key = PaperKey("G", "GPN", "isolated", "aupr_epistemic_no_network@normal")
    assert figures[key] == Figure(100.0, 0.0)
