"""The base class of methods on top of a trained network.

Shapes: N nodes, C classes.
"""

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from torch import Tensor

from gpn_scale.baselines.baseline import AbstractBaseline
from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.network import AbstractSoftmaxNetwork
from gpn_scale.data.graph import Graph

_PREFIX = "method."
"""Beginning of the names of a method's tensors in a saved state."""


class AbstractPostHoc(AbstractBaseline):
    """A method on top of a softmax network, whose weights it does not change."""

    Base: ClassVar[type[AbstractSoftmaxNetwork]]
    """Class of the network."""
    _base: AbstractSoftmaxNetwork | None = None
    _given_base: AbstractSoftmaxNetwork | None = None

    def fit_view(self, view: GraphView, store: Path | None) -> None:
        """Train the network unless `use_base` gave a trained one, then adjust the method to it."""
        self._base = self._given_base or self._new_base().fit_on(view, store)
        self._given_base = None
        self.adjust(view)

    def use_base(self, graph: Graph, tensors: dict[str, Tensor], source: Path) -> None:
        """Take a trained network, which the next `fit` then does not train again.

        Args:
            graph: The graph that the network was trained on.
            tensors: What `state` of the network returned.
            source: The file of the tensors, for messages.

        Raises:
            RunError: the tensors belong to another model.
        """
        self._given_base = self._restored_base(graph, tensors, source)

    def state(self) -> dict[str, Tensor]:
        """Return the tensors of the network, and those of the method under names of their own."""
        own = {f"{_PREFIX}{name}": value for name, value in self.own_state().items()}
        return {**self.base.state(), **own}

    def restore(self, graph: Graph, tensors: dict[str, Tensor], source: Path) -> None:  # noqa: D102
        own = {name: value for name, value in tensors.items() if name.startswith(_PREFIX)}
        of_base = {name: value for name, value in tensors.items() if name not in own}
        self._base = self._restored_base(graph, of_base, source)
        own = {name.removeprefix(_PREFIX): value for name, value in own.items()}
        self.restore_own(graph, own, source)

    def own_state(self) -> dict[str, Tensor]:
        """Return the method's tensors; {}, the default, if `adjust` is as fast as loading."""
        return {}

    def restore_own(self, graph: Graph, tensors: dict[str, Tensor], source: Path) -> None:
        """Restore what `own_state` returned; the default adjusts the method again."""
        self.adjust(self.view(graph))

    @property
    def base(self) -> AbstractSoftmaxNetwork:
        """The trained network.

        Raises:
            RunError: the model has not been trained.
        """
        if self._base is None:
            raise self.unfitted_error()
        return self._base

    def base_logits(self, view: GraphView) -> Tensor:
        """Return the logits of the network, (N, C)."""
        return self.base.final_logits(view)

    @abstractmethod
    def adjust(self, view: GraphView) -> None:
        """Fit the method to the trained network and the graph's labels."""

    def _new_base(self) -> AbstractSoftmaxNetwork:
        return self.Base(self.config, device=str(self.device), dtype=self.dtype)

    def _restored_base(
        self, graph: Graph, tensors: dict[str, Tensor], source: Path
    ) -> AbstractSoftmaxNetwork:
        base = self._new_base()
        base.load_state(graph, tensors, source)
        return base
