"""The page of a run, `report.html`, and its charts as files."""

from collections.abc import Sequence

from gpn_scale.files import write_text
from gpn_scale.page.chart import library_script
from gpn_scale.page.class_section import classes
from gpn_scale.page.document import document, write_charts
from gpn_scale.page.evidence_sections import evidence, missing_mass, reasons
from gpn_scale.page.facts import RunFacts
from gpn_scale.page.known_section import known
from gpn_scale.page.node_data import json_text, node_data, view_data
from gpn_scale.page.node_section import nodes
from gpn_scale.page.overview_section import overview
from gpn_scale.page.section import Section
from gpn_scale.page.templates import resource
from gpn_scale.page.training_sections import details, training
from gpn_scale.page.trust_section import trust
from gpn_scale.train.run_directory import RunDirectory

_SCRIPTS = ("node_table.js", "node_card.js", "node_views.js")


def write_page(directory: RunDirectory, facts: RunFacts, *, png: bool = False) -> None:
    """Write `report.html` and `plots/*.svg` of a run, each atomically; PNG files if asked to."""
    sections = page_sections(facts)
    suffixes = (".svg", ".png") if png else (".svg",)
    names = [chart.name for section in sections for chart in section.charts]
    directory.list_written(directory.plots / f"{name}{end}" for name in names for end in suffixes)
    write_charts(directory.plots, sections, png=png)
    write_text(directory.page, page_text(facts, sections))


def page_sections(facts: RunFacts) -> list[Section]:
    """Return the sections that there are facts for, in the order of the page."""
    sections: list[Section | None] = [overview(facts)]
    if (prediction := facts.prediction) is not None:
        sections += [nodes(prediction), known(prediction), evidence(prediction)]
        sections += [trust(prediction), classes(prediction), reasons(prediction)]
        sections += [missing_mass(prediction)]
    sections += [training(facts), details(facts)]
    return [section for section in sections if section is not None]


def page_text(facts: RunFacts, sections: Sequence[Section]) -> str:
    """Return the whole page as HTML."""
    dataset, data, scripts = facts.config.data.dataset, {}, []
    if (prediction := facts.prediction) is not None:
        rows, names = prediction.nodes, prediction.class_names
        data["node-data"] = json_text(node_data(rows, names))
        data["view-data"] = json_text(view_data(rows, len(names)))
        scripts = [library_script(), *(resource(name) for name in _SCRIPTS)]
    return document(
        f"{dataset}: what the model knows",
        f"Graph Posterior Network ({facts.config.model}), {facts.config.mode} mode",
        sections,
        heading="What the model knows about ",
        subject=dataset,
        scripts=scripts,
        data=data,
    )
