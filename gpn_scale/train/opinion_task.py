"""Training of the opinion of GPN+ on batches of labelled roots with their stored rows."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph
from gpn_scale.inference.all_nodes import diffused_logits
from gpn_scale.inference.trained_model import TrainedOpinion
from gpn_scale.nn.opinion import Opinion
from gpn_scale.train.minibatch_task import AbstractMinibatchTask
from gpn_scale.train.objective import Objective, OpinionObjective


class OpinionMinibatchTask(AbstractMinibatchTask):
    """Training of an opinion on batches, as PPRGo does (Bojchevski et al., 2020).

    Deviation: the cut part of a row counts with the mean logits of its clusters, as it does in the
    feature evidence. Sums over kept entries alone fit the network to rows that are more
    concentrated than the diffusion that predicts.
    """

    @staticmethod
    def _new_objective(config: RunConfig, num_train: int) -> Objective:
        del config
        return OpinionObjective(num_train)

    def _context(self, model: Opinion) -> TrainedOpinion:
        return TrainedOpinion(model, self.scaling, self.diffusion, self.device, self.dtype)

    def _tracked(self, model: Opinion, mean_PC: Tensor, present_P: Tensor | None) -> Tensor:
        del model, present_P  # a cluster without nodes in the batch counts as cut: its mean is 0
        return mean_PC

    def _exact_probabilities(self, model: Opinion, graph: Graph) -> NDArray[np.float32]:
        logits = diffused_logits(
            self._context(model), graph, memory_bytes=self._exact_memory_bytes, world=self.world
        )
        return self._probabilities(torch.from_numpy(logits[self.val_nodes])).numpy()

    @staticmethod
    def _probabilities(values_BC: Tensor) -> Tensor:
        return values_BC.softmax(1)
