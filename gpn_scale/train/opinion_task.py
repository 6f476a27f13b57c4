"""Training of the opinion of GPN+ on batches of labelled roots with their stored rows."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.distributed import World
from gpn_scale.inference.all_nodes import diffused_logits
from gpn_scale.inference.some_nodes import batch_aggregation, row_logits
from gpn_scale.inference.trained_model import TrainedOpinion
from gpn_scale.nn.model import Aggregation
from gpn_scale.nn.opinion import Opinion
from gpn_scale.ppr.batches import PPRBatch
from gpn_scale.ppr.store import PPRStore
from gpn_scale.train.minibatch_task import AbstractMinibatchTask
from gpn_scale.train.objective import OpinionObjective
from gpn_scale.train.task import checked_split


class OpinionMinibatchTask(AbstractMinibatchTask):
    """Training of an opinion on batches, as PPRGo does (Bojchevski et al., 2020).

    Logits are sums over only the kept entries of a row. The cut part changes a softmax far less
    than it changes sums of evidence, so no tail is needed.
    """

    def __init__(
        self,
        graph: Graph,
        config: RunConfig,
        store: PPRStore,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
        world: World | None = None,
    ) -> None:
        objective = OpinionObjective(len(checked_split(graph).train))
        truncated = replace(config, minibatch=replace(config.minibatch, tail="truncated"))
        super().__init__(graph, truncated, store, objective, device, dtype, world)

    def _aggregation(self, model: Opinion, batch: PPRBatch) -> Aggregation:
        return batch_aggregation(batch, lambda values_NC: values_NC, self._context(model))

    def _exact_probabilities(self, model: Opinion, graph: Graph) -> NDArray[np.float32]:
        logits = diffused_logits(
            self._context(model), graph, memory_bytes=self._exact_memory_bytes, world=self.world
        )
        probabilities: NDArray[np.float32] = (
            torch.from_numpy(logits[self.val_nodes]).softmax(1).numpy()
        )
        return probabilities

    def _row_probabilities(self, model: Opinion, nodes: NodeIds) -> Tensor:
        opinion = self._context(model)
        return row_logits(opinion, self.features, nodes, self.store, self.tail).softmax(1)

    def _context(self, model: Opinion) -> TrainedOpinion:
        """Return the current network with everything that inference needs."""
        return TrainedOpinion(model, self.scaling, self.diffusion, self.device, self.dtype)
