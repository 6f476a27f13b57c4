"""The page as a whole: what it shows, what it leaves out, and that data cannot add markup to it."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

from gpn_scale.page.run_page import page_sections, page_text, write_page
from gpn_scale.train.run_directory import RunDirectory
from tests.page.outline import Outline, headings
from tests.page.samples import run_facts

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\x00\u202e"


def text_of(facts):
    return page_text(facts, page_sections(facts))


def without_scripts(text):
    return re.sub("<script.*?</script>", "", text, flags=re.DOTALL)


def test_sections_come_in_order():
    text = text_of(run_facts())
    wanted = ["overview", "nodes", "known", "evidence", "trust", "classes", "kinds", "missing-mass"]
    assert headings(text) == [*wanted, "training", "details"]
    for part in ("Accuracy", "AUC-ROC", "exchangeable", "Accuracy and rejection", "fitted: 1.50"):
        assert part in text
    assert "t-SNE" in text


def test_what_there_is_no_fact_for_is_left_out():
    facts = run_facts()
    plain = replace(facts.prediction, detection=None, unknown_nodes=0, missing_mass=None)
    plain = replace(plain, detection_intervals={})
    plain = replace(plain, conformal=None, errors=(), unknown=(), temperature=None)
    plain = replace(plain, nodes=replace(plain.nodes, near=None))
    text = without_scripts(text_of(replace(facts, prediction=plain)))
    assert "missing-mass" not in headings(text)
    for part in ("AUC-ROC", "conformal", "Temperature", "t-SNE"):
        assert part not in text


def test_an_unfinished_run_has_a_page_without_a_prediction():
    facts = replace(run_facts(), report=None, prediction=None, missing=("There is no model.",))
    text = text_of(facts)
    assert headings(text) == ["overview", "training", "details"]
    assert "vegaEmbed" not in text  # nothing is selected, so that Vega is not needed


def test_a_page_asks_for_nothing_outside_and_its_tags_match():
    text = text_of(run_facts())
    outline = Outline(text)
    assert len(outline.ids) == len(set(outline.ids))
    assert all(each.startswith("#") for each in outline.references)
    assert not outline.handlers
    assert {"link", "img", "iframe", "object", "embed"}.isdisjoint(outline.tags)
    without = without_scripts(text).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?://|@import|url\((?!#)", without)
    labelled = re.findall('aria-labelledby="(.*?)"', text)
    assert {each for ids in labelled for each in ids.split()} <= set(outline.ids)


def test_names_from_the_data_cannot_write_on_the_page(tmp_path):
    facts = run_facts(dataset=HOSTILE, class_name=HOSTILE, node_name=HOSTILE, mark=HOSTILE)
    outline = Outline(text_of(facts))
    assert outline.tags.count("script") == Outline(text_of(run_facts())).tags.count("script")
    assert "img" not in outline.tags
    assert not outline.handlers
    shown = re.findall(r"<option[^>]*>([^<]*)|<(?:title|desc)[^>]*>([^<]*)", text_of(facts))
    assert any("[U+202E]" in text for texts in shown for text in texts)
    assert not any("\u202e" in text for texts in shown for text in texts)
    write_page(RunDirectory(tmp_path), facts)
    for plot in (tmp_path / "plots").iterdir():
        for part in ElementTree.parse(plot).iter():
            assert part.tag.rpartition("}")[2] not in ("script", "img")


def test_every_chart_is_a_file_too(tmp_path):
    facts = run_facts()
    write_page(RunDirectory(tmp_path), facts)
    names = {path.name for path in (tmp_path / "plots").iterdir()}
    assert {"alpha0-with-network.svg", "reliability.svg", "risk-coverage.svg"} <= names
    assert {"missing-mass.svg", "latent-classes.svg", "latent-evidence.svg"} <= names
    assert {f"training-{what}.svg" for what in ("loss", "accuracy", "cross-entropy")} <= names
    text = without_scripts((tmp_path / "report.html").read_text())
    maps = 4  # files alone: Vega draws them in the page
    assert text.count("<svg") == len(names) - maps
    for path in (tmp_path / "plots").iterdir():
        root = ElementTree.parse(path).getroot()
        assert root.get("role") == "img"
        assert [part.tag.rpartition("}")[2] for part in root][:3] == ["style", "title", "desc"]
