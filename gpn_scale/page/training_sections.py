"""Sections from a run's own files: training curves, cost, configuration."""

from gpn_scale import __version__
from gpn_scale.evaluation.report import Report
from gpn_scale.page.charts import Line, curves
from gpn_scale.page.components import Section, figure, paragraph, table
from gpn_scale.page.facts import RunFacts
from gpn_scale.page.markup import escaped, figures, tag
from gpn_scale.page.svg import percent_label, plain_label


def training(facts: RunFacts) -> Section:
    """Return loss, validation cross-entropy and validation accuracy over the epochs."""
    curve = facts.training
    if len(curve.epoch) == 0:
        return Section("training", "Training", paragraph("No epoch is recorded yet."))
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
    plots, shown = [], []
    for name, title, values, caption in kinds:
        plot = curves(
            f"training-{name}",
            title,
            [Line(curve.epoch, values)],
            "epoch",
            name,
            y_label=percent_label if name == "accuracy" else plain_label,
            include=(0.0, 1.0) if name == "accuracy" else (),
            marked=marked,
        )
        plots.append(plot)
        shown.append(figure(plot, caption))
    return Section(
        "training", "Training", tag("div", *shown, class_="columns thirds"), tuple(plots)
    )


def details(facts: RunFacts) -> Section:
    """Return the cost of the run, the version, and every field of the configuration."""
    rows = [] if facts.report is None else _cost_rows(facts.report)
    rows.append(["version of gpn_scale", __version__])
    cost = table(["quantity", "value"], [[escaped(a), escaped(b)] for a, b in rows], "Cost")
    fields = []
    for section, content in facts.config.to_dict().items():
        pairs = content.items() if isinstance(content, dict) else [("", content)]
        fields += [(f"{section}.{name}".rstrip("."), value) for name, value in pairs]
    configuration = table(
        ["field", "value"],
        [[escaped(name), escaped(value)] for name, value in fields],
        "Configuration",
    )
    folded = tag("details", tag("summary", "Configuration"), configuration)
    return Section("details", "Cost and configuration", cost + folded)


def _cost_rows(report: Report) -> list[list[str]]:
    rows = [[name, f"{figures(seconds)} s"] for name, seconds in report.seconds.items()]
    steps = report.ranks.get("seconds", {})
    rows += [[f"train: {name}", f"{figures(seconds)} s"] for name, seconds in steps.items()]
    rows.append(["processes", str(report.ranks.get("count", 1))])
    rows.append(["peak memory", f"{report.peak_rss_bytes / 2**20:,.0f} MiB"])
    rows.append(["fingerprint of the configuration", report.fingerprint])
    return rows
