"""`Service`: the state that all requests share, with the current model."""

from gpn_scale import __version__
from gpn_scale.serve.decisions import DecisionLog
from gpn_scale.serve.failures import RequestFailure, unknown_ids
from gpn_scale.serve.metrics import ServiceMetrics
from gpn_scale.serve.served_model import ServedModel
from gpn_scale.serve.settings import ServeSettings
from gpn_scale.serve.work import SlowWork


class Service:
    """The current model, the decisions, the threads of slow work, and the metrics.

    A request reads `model` only once, so that it never sees two models.

    Args:
        model: The initial model.
        decisions: Decisions of the run.
        settings: Limits.
    """

    def __init__(self, model: ServedModel, decisions: DecisionLog, settings: ServeSettings) -> None:
        self.decisions, self.settings = decisions, settings
        self.work = SlowWork(
            threads=settings.slow_threads,
            queue=settings.slow_queue,
            seconds=settings.request_seconds,
        )
        self.metrics = ServiceMetrics(lambda: self.work.unfinished)
        self.reload_error: str | None = None
        """Reason why a swapped model is not used, or None."""
        self.model = model
        self.use(model)

    def use(self, model: ServedModel) -> None:
        """Answer from another model from now on."""
        self.model = model  # a single assignment, which is atomic for other threads
        self.metrics.show_model(model.fingerprint, model.graph.name, __version__)


def position_of(model: ServedModel, node_id: str | int) -> int:
    """Return the position of a node.

    Raises:
        RequestFailure: there is no such node.
    """
    text = str(node_id)
    node = model.ids.position(text)
    if node is None:
        raise unknown_ids([text], model.ids)
    return node


def positions_of(model: ServedModel, node_ids: list[str | int]) -> list[int]:
    """Return the positions of nodes.

    Raises:
        RequestFailure: some are no nodes of the graph; it names the first ones.
    """
    texts = [str(node_id) for node_id in node_ids]
    nodes = [model.ids.position(text) for text in texts]
    unknown = [text for text, node in zip(texts, nodes, strict=True) if node is None]
    if unknown:
        raise unknown_ids(unknown, model.ids)
    return [node for node in nodes if node is not None]


def class_or_failure(model: ServedModel, name: str) -> str:
    """Return the name of a class of the model.

    Raises:
        RequestFailure: the model has no such class.
    """
    if name not in model.classes:
        known = ", ".join(model.classes[:20])
        raise RequestFailure(422, f"label is {name!r}, expected one of the classes {known}")
    return name
