"""`RunFacts` -> the page `report.html` and its plots as files."""

from gpn_scale.files import write_text
from gpn_scale.page.components import Section
from gpn_scale.page.document import document, write_plots
from gpn_scale.page.facts import RunFacts
from gpn_scale.page.markup import escaped, tag
from gpn_scale.page.node_section import nodes
from gpn_scale.page.posterior_sections import kinds
from gpn_scale.page.sections import evidence, latent, missing_mass, overview, trust
from gpn_scale.page.training_sections import details, training
from gpn_scale.train.run_directory import RunDirectory


def write_page(directory: RunDirectory, facts: RunFacts) -> None:
    """Writes `report.html` and `plots/*.svg` of a run, each atomically."""
    sections = page_sections(facts)
    write_plots(directory.plots, sections)
    write_text(directory.page, page_text(facts, sections))


def page_sections(facts: RunFacts) -> list[Section]:
    """The sections that there are facts for."""
    sections: list[Section | None] = [overview(facts)]
    if (found := facts.prediction) is not None:
        sections += [evidence(found), trust(found), kinds(found), missing_mass(found)]
        sections.append(nodes(found))
        sections.append(latent(found))
    sections += [training(facts), details(facts)]
    return [section for section in sections if section is not None]


def page_text(facts: RunFacts, sections: list[Section]) -> str:
    """The whole page."""
    dataset = facts.config.data.dataset
    return document(
        f"{dataset}: what the model knows",
        f"Graph Posterior Network, {facts.config.mode} mode",
        tag("h1", "What the model knows of ", tag("bdi", escaped(dataset))),
        sections,
    )
