"""The page of a run, `report.html`, and its plots as files."""

from gpn_scale.files import write_text
from gpn_scale.page.components import Section
from gpn_scale.page.document import document, write_plots
from gpn_scale.page.evidence_sections import evidence, missing_mass, reasons
from gpn_scale.page.facts import RunFacts
from gpn_scale.page.known_section import known
from gpn_scale.page.latent_section import latent
from gpn_scale.page.markup import escaped, tag
from gpn_scale.page.node_section import nodes
from gpn_scale.page.overview_section import overview
from gpn_scale.page.training_sections import details, training
from gpn_scale.page.trust_section import trust
from gpn_scale.train.run_directory import RunDirectory


def write_page(directory: RunDirectory, facts: RunFacts) -> None:
    """Write `report.html` and `plots/*.svg` of a run, each atomically."""
    sections = page_sections(facts)
    names = [plot.name for section in sections for plot in section.plots]
    directory.list_written(directory.plots / f"{name}.svg" for name in names)
    write_plots(directory.plots, sections)
    write_text(directory.page, page_text(facts, sections))


def page_sections(facts: RunFacts) -> list[Section]:
    """Return the sections that there are facts for, in the order of the page."""
    sections: list[Section | None] = [overview(facts)]
    if (prediction := facts.prediction) is not None:
        sections += [known(prediction), evidence(prediction), trust(prediction)]
        sections += [reasons(prediction)]
        sections += [missing_mass(prediction), nodes(prediction), latent(prediction)]
    sections += [training(facts), details(facts)]
    return [section for section in sections if section is not None]


def page_text(facts: RunFacts, sections: list[Section]) -> str:
    """Return the whole page as HTML."""
    dataset = facts.config.data.dataset
    return document(
        f"{dataset}: what the model knows",
        f"Graph Posterior Network ({facts.config.model}), {facts.config.mode} mode",
        tag("h1", "What the model knows about ", tag("bdi", escaped(dataset))),
        sections,
    )
