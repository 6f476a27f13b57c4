"""Small leaderboards, for tests."""

from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.leaderboard import Leaderboard

CLEAN = {"accuracy": 0.8, "ece": 0.1, "nll": 0.5}


def all_classes(dataset, model, split, *, score="epistemic", **clean):
    """A cell with all classes: numbers of `clean` differ from usual ones, all else is the same."""
    isolated = {f"auroc_{score}@bernoulli": 0.9, f"auroc_{score}@normal": 0.95}
    results = {
        "clean": CLEAN | clean,
        "misclassification": {"auroc_aleatoric": 0.85},
        "isolated": isolated,
        "training": {"cpu_seconds": float(split), "added_mib": 10.0},
    }
    return {Cell(dataset, model, False, split, 1): CellResult("f", results)}


def left_out(dataset, model, split, class_set, value, *, score="epistemic"):
    """A cell with left-out classes."""
    results = {
        "left-out-classes": {f"auroc_{score}": value, f"aupr_{score}": value, "id_accuracy": 0.9},
        "left-out-false-alarms": {f"fpr95_{score}": 1 - value},
    }
    return {Cell(dataset, model, True, split, 1, class_set): CellResult("f", results)}


def small_board():
    """GPN, APPNP and LP on two graphs; APPNP is best at accuracy, LP at left-out classes."""
    cells = {}
    scores = {
        "GPN": ("epistemic", "epistemic_no_network"),
        "APPNP": ("aleatoric",) * 2,
        "LP": ("epistemic",) * 2,
    }
    for dataset in ("A", "B"):
        for place, (model, (unknown, perturbed)) in enumerate(scores.items()):
            for split in (1, 2):
                accuracy = {"GPN": 0.80, "APPNP": 0.84, "LP": 0.70}[model] + split / 100
                cells |= all_classes(dataset, model, split, score=perturbed, accuracy=accuracy)
                for class_set in (0, 1):
                    value = 0.7 + 0.05 * place + 0.01 * split + 0.02 * class_set
                    cells |= left_out(dataset, model, split, class_set, value, score=unknown)
    return Leaderboard(cells)
