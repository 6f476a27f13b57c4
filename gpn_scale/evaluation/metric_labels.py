"""Human-readable names of metrics."""

from gpn_scale.evaluation.scores import DETECTION_SCORES, EPISTEMIC_LOCAL, PAGE_SCORES

_NAMES = {
    "accuracy_largest_class": "accuracy of the largest class alone",
    "auroc": "AUC-ROC",
    "aupr": "AUC-PR",
    "aurc": "AURC",
    "brier": "Brier score",
    "ece": "ECE",
    "fpr95": "FPR at 95 % TPR",
    "id_accuracy": "accuracy on known classes",
    "mce": "MCE",
    "nll": "NLL",
}
_SCORE_LABELS = {
    score.name: score.label
    for score in (*PAGE_SCORES.values(), *DETECTION_SCORES.values(), EPISTEMIC_LOCAL)
}
_MISCLASSIFICATION = "misclassification_"


def metric_label(metric: str) -> str:
    """Return the human-readable name of `metric`, which may have a setting after `@`.

    >>> metric_label("auroc_epistemic_no_network@normal")
    'AUC-ROC epistemic, no network; normal'
    """
    name, _, setting = metric.partition("@")
    if name.startswith(_MISCLASSIFICATION):
        return f"misclassification, {metric_label(metric.removeprefix(_MISCLASSIFICATION))}"
    kind, _, rest = name.partition("_")
    if name in _NAMES:
        label = _NAMES[name]
    elif kind in _NAMES:
        label = f"{_NAMES[kind]} {_SCORE_LABELS.get(rest, rest.replace('_', ' '))}"
    else:
        label = name.replace("_", " ")
    return f"{label}; {setting.replace('_', ' ')}" if setting else label
