import pytest

from gpn_scale.config import RunConfig, override
from gpn_scale.errors import ConfigError
from gpn_scale.experiments.catalogue import EXPERIMENTS
from gpn_scale.experiments.studies import STUDY_EXPERIMENTS, studied_models
from gpn_scale.models.registry import parse_model


def test_every_study_is_a_configuration():
    for model in studied_models(["GPN", "GPN-minibatch"], "all"):
        kind, changes = parse_model(model)
        assert override(RunConfig(model="GPN"), changes) is not None
        assert model.startswith(kind)
    assert len(studied_models(["GPN"], "latent,budget")) == 5
    assert set(STUDY_EXPERIMENTS) <= set(EXPERIMENTS)


def test_unknown_studies_and_models_with_changes_are_refused():
    with pytest.raises(ConfigError, match="studies got 'hidden', expected names among latent"):
        studied_models(["GPN"], "hidden")
    with pytest.raises(ConfigError, match="take models without brackets"):
        studied_models(["GPN[train.epochs=1]"], "latent")
