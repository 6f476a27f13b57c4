"""`RunFacts` -> the page `report.html` and its plots as files."""

import base64
import hashlib
from importlib.resources import files

from gpn_scale import __version__
from gpn_scale.files import write_text
from gpn_scale.page.facts import RunFacts
from gpn_scale.page.markup import escaped, tag
from gpn_scale.page.node_section import nodes
from gpn_scale.page.parts import Section
from gpn_scale.page.record_sections import details, training
from gpn_scale.page.sections import evidence, latent, missing_mass, overview, trust
from gpn_scale.train.run_directory import RunDirectory


def write_page(directory: RunDirectory, facts: RunFacts) -> None:
    """Writes `report.html` and `plots/*.svg` of a run, each atomically."""
    sections = page_sections(facts)
    directory.plots.mkdir(exist_ok=True)
    style = _resource("plot.css")
    for section in sections:
        for plot in section.plots:
            write_text(directory.plots / f"{plot.name}.svg", plot.standalone(style))
    write_text(directory.page, page_text(facts, sections))


def page_sections(facts: RunFacts) -> list[Section]:
    """The sections that there are facts for."""
    sections: list[Section | None] = [overview(facts)]
    if (found := facts.prediction) is not None:
        sections += [evidence(found), trust(found), missing_mass(found), nodes(found)]
        sections.append(latent(found))
    sections += [training(facts), details(facts)]
    return [section for section in sections if section is not None]


def page_text(facts: RunFacts, sections: list[Section]) -> str:
    """The whole page; it asks for nothing outside of itself and runs no script but its own."""
    dataset = facts.config.data.dataset
    script = _resource("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    links = (tag("li", tag("a", escaped(s.heading), href=f"#{s.name}")) for s in sections)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", escaped(f"{dataset}: what the model knows")),
        tag("style", _resource("plot.css"), _resource("page.css")),
    )
    title = tag("h1", "What the model knows of ", tag("bdi", escaped(dataset)))
    mode = f"Graph Posterior Network, {facts.config.mode} mode"
    body = tag(
        "body",
        tag("header", tag("p", escaped(mode), class_="kicker"), title),
        tag("nav", tag("ol", *links), aria_label="sections"),
        tag("main", *(section.markup() for section in sections)),
        tag("footer", tag("p", f"Made by gpn_scale {escaped(__version__)}.")),
        tag("script", script),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _resource(name: str) -> str:
    return (files("gpn_scale.page") / name).read_text(encoding="utf-8")
