"""The JSON objects of requests and answers, for checks and for the OpenAPI description."""

from typing import Annotated, Literal

from gpn_scale.serve.web import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
)


def whole_text(text: str) -> str:
    """Return a text that can be written as UTF-8.

    Raises:
        ValueError: it holds half of a surrogate pair, which JSON can escape but no text can hold.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half of a surrogate pair, expected characters") from None
    return text


Text = Annotated[StrictStr, AfterValidator(whole_text)]
NodeId = Text | StrictInt
"""A user's id as a text; numbers are accepted as well."""
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Value = StrictBool | StrictInt | Number | Text | None
"""A value of a raw column."""
Share = Annotated[float, Field(ge=0, le=1)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class IdsRequest(_Request):
    """Known nodes to predict."""

    ids: list[NodeId]


class NewNode(_Request):
    """A node that is not in the graph."""

    id: NodeId
    columns: dict[Text, Value] = Field(default={}, description="Values of raw columns by name.")


class NewEdge(_Request):
    """An edge of a new node."""

    source: NodeId
    target: NodeId
    weight: Weight | None = None


class NewNodesRequest(_Request):
    """New nodes and their edges, to each other and to nodes of the graph."""

    nodes: list[NewNode]
    edges: list[NewEdge] = Field(default=[])


class AddedEdge(_Request):
    """An edge to another node."""

    id: NodeId
    weight: Weight | None = None


class WhatIfRequest(_Request):
    """Changes of one node, which are not visible to others."""

    id: NodeId
    columns: dict[Text, Value] = Field(default={}, description="New values of columns by name.")
    add_edges: list[AddedEdge] = Field(default=[])
    remove_edges: list[NodeId] = Field(default=[])


class DecisionRequest(_Request):
    """A person's decision about a node."""

    id: NodeId
    decision: Literal["accept", "relabel", "skip"]
    label: Text | None = Field(None, description="Name of a class; needed to relabel.")
    note: Annotated[Text, Field(max_length=2000)] | None = None


class ErrorAnswer(BaseModel):
    """Reason why a request has no answer."""

    error: str
    nearest: list[str] | None = Field(None, description="Ids that are similar to an unknown one.")
    unknown: list[str] | None = Field(None, description="The first unknown ids of several.")
    request: str | None = Field(None, description="Id of the request in the log.")


class NodeBrief(BaseModel):
    """The main facts of a node."""

    id: str
    predicted_class: str
    probability: Share | None
    p_known: Share | None
    trust: Share
    reason: str | None
    label: str | None
    split: Literal["train", "val", "test"] | None
    degree: int


class Prediction(BaseModel):
    """Class, probabilities and uncertainty of a node; fields that the model lacks are missing."""

    id: str
    predicted_class: str
    probability: Share | None
    probabilities: dict[str, Share | None] = Field(
        description="By class; of more than 100 classes, the most probable ones."
    )
    alpha_0: float | None
    alpha_0_no_network: float | None
    aleatoric: float | None
    aleatoric_entropy: float | None
    aleatoric_no_network: float | None
    epistemic: float | None
    epistemic_no_network: float | None
    entropy: float | None
    entropy_no_network: float | None
    energy: float | None = None
    label_evidence: float | None = None
    surprise: float | None = None
    p_features: Share | None = None
    p_neighbourhood: Share | None = None
    p_opinion: Share | None = None
    p_labels: Share | None = None
    p_known: Share | None = None
    reason: str | None
    trust: Share
    abstain: bool | None = Field(description="Null without a promise.")


class NodeAnswer(Prediction):
    """Everything that is known about a node of the graph."""

    label: str | None
    split: Literal["train", "val", "test"] | None
    degree: int


class NewNodeAnswer(Prediction):
    """The prediction of a new node, with bounds of alpha_0."""

    alpha_0_lower: float | None
    alpha_0_upper: float | None
    degree: int


class HealthAnswer(BaseModel):
    """Whether the service answers; without the token, only the status."""

    status: Literal["ok"]
    model: str | None = None
    graph: str | None = None
    num_nodes: int | None = None
    version: str | None = None
    reload_error: str | None = None


class PromiseAnswer(BaseModel):
    """A promised error rate."""

    error: float
    confidence: float
    threshold: float
    answered: float
    condition: str


class ColumnAnswer(BaseModel):
    """A column that a model reads."""

    name: str
    kind: str


class GraphAnswer(BaseModel):
    """The graph and the model."""

    name: str
    num_nodes: int
    num_edges: int
    directed: bool
    weighted: bool
    classes: list[str]
    parts: list[str]
    condition: str
    promise: PromiseAnswer | None
    columns: list[ColumnAnswer]
    num_columns: int
    sortable: list[str]
    reasons: list[str]
    store: bool


class NodesAnswer(BaseModel):
    """A page of nodes."""

    total: int | None
    offset: int
    nodes: list[NodeBrief]


class PredictionsAnswer(BaseModel):
    """Predictions of known nodes, in the order of the request."""

    predictions: list[NodeAnswer]


class NewPredictionsAnswer(BaseModel):
    """Predictions of new nodes, in the order of the request."""

    predictions: list[NewNodeAnswer]
    notes: list[str]
    condition: str


class WhatIfAnswer(BaseModel):
    """A node as it is, and as it would be after a change."""

    id: str
    before: NodeAnswer
    after: NodeAnswer
    notes: list[str]
    condition: str


class Neighbour(NodeBrief):
    """A node at the other end of an edge."""

    weight: float


class NeighboursAnswer(BaseModel):
    """A page of neighbours."""

    id: str
    degree: int
    neighbours: list[Neighbour]


class NearNode(NodeBrief):
    """A node of a neighbourhood."""

    hop: int


class NeighbourhoodAnswer(BaseModel):
    """The nodes around a node, and the edges among them."""

    id: str
    truncated: bool
    nodes: list[NearNode]
    edges: list[Annotated[list[float], Field(min_length=3, max_length=3)]] = Field(
        description="Positions i and j in `nodes`, and the weight."
    )


class Contributor(NodeBrief):
    """A node that supplies evidence."""

    share: float | None
    weight: float | None
    leading_class: str
    adjacent: bool


class ContributorsAnswer(BaseModel):
    """The nodes that supply most of a node's evidence."""

    id: str
    source: Literal["exact", "stored"]
    tail_share: float | None
    contributors: list[Contributor]


class SimilarNode(NodeBrief):
    """A node that is near in latent space."""

    distance: float


class SimilarAnswer(BaseModel):
    """The nearest nodes in latent space."""

    id: str
    nodes: list[SimilarNode]


class FeatureValue(BaseModel):
    """A column's value, and its usual value."""

    name: str
    value: bool | float | str | None
    usual: bool | float | str | None


class FeaturesAnswer(BaseModel):
    """The columns of a node, those that differ most from the training nodes first."""

    id: str
    num_columns: int
    columns: list[FeatureValue]


class DecisionAnswer(BaseModel):
    """A stored decision."""

    id: str
    decision: Literal["accept", "relabel", "skip"]
    label: str | None
    note: str | None
    time: str
    model: str


class DecisionsAnswer(BaseModel):
    """A page of decisions, the latest one first."""

    total: int
    decisions: list[DecisionAnswer]


class TriageRow(NodeBrief):
    """A node of a list."""

    detail: str
    decision: DecisionAnswer | None


TriageRows = list[TriageRow]


class TriageAnswer(BaseModel):
    """A page of a list."""

    list: Literal["review", "label_next"]
    total: int
    decided: int = Field(description="Number of nodes of the whole list with a decision.")
    rows: TriageRows
