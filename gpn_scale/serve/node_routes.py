"""Routes of known nodes: predictions, lists, neighbourhoods, contributors and similar nodes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal

from gpn_scale.serve.answers import json_bytes, node_answer
from gpn_scale.serve.failures import too_many
from gpn_scale.serve.features import node_features
from gpn_scale.serve.queries import (
    NodeFilter,
    contributors_of,
    listed_nodes,
    neighbourhood_of,
    neighbours_of,
    similar_to,
)
from gpn_scale.serve.schemas import (
    ContributorsAnswer,
    ErrorAnswer,
    FeaturesAnswer,
    IdsRequest,
    NeighbourhoodAnswer,
    NeighboursAnswer,
    NodeAnswer,
    NodesAnswer,
    PredictionsAnswer,
    SimilarAnswer,
)
from gpn_scale.serve.served_model import ServedModel
from gpn_scale.serve.service import Service, position_of, positions_of
from gpn_scale.serve.web import APIRouter, Query, Request, Response, StreamingResponse

JSON = "application/json"
LINES = "application/x-ndjson"
_ROWS_AT_ONCE = 64
"""Number of answers after which other requests get a turn."""

Offset = Annotated[int, Query(ge=0, le=2**31)]
NodeParameter = Annotated[str, Query(alias="id", description="Id of the node.")]


def json_answer(value: Any, status: int = 200) -> Response:
    """Return an answer as JSON without validating it again."""
    return Response(json_bytes(value), status, media_type=JSON)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the descriptions of errors that a route may answer with."""
    return {status: {"model": ErrorAnswer, "description": _MEANINGS[status]} for status in statuses}


_MEANINGS = {
    401: "The token is missing or wrong.",
    403: "A page of another site has made the request.",
    404: "There is no such node.",
    413: "The request is too large.",
    421: "The request names another host.",
    422: "A value of the request cannot be used.",
    500: "A fault of the service; the log has more under the id of the request.",
    503: "The service is busy; ask again.",
    504: "The answer took too long.",
}
COMMON = documented(401, 403, 421, 422, 500)
SLOW = documented(503, 504)
OF_NODE = documented(404)


def node_routes(service: Service) -> APIRouter:
    """Return the routes of known nodes."""
    router = APIRouter(tags=["nodes"], responses=COMMON)

    @router.get(
        "/nodes/{id:path}",
        response_model=NodeAnswer,
        responses=OF_NODE,
        summary="Everything that is known about a node.",
    )
    async def node(request: Request, id: str) -> Response:
        model = service.model
        return json_answer(node_answer(model, position_of(model, id)))

    @router.get(
        "/nodes", response_model=NodesAnswer, responses=SLOW, summary="Search, filter and sort."
    )
    async def nodes(
        search: Annotated[str | None, Query(max_length=500)] = None,
        predicted_class: str | None = None,
        reason: Annotated[str | None, Query(description="Kind of the reason.")] = None,
        split: Literal["train", "val", "test"] | None = None,
        sort: Literal["trust", "p_known", "probability", "degree", "id"] | None = None,
        descending: bool = False,
        offset: Offset = 0,
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
    ) -> Response:
        wanted = NodeFilter(
            search=search or None,
            predicted_class=predicted_class,
            reason=reason,
            split=split,
            sort=sort,
            descending=descending,
        )
        return await _slow(listed_nodes, service.model, wanted, offset, limit)

    @router.post(
        "/predict",
        response_model=PredictionsAnswer,
        responses=OF_NODE | documented(413) | {200: {"content": {LINES: {}}}},
        summary="Predictions of known nodes, streamed.",
        description=f"With `Accept: {LINES}`, one answer per line.",
    )
    async def predict(request: Request, body: IdsRequest) -> Response:
        model = service.model
        if len(body.ids) > service.settings.max_nodes:
            raise too_many("ids", len(body.ids), service.settings.max_nodes)
        chosen = positions_of(model, body.ids)
        if LINES in request.headers.get("accept", ""):
            return StreamingResponse(_lines(model, chosen), media_type=LINES)
        return StreamingResponse(_object(model, chosen), media_type=JSON)

    @router.get(
        "/neighbours",
        response_model=NeighboursAnswer,
        responses=OF_NODE | SLOW,
        summary="Neighbours of a node.",
    )
    async def neighbours(
        id: NodeParameter, offset: Offset = 0, limit: Annotated[int, Query(ge=1, le=500)] = 50
    ) -> Response:
        return await _of_node(neighbours_of, id, offset, limit)

    @router.get(
        "/neighbourhood",
        response_model=NeighbourhoodAnswer,
        responses=OF_NODE | SLOW,
        summary="Nodes around a node, and the edges among them.",
    )
    async def neighbourhood(
        id: NodeParameter,
        hops: Annotated[int, Query(ge=1, le=2)] = 1,
        limit: Annotated[int, Query(ge=1, le=500)] = 60,
    ) -> Response:
        return await _of_node(neighbourhood_of, id, hops, limit)

    @router.get(
        "/contributors",
        response_model=ContributorsAnswer,
        responses=OF_NODE | SLOW,
        summary="The nodes that supply most of a node's evidence.",
    )
    async def contributors(
        id: NodeParameter, count: Annotated[int, Query(ge=1, le=100)] = 6
    ) -> Response:
        return await _of_node(contributors_of, id, count)

    @router.get(
        "/similar",
        response_model=SimilarAnswer,
        responses=OF_NODE | SLOW,
        summary="The nearest nodes in latent space.",
    )
    async def similar(
        id: NodeParameter, count: Annotated[int, Query(ge=1, le=100)] = 10
    ) -> Response:
        return await _of_node(similar_to, id, count)

    @router.get(
        "/features",
        response_model=FeaturesAnswer,
        responses=OF_NODE | SLOW,
        summary="Columns of a node, next to the usual values of training nodes.",
    )
    async def features(id: NodeParameter) -> Response:
        return await _of_node(node_features, id)

    async def _of_node(query: Callable[..., Any], node_id: str, *arguments: Any) -> Response:
        model = service.model
        return await _slow(query, model, position_of(model, node_id), *arguments)

    async def _slow(query: Callable[..., Any], *arguments: Any) -> Response:
        return json_answer(await service.work.run(query, *arguments))

    return router


async def _lines(model: ServedModel, nodes: list[int]) -> AsyncIterator[bytes]:
    """Yield one answer per line."""
    for start in range(0, len(nodes), _ROWS_AT_ONCE):
        some = nodes[start : start + _ROWS_AT_ONCE]
        yield b"".join(json_bytes(node_answer(model, node)) + b"\n" for node in some)
        await asyncio.sleep(0)  # requests for single nodes go first


async def _object(model: ServedModel, nodes: list[int]) -> AsyncIterator[bytes]:
    """Yield the pieces of one object with all answers."""
    separator = b'{"predictions":['
    for start in range(0, len(nodes), _ROWS_AT_ONCE):
        some = nodes[start : start + _ROWS_AT_ONCE]
        yield separator + b",".join(json_bytes(node_answer(model, node)) for node in some)
        separator = b","
        await asyncio.sleep(0)
    yield b"]}" if nodes else separator + b"]}"
