"""Sections from a run's own files: training curves, cost, configuration."""

from markupsafe import Markup

from gpn_scale import __version__
from gpn_scale.evaluation.report import Report
from gpn_scale.page.curve_chart import CurveAxes, Line, curve_chart
from gpn_scale.page.facts import RunFacts
from gpn_scale.page.section import Figure, Section, section
from gpn_scale.page.texts import figures

_HEADING = "How did training go?"


def training(facts: RunFacts) -> Section:
    """Return loss, validation cross-entropy and validation accuracy over the epochs."""
    curve = facts.training
    if len(curve.epoch) == 0:
        return Section("training", _HEADING, Markup("<p>No epoch is recorded yet.</p>"))
    marked = None
    if curve.best_epoch:
        marked = (float(curve.best_epoch), f"best: epoch {curve.best_epoch:,}")
    kinds = [
        ("loss", "Loss", curve.loss, "Sum over the training nodes."),
        (
            "cross-entropy",
            "Validation cross-entropy",
            curve.val_cross_entropy,
            "Decides which epoch's weights are kept.",
        ),
        (
            "accuracy",
            "Validation accuracy",
            curve.val_accuracy,
            "Fraction of validation nodes that are classified correctly.",
        ),
    ]
    captioned = []
    for name, title, values, caption in kinds:
        is_percent = name == "accuracy"
        axes = CurveAxes(
            x_title="epoch",
            y_title=name,
            is_percent=is_percent,
            y_range=(0.0, 1.0) if is_percent else None,
        )
        lines = [Line(curve.epoch, values)]
        chart = curve_chart(f"training-{name}", title, lines, axes, marked=marked)
        captioned.append(Figure(chart, caption))
    return section(
        "training",
        _HEADING,
        "figures.html",
        figures=tuple(captioned),
        text="",
        notes=(),
        kind="thirds",
    )


def details(facts: RunFacts) -> Section:
    """Return the cost of the run, the version, and every field of the configuration."""
    rows = [] if facts.report is None else _cost_rows(facts.report)
    rows.append(["version of gpn_scale", __version__])
    fields = []
    for name, content in facts.config.to_dict().items():
        pairs = content.items() if isinstance(content, dict) else [("", content)]
        fields += [(f"{name}.{field}".rstrip("."), str(value)) for field, value in pairs]
    heading = "What did it cost, and how was it configured?"
    return section("details", heading, "details.html", cost=rows, fields=fields)


def _cost_rows(report: Report) -> list[list[str]]:
    rows = [[name, f"{figures(seconds)} s"] for name, seconds in report.seconds.items()]
    steps = report.ranks.get("seconds", {})
    rows += [[f"train: {name}", f"{figures(seconds)} s"] for name, seconds in steps.items()]
    rows.append(["processes", str(report.ranks.get("count", 1))])
    rows.append(["peak memory", f"{report.peak_rss_bytes / 2**20:,.0f} MiB"])
    rows.append(["fingerprint of the configuration", report.fingerprint])
    return rows
