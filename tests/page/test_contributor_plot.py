from dataclasses import replace

from gpn_scale.page.contributor_plot import contributor_plot
from tests.page.drawings import parsed
from tests.page.samples import contributor_facts, explained_node


def test_lines_are_as_wide_as_shares():
    root = parsed(contributor_plot("n", explained_node()))
    edge = next(p for p in root.iter() if p.get("class") == "edge")
    ring = next(p for p in root.iter() if p.get("class") == "ring")
    assert float(edge.get("stroke-width")) == 2 * float(ring.get("stroke-width"))
    parsed(contributor_plot("n", replace(explained_node(), contributors=())))


def test_contributors_without_an_edge_are_dashed():
    near = contributor_facts("1", share=0.5)
    far = replace(contributor_facts("2", share=0.25), adjacent=False)
    root = parsed(contributor_plot("n", replace(explained_node(), contributors=(near, far))))
    kinds = [p.get("class") for p in root.iter() if (p.get("class") or "").startswith("edge")]
    assert kinds == ["edge", "edge far"]


def test_the_description_names_every_contributor():
    plot = contributor_plot("n", explained_node(name="7", contributor="8"))
    assert "node 8 50 %, itself 25 %" in plot.description
    nothing = contributor_plot("n", replace(explained_node(), contributors=()))
    assert nothing.description.endswith("no node")
