"""`NodeEstimator`: nodes as samples, so that scikit-learn's own tools work on a graph.

Shapes: S samples, N nodes, C classes, F feature columns.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from gpn_scale.config import RunConfig
from gpn_scale.data.conversion import GraphLike, as_graph
from gpn_scale.data.graph import MISSING_LABEL, Graph, NodeIds, Split
from gpn_scale.data.node_positions import node_positions
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.keywords import KEYWORDS

_SEEDS = 2**31


class NodeEstimator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of nodes with `fit(nodes, y)` and `predict(nodes)`, for scikit-learn's tools.

    Samples are nodes of one graph. All nodes stay in the graph, but only the labels passed to `fit`
    are used. A part of these nodes is held out for early stopping and calibration. Without a graph,
    samples are rows of features, each a node without edges.

    >>> import numpy as np
    >>> from sklearn.model_selection import StratifiedKFold, cross_val_score
    >>> from gpn_scale import load_graph
    >>> graph = load_graph("synthetic:nodes=200,classes=3,features=8,separation=4")
    >>> nodes = np.flatnonzero(graph.labels >= 0)
    >>> estimator = NodeEstimator(graph, epochs=10, hidden=8, random_state=1)
    >>> folds = StratifiedKFold(3)
    >>> accuracy = cross_val_score(estimator, nodes, graph.labels[nodes], cv=folds)
    >>> accuracy.shape, bool(accuracy.mean() > 0.6)
    ((3,), True)
    >>> estimator = estimator.fit(nodes, graph.labels[nodes])
    >>> estimator.predict(nodes[:2]).shape, estimator.predict_proba(nodes[:2]).shape
    ((2,), (2, 3))
    >>> estimator.prediction_.alpha_0.shape  # of all nodes, with every score
    (200,)

    Args:
        graph: Graph whose nodes are the samples, or any input of `as_graph`; its own labels, split
            and marks are not used. None for samples that are rows of features.
        validation_fraction: Fraction of the nodes of each class in `fit` that is held out, in
            (0, 1); at least one node.
        config: Configuration of the model and its training, as in `GPNClassifier`.
        model: As in `GPNClassifier`.
        mode: Only `exact` is supported, since rows are not stored for every fold.
        epochs: As in `GPNClassifier`.
        patience: As in `GPNClassifier`.
        learning_rate: As in `GPNClassifier`.
        weight_decay: As in `GPNClassifier`.
        hidden: As in `GPNClassifier`.
        layers: As in `GPNClassifier`.
        latent: As in `GPNClassifier`.
        dropout: As in `GPNClassifier`.
        teleport: As in `GPNClassifier`.
        steps: As in `GPNClassifier`.
        random_state: Seed of the initial weights, of dropout and of the held-out nodes, or a
            `RandomState` to draw it from. None for the configuration's seed, which is fixed.
        verbose: As in `GPNClassifier`.

    Attributes:
        classes_: The classes, (C,).
        classifier_: The fitted `GPNClassifier`.
        graph_: The training graph, with the labels and the split of `fit`.
        prediction_: With a graph, the `Prediction` of all its nodes.
        n_features_in_: Without a graph, the number of feature columns.
    """

    def __init__(
        self,
        graph: GraphLike = None,
        *,
        validation_fraction: float = 0.2,
        config: RunConfig | None = None,
        model: str | None = None,
        mode: str | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        hidden: int | None = None,
        layers: int | None = None,
        latent: int | None = None,
        dropout: float | None = None,
        teleport: float | None = None,
        steps: int | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.validation_fraction = validation_fraction
        self.config = config
        self.model = model
        self.mode = mode
        self.epochs = epochs
        self.patience = patience
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.hidden = hidden
        self.layers = layers
        self.latent = latent
        self.dropout = dropout
        self.teleport = teleport
        self.steps = steps
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Train on some nodes and their classes; return self.

        Args:
            X: Nodes by position or by name, (S,) or (S, 1); without a graph, features (S, F).
            y: Classes of any type that can be sorted, (S,).

        Raises:
            ConfigError: a parameter has a value that is not allowed.
            GraphError: a node does not exist or has two classes, or a class is missing.
        """
        graph, nodes, y = self._samples(X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        labels = np.full(graph.num_nodes, MISSING_LABEL, np.int32)
        labels[nodes] = codes
        if (labels[nodes] != codes).any():
            node = nodes[labels[nodes] != codes][0]
            raise GraphError(f"X holds node {node} with two classes, expected one class per node")
        labelled = replace(
            graph,
            labels=labels,
            num_classes=len(self.classes_),
            class_names=None,
            split=None,
            marks={},
        )
        seed = self._seed()
        split = _held_out(labels, self.validation_fraction, 0 if seed is None else seed)
        self.classifier_ = self._classifier(seed)
        self.classifier_.check(labelled)
        self.graph_ = labelled.with_split(split)
        self.classifier_.fit(self.graph_)
        if self.graph is not None:
            self.prediction_ = self.classifier_.predict(self.graph_)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each sample, (S,); `X` is as in `fit`."""
        probability_SC = self.predict_proba(X)
        return np.asarray(self.classes_[probability_SC.argmax(1)])

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Return the class probabilities of each sample, (S, C), in the order of `classes_`."""
        check_is_fitted(self)
        if self.graph is not None:
            return np.asarray(self.prediction_.probabilities[self._nodes(self.graph_, X)])
        X = validate_data(self, X, reset=False, accept_sparse="csr")
        return self.classifier_.predict_proba((X, None, []))

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.get_params(deep=False))  # shares the graph instead of copying it

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _samples(self, X: Any, y: Any) -> tuple[Graph, NodeIds, NDArray[Any]]:
        """Return the graph, the samples as its nodes, and their classes."""
        if self.graph is None:
            X, y = validate_data(self, X, y, accept_sparse="csr")
            return as_graph((X, None, [])), np.arange(X.shape[0]), y
        check_consistent_length(X, y)
        graph = as_graph(self.graph)
        return graph, self._nodes(graph, X), column_or_1d(y, warn=True)

    def _nodes(self, graph: Graph, X: Any) -> NodeIds:
        nodes = np.asarray(X)
        return node_positions(graph, nodes[:, 0] if nodes.ndim == 2 else nodes)

    def _seed(self) -> int | None:
        if self.random_state is None or isinstance(self.random_state, int | np.integer):
            return None if self.random_state is None else int(self.random_state)
        return int(check_random_state(self.random_state).randint(_SEEDS))

    def _classifier(self, seed: int | None) -> GPNClassifier:
        keywords = {name: getattr(self, name) for name in KEYWORDS} | {"random_state": seed}
        classifier = GPNClassifier(self.config, verbose=self.verbose, **keywords)
        if classifier.config.mode != "exact":
            raise ConfigError(
                f"mode is {classifier.config.mode!r}, expected 'exact': use GPNClassifier for "
                "training on stored rows",
                arguments=("mode",),
            )
        return classifier


def _held_out(labels: NDArray[np.int32], fraction: float, rng_seed: int) -> Split:
    """Return a split of the labelled nodes into training and validation nodes, class by class."""
    if not 0.0 < fraction < 1.0:
        raise ConfigError(
            f"validation_fraction is {fraction!r}, expected a fraction in (0, 1)",
            arguments=("validation_fraction",),
        )
    rng = np.random.default_rng(rng_seed)
    val = [np.empty(0, np.int64)]
    for label in range(int(labels.max(initial=0)) + 1):
        nodes = rng.permutation(np.flatnonzero(labels == label))
        count = min(max(1, round(fraction * len(nodes))), len(nodes) - 1)
        val.append(nodes[: max(count, 0)])
    held_out = np.concatenate(val)
    if len(held_out) == 0:
        raise GraphError(
            f"X holds {np.count_nonzero(labels >= 0)} sample(s), one per class, expected at least "
            "two of some class: one to train on and one to validate with"
        )
    return Split(
        train=np.setdiff1d(np.flatnonzero(labels != MISSING_LABEL), held_out),
        val=held_out,
        test=np.empty(0, np.int64),
    )
