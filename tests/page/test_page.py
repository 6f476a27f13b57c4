"""The page as a whole: what is on it, what is not, and that data cannot write on it."""

import base64
import hashlib
import html
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from gpn_scale.config import RunConfig
from gpn_scale.page.facts import Explained, TrainingCurves
from gpn_scale.page.posterior_sections import temperature_words
from gpn_scale.page.prediction_facts import conformal_facts, principal_components
from gpn_scale.page.run_page import page_sections, page_text, write_page
from gpn_scale.train.run_directory import RunDirectory
from tests.page.samples import run_facts

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\x00\u202e"


class Outline(HTMLParser):
    """Which elements, ids and attributes a page has, and whether its tags are in pairs."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.references = [], [], [], []
        self.handlers = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        for key, value in attrs:
            if key == "id":
                self.ids.append(value)
            if key in ("src", "href", "xlink:href", "srcset", "action", "data", "poster"):
                self.references.append(value)
            if key.startswith("on"):
                self.handlers.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def text_of(facts):
    return page_text(facts, page_sections(facts))


def headings(text):
    return re.findall(r'<h2 id="(.*?)-heading">', text)


def test_sections_come_in_order():
    text = text_of(run_facts())
    wanted = ["overview", "evidence", "trust", "kinds", "missing-mass", "nodes", "latent"]
    assert headings(text) == [*wanted, "training", "details"]
    assert "Accuracy" in text
    assert "AUC-ROC" in text
    assert "exchangeable" in text
    assert "Accuracy and rejection" in text
    assert "fitted: 1.50" in text
    assert "By class, t-SNE" in text


@pytest.mark.parametrize(
    ("fitted", "words"), [(0.5, "too modest"), (1.01, "as sharp as they should"), (2.0, "too sure")]
)
def test_a_temperature_is_put_into_words(fitted, words):
    facts = run_facts().prediction.temperature
    assert words in temperature_words(replace(facts, fitted=fitted))


def test_what_there_is_no_fact_for_is_left_out():
    facts = run_facts()
    plain = replace(facts.prediction, detection={}, marked_nodes=0, missing_mass=None)
    plain = replace(plain, conformal=None, explained=Explained(absent="Too large, that is why."))
    plain = replace(plain, temperature=None, neighbours=None)
    text = text_of(replace(facts, prediction=plain))
    assert "missing-mass" not in headings(text)
    assert "AUC-ROC" not in text
    assert "conformal" not in text
    assert "Temperature" not in text
    assert "t-SNE" not in text
    assert "Too large, that is why." in text


def test_an_unfinished_run_names_what_is_missing():
    facts = replace(run_facts(), report=None, prediction=None, missing=("There is no model.",))
    text = text_of(facts)
    assert headings(text) == ["overview", "training", "details"]
    assert "There is no model." in text
    empty = np.empty(0)
    nothing = TrainingCurves(
        epoch=empty, loss=empty, val_cross_entropy=empty, val_accuracy=empty, best_epoch=0
    )
    assert "No epoch is recorded yet" in text_of(replace(facts, training=nothing))


def test_a_page_asks_for_nothing_outside_and_its_tags_match():
    text = text_of(run_facts())
    outline = Outline(text)
    assert len(outline.ids) == len(set(outline.ids))
    assert all(each.startswith("#") for each in outline.references)
    assert not outline.handlers
    assert {"link", "img", "iframe", "object", "embed"}.isdisjoint(outline.tags)
    without = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?://|@import|url\((?!#)", without)
    labelled = re.findall('aria-labelledby="(.*?)"', text)
    assert {each for ids in labelled for each in ids.split()} <= set(outline.ids)


def test_the_policy_allows_the_page_s_own_script_alone():
    text = text_of(run_facts())
    script = re.search("<script>(.*)</script>", text, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = html.unescape(
        re.search('http-equiv="Content-Security-Policy" content="(.*?)"', text)[1]
    )
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_names_from_the_data_cannot_write_on_the_page(tmp_path):
    facts = run_facts(dataset=HOSTILE, class_name=HOSTILE, node_name=HOSTILE, mark=HOSTILE)
    outline = Outline(text_of(facts))
    assert outline.tags.count("script") == 1
    assert "img" not in outline.tags
    assert not outline.handlers
    write_page(RunDirectory(tmp_path), facts)
    for plot in (tmp_path / "plots").iterdir():
        for part in ElementTree.parse(plot).iter():
            assert part.tag.rpartition("}")[2] not in ("script", "img")


def test_every_plot_is_a_file_too(tmp_path):
    facts = run_facts()
    write_page(RunDirectory(tmp_path), facts)
    names = {path.name for path in (tmp_path / "plots").iterdir()}
    assert {"alpha0-with-network.svg", "reliability.svg", "risk-coverage.svg"} <= names
    assert {"missing-mass.svg", "least-certain-1.svg", "latent-evidence.svg"} <= names
    assert {f"training-{what}.svg" for what in ("loss", "accuracy", "cross-entropy")} <= names
    text = (tmp_path / "report.html").read_text()
    assert text.count("<svg") == len(names)
    for path in (tmp_path / "plots").iterdir():
        root = ElementTree.parse(path).getroot()
        assert root.get("role") == "img"
        assert [part.tag.rpartition("}")[2] for part in root][:3] == ["style", "title", "desc"]


def test_numbers_that_are_not_defined_are_said_so():
    facts = run_facts()
    report = replace(facts.report, metrics={"test": dict.fromkeys(facts.report.metrics["test"])})
    assert "n.a." in text_of(replace(facts, report=report))


def test_every_field_of_the_configuration_is_shown():
    text = text_of(run_facts())
    for section, content in RunConfig().to_dict().items():
        if isinstance(content, dict):
            assert all(f"{section}.{name}<" in text for name in content)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (1, 4), (5, 1), (40, 6)])
def test_principal_components_are_the_widest_directions(shape):
    latent = np.random.default_rng(0).normal(size=shape) * np.arange(1, shape[1] + 1)
    position, explained = principal_components(latent)
    assert position.shape == (shape[0], 2)
    assert 0 <= explained[1] <= explained[0] <= 1 + 1e-12
    if shape[0] > 1:
        variance = np.linalg.eigvalsh(np.cov(latent.T).reshape(shape[1], shape[1]))[::-1]
        np.testing.assert_allclose(position.var(0, ddof=1)[: shape[1]], variance[:2])


def test_conformal_sets_are_measured_on_other_nodes():
    rng = np.random.default_rng(0)
    probability = rng.dirichlet(np.ones(4), 4001)
    label = np.array([rng.choice(4, p=p) for p in probability])
    found = conformal_facts(probability, label, 4001)
    assert (found.calibration_nodes, found.measured_nodes) == (2000, 2001)
    assert found.coverage == pytest.approx(0.9, abs=0.02)
    assert 1 < found.mean_size < 4
    assert conformal_facts(probability[:1], label[:1], 1) is None
