from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.baselines.ensemble import Ensemble, EnsembleOptions
from gpn_scale.errors import ConfigError
from tests.baselines.graphs import CONFIG, small_graph


def test_an_ensemble_is_the_mean_of_its_members(tmp_path):
    graph = small_graph()
    model = Ensemble(CONFIG, EnsembleOptions(members=3)).fit(graph)
    prediction = model.predict(graph)
    members = [member.predict(graph).probabilities for member in model._members]
    assert len(members) == 3
    assert not np.allclose(members[0], members[1])
    np.testing.assert_allclose(prediction.probabilities, np.mean(members, 0), rtol=1e-5)
    loaded = Ensemble(CONFIG, EnsembleOptions(members=3))
    loaded.load_state(graph, model.state(), tmp_path)
    np.testing.assert_array_equal(loaded.predict(graph).epistemic, prediction.epistemic)


def test_ensembles_with_different_seeds_share_no_member():
    seeds = []
    for seed in (0, 1, 2):
        train = replace(CONFIG.train, rng_seed=seed)
        members = Ensemble(replace(CONFIG, train=train))._new_members()
        seeds += [member.config.train.rng_seed for member in members]
    assert len(set(seeds)) == 30


def test_an_ensemble_needs_a_member():
    with pytest.raises(ConfigError, match=r"model\.members is 0, expected at least 1 network"):
        EnsembleOptions(members=0)
