from gpn_scale.config import RunConfig
from gpn_scale.models.hyper_parameters import averaging_logs, in_batches, tuned, without_diffusion
from gpn_scale.models.registry import setting_of
from gpn_scale.recipes import arxiv, citation
from tests.baselines.graphs import unsplit_graph

GRAPH = unsplit_graph()
SMALL, LARGE = citation("CoraML"), arxiv("ogbn-arxiv")


def config_of(name, recipe):
    return setting_of(name, recipe, [], GRAPH).config


def test_settings_are_those_of_the_appendix_then_the_users():
    vgcn = config_of("VGCN", SMALL)
    assert (vgcn.encoder.dropout, vgcn.train.weight_decay, vgcn.encoder.hidden) == (0.8, 1e-4, 64)
    assert vgcn.train.patience == 50
    large = config_of("VGCN", LARGE)
    assert (large.encoder.dropout, large.train.weight_decay) == (0.5, 0.0)
    assert (large.encoder.hidden, large.encoder.layers) == (256, 3)
    assert config_of("RGCN", SMALL).encoder.hidden == 32
    assert config_of("LP", SMALL).diffusion.teleport == 0.1
    changed = setting_of("VGCN", SMALL, [("encoder.dropout", "0.1")], GRAPH)
    assert changed.config.encoder.dropout == 0.1
    assert changed.fingerprint != setting_of("VGCN", SMALL, [], GRAPH).fingerprint


def test_gkde_gcn_has_no_teacher_on_the_large_graph():
    kernel = setting_of("GKDE-GCN", SMALL, [], GRAPH).options
    assert (kernel.kernel_weight, kernel.teacher_weight) == (1e-3, 1.0)
    kernel = setting_of("GKDE-GCN", LARGE, [], GRAPH).options
    assert (kernel.kernel_weight, kernel.teacher_weight) == (1e-4, 0.0)


def test_batches_need_fewer_epochs_on_the_large_graph_alone():
    configure = in_batches(tuned(dropout=0.5), neighbours=5)
    small, large = configure(SMALL), configure(LARGE)
    assert (small.mode, small.minibatch.neighbours) == ("minibatch", 5)
    assert small.train.epochs == SMALL.train.epochs
    assert (large.train.epochs, large.train.patience) == (30, 5)


def test_ablations_change_the_diffusion_alone():
    config = RunConfig(model="GPN")
    alone, logs = without_diffusion(config, GRAPH), averaging_logs(config, GRAPH)
    assert (alone.diffusion.steps, logs.diffusion.of) == (0, "log_evidence")
    assert alone.encoder == logs.encoder == config.encoder


def test_pooled_opinions_have_the_recipe_of_gpn_with_rows_that_sum_to_1():
    config = config_of("LOP-GPN", LARGE)
    assert config.diffusion.normalisation == "rw"
    assert config.diffusion.teleport == LARGE.diffusion.teleport
    assert (config.encoder, config.train) == (LARGE.encoder, LARGE.train)
    batched = config_of("LOP-GPN-minibatch", LARGE)
    assert (batched.mode, batched.diffusion) == ("minibatch", config.diffusion)


def test_committees_have_the_recipe_of_gpn():
    config = config_of("CUQ-GNN", LARGE)
    assert (config.encoder, config.train) == (LARGE.encoder, LARGE.train)
    assert config.diffusion == LARGE.diffusion
    logs = averaging_logs(LARGE, GRAPH)
    assert config_of("CUQ-GNN", logs).diffusion.of == "evidence"
    assert config_of("CUQ-GCN-minibatch", SMALL).minibatch.neighbours == 5
