"""A small graph with a split, for tests of comparison models."""

from gpn_scale.config import EncoderConfig, RunConfig, SplitConfig, TrainConfig
from gpn_scale.data.splits import stratified_split
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph

CONFIG = RunConfig(
    encoder=EncoderConfig(hidden=8, dropout=0.3),
    train=TrainConfig(epochs=20, patience=20, weight_decay=0.0),
    split=SplitConfig(train=0.2, val=0.2),
)


def small_graph(nodes=120, classes=3):
    settings = {"unseen_classes": 0, "isolated": 0.0, "foreign": 0.0}
    config = SyntheticConfig(nodes=nodes, classes=classes, features=6, **settings)
    return stratified_split(synthetic_graph(config), train=0.2, val=0.2, rng_seed=1)
