"""`LivePredictor`: fast predictions of single new nodes and of what-if changes, for a service.

Everything that depends on the whole graph is computed once. The work of a request then grows only
with the number of nodes that its rows touch.

Shapes: N existing nodes, M new nodes, F features, W diffused columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpn_scale.data.column_roles import ColumnNames
from gpn_scale.data.contract import DataContract
from gpn_scale.data.graph import CSRFeatures, Features, Graph
from gpn_scale.data.table_inputs import TableLike
from gpn_scale.diffusion.edge_patch import EdgePatch, rewired
from gpn_scale.diffusion.growth import new_nodes
from gpn_scale.diffusion.patched_transition import GraphTransition, PatchedTransition
from gpn_scale.errors import GraphError
from gpn_scale.evaluation.node_facts import NodeFacts
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.known_ids import NodeLookup
from gpn_scale.inference.new_nodes import (
    GraphFacts,
    NewNodesPrediction,
    OwnNodes,
    predict_new,
    predict_own,
)
from gpn_scale.inference.new_tables import NewTables, read_looked_up_tables
from gpn_scale.inference.node_values import AbstractNodeValues, EncodedValues, StoredValues
from gpn_scale.inference.stored_rows import require_evidence_diffusion
from gpn_scale.inference.trained_model import TrainedModel
from gpn_scale.inference.what_if import changed_features

DEFAULT_TOLERANCE = 1e-6
"""Mass below this amount is not pushed further."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangedPrediction:
    """Prediction of one node after a what-if change, and an interval for alpha_0.

    >>> from gpn_scale import GPNClassifier
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.ppr.example import example_graph
    >>> graph, config = example_graph(), RunConfig(train=TrainConfig(epochs=1))
    >>> classifier = GPNClassifier(config, device="cpu").fit(graph)
    >>> live = LivePredictor(classifier.trained, graph, classifier.contract)
    >>> live.changed(0, remove_edges=[1]).prediction.alpha_0.shape
    (1,)
    """

    prediction: Prediction
    """Prediction of the node alone, B = 1, from the kept part of its row."""
    alpha_0_lower: NDArray[np.float64]
    """Lower bound on the exact alpha_0, up to the round-off of the dtype, (1,)."""
    alpha_0_upper: NDArray[np.float64]
    """Upper bound on the exact alpha_0, (1,)."""
    notes: tuple[str, ...]
    """Notes on unusual changes and on simplifications, one sentence each."""


class LivePredictor:
    """A trained model on one graph, ready to predict single new nodes and what-if changes.

    All methods may be called from several threads at once; for this purpose, the networks are
    permanently put into evaluation mode.

    >>> from gpn_scale import GPNClassifier
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.ppr.example import example_graph
    >>> graph, config = example_graph(), RunConfig(train=TrainConfig(epochs=1))
    >>> classifier = GPNClassifier(config, device="cpu").fit(graph)
    >>> live = LivePredictor(classifier.trained, graph, classifier.contract)
    >>> live.new([[0.5]], neighbours=[[0, 2]]).prediction.probabilities.shape
    (1, 2)
    >>> live.changed(2, features=[0.5], add_edges=[0]).prediction.probabilities.shape
    (1, 2)

    Args:
        trained: The model.
        graph: Graph with the model's columns and classes, as `GPNClassifier.aligned` returns it.
        contract: What the model expects of tables.
        surprise: `Prediction.surprise` of all nodes, (N,), as `GPNClassifier.surprise_of` returns
            it; None to leave the surroundings out of p-values.
        table: Diffused columns of all nodes, from `node_values_into`, (N, W), in memory or mapped;
            None to encode the touched nodes for every request, which is slow.
        largest_evidence: Largest evidence of a node, summed over classes, for the interval of
            alpha_0; None to take it from the table, or else the bound set by the model's clamp.

    Raises:
        GraphError: the graph's features differ from the model's.
        ConfigError: the model diffuses logarithms, or an array has the wrong shape or type.
    """

    def __init__(
        self,
        trained: TrainedModel,
        graph: Graph,
        contract: DataContract,
        *,
        surprise: NDArray[np.float32] | None = None,
        table: NDArray[np.float32] | None = None,
        largest_evidence: float | None = None,
    ) -> None:
        diffusion = trained.diffusion
        require_evidence_diffusion(diffusion, "predicting new nodes")
        trained.check_features(graph)
        self.trained, self.graph, self.contract = trained, graph, contract
        values: AbstractNodeValues = EncodedValues(trained, graph)
        if table is not None:
            values = StoredValues(trained, graph, table, largest_evidence=largest_evidence)
        trained.network.eval()
        if trained.opinion is not None:
            trained.opinion.network.eval()
        transition = GraphTransition(graph, diffusion.normalisation, diffusion.self_loops)
        _ = transition.matrix  # build it now, so that no request waits for it
        self.facts = GraphFacts(
            values=values,
            largest_evidence=largest_evidence,
            surprise=surprise,
            transition=transition,
        )

    def read(
        self,
        nodes: TableLike,
        edges: TableLike | None,
        lookup: NodeLookup,
        names: ColumnNames | None = None,
    ) -> NewTables:
        """Return the new nodes of two tables, as `read_new_tables` does, for `new`.

        Args:
            nodes: Table with a row per new node: a path, a frame or a dictionary of columns.
            edges: Table with a row per edge; None if the new nodes have none.
            lookup: Finds the positions of existing nodes by their ids.
            names: Names of the columns that are not features.

        Raises:
            TableFaults: the tables do not match the graph or the model; it lists all faults.
            GraphError: an argument is not a table.
        """
        return read_looked_up_tables(nodes, edges, self.graph, self.contract, lookup, names)

    def new(
        self,
        features: Features | ArrayLike,
        neighbours: Sequence[ArrayLike],
        edge_weights: Sequence[ArrayLike] | None = None,
        *,
        tolerance: float = DEFAULT_TOLERANCE,
    ) -> NewNodesPrediction:
        """Return the prediction of nodes that join the graph, as `GPNClassifier.predict_new` does.

        Args:
            features: Feature rows of the new nodes, (M, F).
            neighbours: Positions of the neighbours of each new node; N + j is the j-th new node.
            edge_weights: Weights of these edges; None for 1.
            tolerance: Amounts of mass below this are not pushed on; 0 is exact.

        Raises:
            GraphError: the new nodes do not fit the graph or the model.
            ConfigError: the tolerance is negative.
        """
        graph = self.graph
        new = new_nodes(graph, features, neighbours, edge_weights)
        predicted = predict_new(self.trained, graph, new, tolerance=tolerance, facts=self.facts)
        of_new = NodeFacts(nodes=new.ids, class_names=graph.class_names)
        return replace(predicted, prediction=replace(predicted.prediction, facts=of_new))

    def changed(
        self,
        node: int,
        *,
        columns: Mapping[str, Any] | None = None,
        features: ArrayLike | CSRFeatures | None = None,
        add_edges: ArrayLike = (),
        add_weights: ArrayLike | None = None,
        remove_edges: ArrayLike = (),
        tolerance: float = DEFAULT_TOLERANCE,
    ) -> ChangedPrediction:
        """Return the prediction of an existing node if it had other values or edges.

        This is the prediction of the node in the changed graph: undirected edges change both ends,
        directed ones leave the node, its own label still counts, and its p-values are recomputed.
        Two things are taken from the unchanged graph: the surprise of all other nodes, and their
        structural features.

        Args:
            node: Position of the node.
            columns: New values of raw columns by name, which the model's rule prepares; without a
                rule, numbers by the names of the features.
            features: A whole feature row, (F,) or (1, F), instead of columns.
            add_edges: Positions of nodes that become neighbours.
            add_weights: Their weights, for graphs with weights; None for 1.
            remove_edges: Positions of neighbours that the node loses.
            tolerance: Amounts of mass below this are not pushed on; 0 is exact.

        Raises:
            GraphError: the node, a column or an edge is unknown, an edge to add exists, or a value
                cannot be read.
            ConfigError: the tolerance is negative.
        """
        graph, facts = self.graph, self.facts
        if not 0 <= node < graph.num_nodes:
            raise GraphError(
                f"node is {node}, expected a position in [0, {graph.num_nodes})",
                arguments=("node",),
            )
        patch = rewired(graph, node, add=add_edges, add_weights=add_weights, remove=remove_edges)
        changed = changed_features(
            graph, self.contract, node, patch, columns=columns, features=features
        )
        values, ids = facts.values, np.array([node])
        assert values is not None
        assert facts.transition is not None
        own = OwnNodes(
            ids=ids,
            features=changed.row,
            is_training=None if values.is_training is None else values.is_training[ids],
        )
        predicted = predict_own(
            values,
            PatchedTransition(facts.transition, patch),
            own,
            tolerance=tolerance,
            largest_evidence=facts.largest_evidence,
            surprise=facts.surprise,
        )
        return ChangedPrediction(
            prediction=replace(predicted.prediction, facts=NodeFacts.of(graph, ids)),
            alpha_0_lower=predicted.alpha_0_lower,
            alpha_0_upper=predicted.alpha_0_upper,
            notes=(*changed.notes, *self._notes(patch, has_weights=add_weights is not None)),
        )

    def _notes(self, patch: EdgePatch, *, has_weights: bool) -> tuple[str, ...]:
        """Return notes on what the prediction of a change assumes and leaves out."""
        notes = []
        if self.graph.edge_weight is not None and not has_weights and (patch.weight > 0).any():
            notes.append("The edges of the graph have weights; the added edges get weight 1.")
        if self.facts.surprise is not None:
            notes.append("All other nodes are as strange as they are without the change.")
        preparation = self.contract.preparation
        if len(patch.source) and preparation is not None and preparation.structure:
            notes.append("Features that count edges are recomputed for this node only.")
        return tuple(notes)
