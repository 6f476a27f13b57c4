import json

from gpn_scale.data.building import build_graph
from gpn_scale.data.import_facts import ImportFacts
from gpn_scale.data.summary import GraphSummary

FACTS = ImportFacts(
    nodes_listed=2, edges_listed=9, duplicates=3, self_loops=1, unknown_ids=4, nodes_added=5,
    weight="sum", missing={"age": 1}, notes=("Look.",),
)  # fmt: skip


def test_facts_are_json():
    assert json.loads(json.dumps(FACTS.to_dict()))["notes"] == ["Look."]


def test_the_summary_prints_every_count():
    graph = build_graph([0], [1], edge_weight=[1.0])
    text = GraphSummary.of(graph, facts=FACTS.to_dict()).text()
    for part in ("9;", "3 duplicates", "1 self-loop", "4 edges", "5 unknown", "'sum'", "age"):
        assert part in text
