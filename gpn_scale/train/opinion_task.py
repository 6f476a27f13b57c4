"""Training of the opinion of GPN+ on batches of labelled roots with their stored rows."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.distributed import World
from gpn_scale.inference.all_nodes import diffused_logits
from gpn_scale.inference.some_nodes import row_logits
from gpn_scale.inference.trained_model import TrainedOpinion
from gpn_scale.nn.opinion import Opinion
from gpn_scale.ppr.store import PPRStore
from gpn_scale.train.minibatch_task import AbstractMinibatchTask
from gpn_scale.train.objective import OpinionObjective
from gpn_scale.train.task import checked_split


class OpinionMinibatchTask(AbstractMinibatchTask):
    """Training of an opinion on batches, as PPRGo does (Bojchevski et al., 2020).

    Deviation: the cut part of a row counts with the mean logits of its clusters, as it does in the
    feature evidence. Sums over kept entries alone fit the network to rows that are more
    concentrated than the diffusion that predicts.
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
        super().__init__(graph, config, store, objective, device, dtype, world)

    def _context(self, model: Opinion) -> TrainedOpinion:
        return TrainedOpinion(model, self.scaling, self.diffusion, self.device, self.dtype)

    def _tracked(self, model: Opinion, mean_PC: Tensor, present_P: Tensor | None) -> Tensor:
        del model, present_P  # a cluster without nodes in the batch counts as cut: its mean is 0
        return mean_PC

    def _exact_probabilities(self, model: Opinion, graph: Graph) -> NDArray[np.float32]:
        logits = diffused_logits(
            self._context(model), graph, memory_bytes=self._exact_memory_bytes, world=self.world
        )
        probabilities: NDArray[np.float32] = (
            torch.from_numpy(logits[self.val_nodes]).softmax(1).numpy()
        )
        return probabilities

    def _row_probabilities(self, model: Opinion, nodes: NodeIds, cluster_PC: Tensor) -> Tensor:
        opinion = self._context(model)
        logits_BC = row_logits(
            opinion,
            self.features,
            nodes,
            store=self.store,
            tail=self.tail,
            cluster_PC=cluster_PC,
        )
        return logits_BC.softmax(1)
