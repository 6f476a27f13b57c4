"""A small configuration, graph, cell and settings, for tests of experiments."""

from dataclasses import replace

from gpn_scale.config import RunConfig, SplitConfig, TrainConfig
from gpn_scale.experiments.catalogue import EXPERIMENTS
from gpn_scale.experiments.cells import Cell
from gpn_scale.models.setting import GPNSetting
from tests.baselines.graphs import unsplit_graph
from tests.ppr.stored import write_store

CONFIG = RunConfig(model="GPN", train=TrainConfig(epochs=2), split=SplitConfig(train=0.2, val=0.2))
CELL = Cell("G", "GPN", False, 1, 1)
ALL = list(EXPERIMENTS)


def graph():
    return unsplit_graph(nodes=150, classes=4)


def setting(**changes):
    config = replace(CONFIG, **changes)
    return GPNSetting(kind="GPN", config=config, predicts_with=config.diffusion)


def stored_rows(folder, k):
    """Path of a store with the `k` largest entries of every row."""
    diffusion = CONFIG.diffusion
    facts = diffusion.store_parameters
    return write_store(str(folder), graph(), diffusion, k=k, parameters=facts).path
