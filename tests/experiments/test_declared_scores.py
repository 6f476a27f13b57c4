from dataclasses import asdict, replace

import numpy as np
import pytest

from gpn_scale.data.splits import prepare_graph
from gpn_scale.experiments.declared_scores import declared_scores
from gpn_scale.models.registry import MODELS, setting_of
from tests.baselines.graphs import CONFIG, unsplit_graph
from tests.ppr.stored import write_store

RECIPE = replace(CONFIG, train=replace(CONFIG.train, epochs=2))
QUICK = {
    "GPN-minibatch": [("minibatch.tail", "stationary")],
    "GPN+-minibatch": [("minibatch.tail", "stationary")],
    "VGCN-Ensemble": [("model.members", "2")],
    "VGCN-Ensemble-minibatch": [("model.members", "2")],
}


def test_models_with_changes_declare_the_scores_of_their_kind():
    assert declared_scores("GPN[train.epochs=3]") == declared_scores("GPN")
    assert declared_scores("VGCN+temperature[x=1]").unknown == "aleatoric"
    assert declared_scores("GPN+").unknown == "p_known"


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_the_scores_that_it_declares(name, tmp_path):
    setting = setting_of(name, RECIPE, QUICK.get(name, []), unsplit_graph())
    graph, store = prepare_graph(unsplit_graph(), setting.config), None
    if setting.needs_rows:
        diffusion = setting.row_diffusion
        facts = diffusion.store_parameters
        store = write_store(str(tmp_path / "rows"), graph, diffusion, k=8, parameters=facts).path
    prediction = setting.new().fit(graph, store=store).predict(graph)
    for task, score in asdict(declared_scores(name)).items():
        values = prediction.score(score)
        assert values is not None, f"{name} has no score {score!r} for {task}: declare another"
        assert len(np.unique(values)) > 1
