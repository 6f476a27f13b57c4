import pytest

from gpn_scale.evaluation.metric_labels import metric_label


@pytest.mark.parametrize(
    ("metric", "label"),
    [
        ("accuracy", "accuracy"),
        ("ece", "ECE"),
        ("id_accuracy", "accuracy on known classes"),
        ("auroc_epistemic", "AUC-ROC epistemic"),
        ("aurc_epistemic_no_network", "AURC epistemic, no network"),
        ("aupr_epistemic_local@normal", "AUC-PR epistemic local; normal"),
        (
            "misclassification_aupr_epistemic_no_network",
            "misclassification, AUC-PR epistemic, no network",
        ),
        ("ece_scaled", "ECE scaled"),
        ("conformal_size", "conformal size"),
        ("accuracy@aleatoric_0.10_refused", "accuracy; aleatoric 0.10 refused"),
    ],
)
def test_metrics_have_names_for_people(metric, label):
    assert metric_label(metric) == label
