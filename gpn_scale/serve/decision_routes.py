"""Routes of the triage lists and of decisions about nodes."""

from dataclasses import asdict
from typing import Annotated, Literal

from gpn_scale.serve.failures import RequestFailure
from gpn_scale.serve.node_routes import COMMON, OF_NODE, SLOW, Offset, json_answer
from gpn_scale.serve.schemas import (
    DecisionAnswer,
    DecisionRequest,
    DecisionsAnswer,
    TriageAnswer,
)
from gpn_scale.serve.service import Service, class_or_failure, position_of
from gpn_scale.serve.triage_lists import triage_page
from gpn_scale.serve.web import APIRouter, Query, Response


def decision_routes(service: Service) -> APIRouter:
    """Return the routes of lists and decisions."""
    router = APIRouter(tags=["decisions"], responses=COMMON | SLOW)
    decisions, run = service.decisions, service.work.run

    @router.get(
        "/triage",
        response_model=TriageAnswer,
        summary="What to review, or what to label next, with the latest decisions.",
    )
    async def triage(
        name: Annotated[Literal["review", "label_next"], Query(alias="list")] = "review",
        offset: Offset = 0,
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
    ) -> Response:
        page = await run(triage_page, service.model, decisions, name, offset, limit)
        return json_answer(page)

    @router.get("/decisions", response_model=DecisionsAnswer, summary="Decisions, latest first.")
    async def stored(
        node_id: Annotated[
            str | None, Query(alias="id", description="Decisions about this node alone.")
        ] = None,
        offset: Offset = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        total, some = await run(decisions.page, offset, limit, node_id)
        return json_answer({"total": total, "decisions": [asdict(each) for each in some]})

    @router.post(
        "/decisions",
        response_model=DecisionAnswer,
        status_code=201,
        responses=OF_NODE,
        summary="Store a decision about a node.",
    )
    async def decide(body: DecisionRequest) -> Response:
        model = service.model
        node = position_of(model, body.id)
        _check_label(body, service)
        decision = await run(
            decisions.append,
            model.ids.text(node),
            body.decision,
            label=body.label,
            note=body.note,
            model=model.fingerprint,
        )
        return json_answer(asdict(decision), 201)

    return router


def _check_label(body: DecisionRequest, service: Service) -> None:
    if body.decision == "relabel":
        if body.label is None:
            raise RequestFailure(422, "decision is 'relabel' and label is missing: name a class")
        class_or_failure(service.model, body.label)
    elif body.label is not None:
        raise RequestFailure(
            422, f"label is given with the decision {body.decision!r}, expected it to relabel only"
        )
