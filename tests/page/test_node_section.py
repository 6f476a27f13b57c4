import re
from dataclasses import replace

import numpy as np

from gpn_scale.page.node_section import STRANGEST, nodes
from tests.page.outline import Outline
from tests.page.samples import node_rows, prediction_facts


def section_of(rows):
    return nodes(replace(prediction_facts(class_name="first"), nodes=rows))


def test_nodes_without_a_label_come_first():
    text = section_of(node_rows(60)).body
    first, second = text.index("Nodes without a label"), text.index("Nodes with a label")
    assert first < second < text.index("All nodes")
    listed = [int(row) for row in re.findall('href="#node-([0-9]+)"', text)]
    labels, split = node_rows(60).label, node_rows(60).split
    assert len(listed) == 2 * STRANGEST
    assert (labels[listed[:STRANGEST]] < 0).all()
    assert (labels[listed[STRANGEST:]] >= 0).all()
    assert (split[listed] != 0).all()  # no training node
    assert listed[:STRANGEST] == sorted(listed[:STRANGEST])


def test_a_list_names_reason_and_parts():
    text = section_of(node_rows(30, name="n7", class_name="sea")).body
    for part in ("own features", "opinion", "torn between sea and b", "n7", "p known"):
        assert part in text
    assert "Weights are made up." in text
    assert "All 30 nodes are listed." in text


def test_no_such_nodes_are_said_to_be_none():
    rows = node_rows(8)
    known = replace(rows, label=np.zeros(8, np.int64), split=np.full(8, 2))
    assert "Every node has a label." in section_of(known).body
    unknown = replace(rows, label=np.full(8, -1), split=np.full(8, -1))
    assert "No node outside of training has a label." in section_of(unknown).body


def test_a_model_without_p_values_lists_evidence():
    rows = replace(node_rows(), p_known=None, p_parts={}, reasons=("", "", ""))
    text = section_of(rows).body
    assert "by their evidence" in text
    assert "node-p_known" not in text
    assert 'name="kind"' not in text


def test_names_are_escaped():
    rows = node_rows(name="<b>", mark="<u>", class_name="<i>")
    text = nodes(replace(prediction_facts(class_name="<i>"), nodes=rows)).body
    assert not {"b", "u", "i"} & set(Outline(text).tags)


def test_every_map_is_a_file():
    assert len(nodes(prediction_facts()).charts) == 4
