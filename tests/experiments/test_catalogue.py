from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.experiments.catalogue import (
    EXPERIMENTS,
    check_experiment,
    check_possible,
    is_complete,
)
from tests.experiments.cells import graph


def test_unknown_names_are_refused_with_all_names():
    for name in EXPERIMENTS:
        check_experiment(name)
    with pytest.raises(ConfigError, match="experiments got 'cleen', expected names among clean"):
        check_experiment("cleen")


def test_experiments_that_cannot_change_the_graph_are_refused():
    check_possible(EXPERIMENTS, graph())
    bare = replace(graph(), features=None)
    check_possible(["clean", "edge-shift"], bare)
    with pytest.raises(GraphError, match="has no features, which the experiment feature-shift"):
        check_possible(["clean", "feature-shift", "isolated"], bare)
    weighted = replace(graph(), edge_weight=np.ones(graph().num_edges, np.float32))
    check_possible(["clean", "isolated"], weighted)
    with pytest.raises(GraphError, match="directed or weighted"):
        check_possible(["edge-shift"], weighted)


def test_shifts_are_complete_with_all_kinds_and_fractions():
    metrics = {f"accuracy@{kind}_0.20": 1.0 for kind in ("bernoulli", "normal")}
    assert is_complete("feature-shift", metrics, (0.2,))
    assert not is_complete("feature-shift", metrics, (0.2, 0.5))
    assert not is_complete("edge-shift", metrics, (0.2,))
    assert is_complete("clean", {}, (0.2,))
