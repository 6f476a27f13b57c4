"""What a run's own files tell: training curves, configuration, cost."""

from gpn_scale import __version__
from gpn_scale.page.charts import Line, curves
from gpn_scale.page.components import Section, figure, paragraph, table
from gpn_scale.page.facts import RunFacts
from gpn_scale.page.markup import escaped, figures, tag
from gpn_scale.page.svg import percent_label, plain_label


def training(facts: RunFacts) -> Section:
    """How the weights were found."""
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
            "Share of validation nodes that get their class.",
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
    """Cost, version and every field of the configuration."""
    rows = []
    if (report := facts.report) is not None:
        rows += [[name, f"{figures(seconds)} s"] for name, seconds in report.seconds.items()]
        spent = report.ranks.get("seconds", {})
        rows += [[f"of training: {name}", f"{figures(s)} s"] for name, s in spent.items()]
        rows.append(["processes", str(report.ranks.get("count", 1))])
        rows.append(["peak memory", f"{report.peak_rss_bytes / 2**20:,.0f} MiB"])
        rows.append(["fingerprint of the configuration", report.fingerprint])
    rows.append(["version of gpn_scale", __version__])
    cost = table(["what", "value"], [[escaped(a), escaped(b)] for a, b in rows], "Time and memory")
    flat = []
    for section, content in facts.config.to_dict().items():
        pairs = content.items() if isinstance(content, dict) else [("", content)]
        flat += [(f"{section}.{name}".rstrip("."), value) for name, value in pairs]
    fields = table(
        ["field", "value"], [[escaped(key), escaped(value)] for key, value in flat], "Configuration"
    )
    folded = tag("details", tag("summary", "Configuration"), fields)
    return Section("details", "Cost and configuration", cost + folded)
