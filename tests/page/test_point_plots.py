import re
from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.page.point_plots import SCALE_STEPS, points_by_class, points_by_evidence
from tests.page.drawings import NAN, parsed
from tests.page.samples import latent_points


@pytest.mark.parametrize("count", [0, 1, 2, 30])
def test_points_in_any_number(count):
    points = latent_points(count)
    for draw in (points_by_class, points_by_evidence):
        parsed(draw("p", "title", points))
        same = replace(points, position=np.zeros((count, 2)), log_evidence=np.zeros(count))
        parsed(draw("p", "title", same))
        lost = replace(points, position=np.full((count, 2), NAN), log_evidence=np.full(count, NAN))
        parsed(draw("p", "title", lost))


def test_classes_differ_in_more_than_colour():
    root = parsed(points_by_class("p", "title", latent_points(300)))
    paths = [p.get("d") for p in root.iter() if "points" in (p.get("class") or "")]
    shapes = {re.search("m.*?(?=M|$)", path).group() for path in paths}
    assert len(paths) == len(shapes) == 3
    letters = [p.text for p in root.iter() if p.get("class") == "letter"]
    assert set(letters) <= {"A", "B", "C"}
    assert "A" in letters


def test_letters_do_not_hide_each_other():
    points = latent_points(300)
    apart = replace(points, position=points.position / 100 + np.eye(3)[points.label][:, :2])
    for placed, count in ((apart, 3), (replace(points, position=np.zeros((300, 2))), 1)):
        root = parsed(points_by_class("p", "title", placed))
        assert sum(part.get("class") == "letter" for part in root.iter()) == count


def test_unknown_nodes_are_crosses_and_are_counted():
    points = latent_points(30)
    for draw in (points_by_class, points_by_evidence):
        text = draw("p", "title", points).body
        assert f"unknown nodes: {points.unknown.sum()}" in text
        known = replace(points, unknown=np.zeros(30, bool))
        assert "unknown nodes" not in draw("p", "title", known).body


def test_the_scale_of_evidence_has_all_its_colours():
    text = points_by_evidence("p", "title", latent_points(300)).body
    for step in range(SCALE_STEPS):
        assert f'class="swatch q{step}"' in text


def test_the_description_names_the_method():
    points = latent_points(30)
    description = points_by_class("p", "title", points).description
    assert "first two principal components, which have 50 % and 25 % of the variance" in description
    near = replace(points, explained_variance=None, method="t-SNE")
    assert points_by_class("p", "title", near).description == "30 nodes, placed by t-SNE"
