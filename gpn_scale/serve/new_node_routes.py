"""Routes of predictions that are not in the table: new nodes, and nodes with changes."""

from gpn_scale.serve.failures import RequestFailure, too_many
from gpn_scale.serve.new_nodes import Change, Edge, changed_node, predict_new_nodes
from gpn_scale.serve.node_routes import COMMON, OF_NODE, SLOW, documented, json_answer
from gpn_scale.serve.schemas import (
    NewNodesRequest,
    NewPredictionsAnswer,
    WhatIfAnswer,
    WhatIfRequest,
)
from gpn_scale.serve.service import Service
from gpn_scale.serve.web import APIRouter, Response

_EDGES_PER_NODE = 1000
"""Mean number of edges per new node that a request may have."""


def new_node_routes(service: Service) -> APIRouter:
    """Return the routes of new nodes and changes."""
    router = APIRouter(tags=["new nodes"], responses=COMMON | SLOW | OF_NODE | documented(413))
    limits = service.settings

    @router.post(
        "/predict_new",
        response_model=NewPredictionsAnswer,
        summary="Predictions of nodes that are not in the graph.",
        description="Columns are those of `/graph`, raw as in the table of the import; features "
        "without names are given by their numbers. Edges join new nodes to each other and to "
        "nodes of the graph.",
    )
    async def predict_new(body: NewNodesRequest) -> Response:
        if not body.nodes:
            raise RequestFailure(422, "nodes is empty, expected at least one new node")
        if len(body.nodes) > limits.max_new_nodes:
            raise too_many("nodes", len(body.nodes), limits.max_new_nodes)
        most = limits.max_new_nodes * _EDGES_PER_NODE
        if len(body.edges) > most:
            raise too_many("edges", len(body.edges), most)
        ids = [str(node.id) for node in body.nodes]
        edges = [Edge(str(edge.source), str(edge.target), edge.weight) for edge in body.edges]
        columns = [node.columns for node in body.nodes]
        model = service.model
        return json_answer(await service.work.run(predict_new_nodes, model, ids, columns, edges))

    @router.post(
        "/what_if",
        response_model=WhatIfAnswer,
        summary="A node as it is, and as it would be with other values or edges.",
        description="The change is neither stored nor visible to others.",
    )
    async def what_if(body: WhatIfRequest) -> Response:
        change = Change(
            columns=body.columns,
            add_edges=[(str(edge.id), edge.weight) for edge in body.add_edges],
            remove_edges=[str(other) for other in body.remove_edges],
        )
        model = service.model
        return json_answer(await service.work.run(changed_node, model, str(body.id), change))

    return router
