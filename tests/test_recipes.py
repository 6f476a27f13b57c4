from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale import recipes
from gpn_scale.config import SplitConfig, override
from gpn_scale.data.building import build_graph
from gpn_scale.data.datasets import DATASET_NAMES
from gpn_scale.data.graph import CSRFeatures, Split
from gpn_scale.data.preparation import Preparation
from gpn_scale.data.splits import prepare_graph, stratified_split
from gpn_scale.errors import ConfigError
from gpn_scale.recipes import (
    ENOUGH_TRAINING_NODES,
    LEFT_OUT_CLASSES,
    MINIBATCH_EPOCHS,
    MINIBATCH_STEPS,
    OPINION_EPOCHS,
    in_minibatches,
    left_out_count,
    paper_dataset,
    recipe_for,
    split_for,
)

GRAPH = build_graph([0], [1])


def test_settings_are_those_of_the_papers_table():
    amazon = recipe_for("AmazonPhotos", GRAPH)
    assert (amazon.encoder.latent, amazon.diffusion.teleport) == (10, 0.2)
    assert (amazon.evidence.budget, amazon.train.entropy_weight) == ("latent_classes", 1e-5)
    assert amazon.train.weight_decay == 5e-4
    citation = recipe_for("CoraML", GRAPH)
    assert (citation.encoder.latent, citation.diffusion.teleport) == (16, 0.1)
    assert (citation.evidence.budget, citation.train.weight_decay) == ("latent", 1e-3)
    arxiv = recipe_for("ogbn-arxiv", GRAPH)
    assert (arxiv.encoder.hidden, arxiv.encoder.layers, arxiv.encoder.dropout) == (256, 3, 0.25)
    assert (arxiv.split.kind, arxiv.train.epochs, arxiv.train.patience) == ("public", 1000, 200)
    for config in (amazon, citation, arxiv):
        assert config.flow.radial_layers == 10
        assert (config.diffusion.steps, config.diffusion.normalisation) == (10, "sym")
        assert config.train.warmup_steps == 5


def test_every_paper_dataset_has_a_recipe_of_its_own_and_a_left_out_count():
    for name in DATASET_NAMES:
        assert recipe_for(name, GRAPH).data.dataset == name
        assert left_out_count(name, "paper") == LEFT_OUT_CLASSES[name]
    assert recipe_for("PubMed", GRAPH).data.feature_scaling == "binary_row_sum"


@pytest.mark.parametrize("name", DATASET_NAMES)
@pytest.mark.parametrize("suffix", ["small", "2-b", ""])
def test_a_variant_takes_the_recipe_and_the_left_out_count_of_its_dataset(name, suffix):
    variant = f"{name}-{suffix}"
    config = recipe_for(variant, GRAPH)
    assert config.data.dataset == variant
    assert replace(config, data=replace(config.data, dataset=name)) == recipe_for(name, GRAPH)
    assert left_out_count(variant, "paper") == LEFT_OUT_CLASSES[name]


@pytest.mark.parametrize(
    "name", ["ogbn", "ogbn-arxi", "ogbn-arxivs", "CoraMLx", "coraml-x", "-", ""]
)
def test_names_that_only_resemble_a_dataset_are_no_variants(name):
    assert paper_dataset(name) is None


def test_of_several_datasets_the_longest_counts(monkeypatch):
    recipe_of = {"a": None, "a-b": None, "a-b-c": None}
    monkeypatch.setattr(recipes, "_RECIPE_OF", recipe_of)
    assert paper_dataset("a-b-c") == "a-b-c"
    assert paper_dataset("a-b-c-d") == "a-b-c"
    assert paper_dataset("a-b-cd") == "a-b"
    assert paper_dataset("a-d") == "a"


def own_graph(values, **options):
    features = CSRFeatures(
        indptr=np.array([0, 1, 2]),
        indices=np.zeros(2, np.int32),
        values=np.array(values, np.float32),
        num_columns=1,
    )
    return build_graph([0], [1], features=features, **options)


def test_a_graph_of_ones_own_gets_what_fits_its_features():
    bag = recipe_for("mine", own_graph([1, 2]))
    assert (bag.data.feature_scaling, bag.encoder.standardise) == ("row_sum", False)
    signed = recipe_for("mine", own_graph([1, -2]))
    assert (signed.data.feature_scaling, signed.encoder.standardise) == ("none", True)
    assert recipe_for("mine", GRAPH).encoder.standardise


def test_a_graph_of_ones_own_keeps_its_split():
    nodes = {subset: np.array([index]) for index, subset in enumerate(("train", "test"))}
    split = Split(**nodes, val=np.empty(0, np.int64))
    assert recipe_for("mine", own_graph([1, 1])).split.kind == "stratified"
    graph = own_graph([1, 1], labels=[0, 0], split=split)
    assert recipe_for("mine", graph).split.kind == "public"


@pytest.mark.parametrize(
    ("counts", "train"),
    [([5, 5], 0.6), ([200, 9000], 0.6), ([240, 300], 0.5), ([600, 601], 0.2), ([9000, 9000], 0.2)],
)
def test_the_split_of_a_graph_of_ones_own_follows_its_smallest_class(counts, train):
    labels = np.repeat([0, 1, -1], [*counts, 50])
    graph = build_graph([0], [1], labels=labels, num_nodes=len(labels))
    assert recipe_for("mine", graph).split == SplitConfig(train=train, val=0.2)
    assert recipe_for("CoraML", graph).split == SplitConfig(train=0.05, val=0.15)
    assert recipe_for("synthetic:nodes=9", graph).split == SplitConfig(train=0.05, val=0.15)


def test_marked_nodes_are_not_labels_to_split():
    labels = np.arange(1000) % 2
    graph = build_graph([0], [1], labels=labels, num_nodes=1000, marks={"odd": np.arange(800)})
    assert split_for(graph).train == 0.6
    assert split_for(replace(graph, marks={})).train == 0.24


@settings(max_examples=200)
@given(st.lists(st.integers(1, 3000), min_size=2, max_size=6))
def test_any_labels_get_a_split_with_training_nodes_of_every_class(counts):
    labels = np.repeat(np.arange(len(counts)), counts)
    graph = build_graph([0], [1], labels=labels, num_nodes=len(labels))
    split = prepare_graph(graph, recipe_for("mine", graph)).split
    train = np.bincount(labels[split.train], minlength=len(counts))
    for number, count in zip(train, counts, strict=True):
        assert number >= min(count, 0.2 * count - 1)
        assert number >= min(ENOUGH_TRAINING_NODES, 0.6 * count) - 4
        assert number >= 1


def test_left_out_counts():
    assert left_out_count("anything", "2") == 2
    with pytest.raises(ConfigError, match=r"left_out_classes is '9{18}\.\.\.', expected a number"):
        left_out_count("anything", "9" * 5000)
    with pytest.raises(ConfigError, match=r"only in CoraML, .*, not in 'mine': give a number"):
        left_out_count("mine", "paper")
    with pytest.raises(ConfigError, match="is '-1', expected a number or 'paper'"):
        left_out_count("CoraML", "-1")


def test_minibatches_of_all_training_nodes_change_nothing_but_the_mode():
    graph = build_graph([0], [1], labels=[0, 1] + [0] * 998)
    config = recipe_for("CoraML", graph)
    small = in_minibatches(config, graph)
    assert small.mode == "minibatch"
    assert (small.train, small.minibatch) == (config.train, config.minibatch)


@pytest.mark.parametrize("public", [True, False])
def test_many_training_nodes_are_taken_in_falling_steps(public):
    nodes = np.arange(2000)
    split = Split(train=nodes[:1500], val=nodes[1500:1600], test=nodes[1600:])
    size = 2000 if public else 30_000
    labels = np.arange(size) % 2
    graph = build_graph([0], [1], labels=labels, split=split if public else None, num_nodes=size)
    recipe = recipe_for("ogbn-arxiv" if public else "CoraML", graph)
    config = in_minibatches(recipe, graph)
    assert config.minibatch == replace(recipe.minibatch, batch_size=512, tail_nodes=2048)
    steps = 3  # of 512 roots each, for 1,500 training nodes
    assert (config.train.epochs, config.opinion.epochs) == (267, 134)
    assert config.train.epochs * steps >= MINIBATCH_STEPS > (config.train.epochs - 1) * steps
    assert config.train.learning_rate == recipe.train.learning_rate
    assert config.train.schedule == "cosine"
    assert config.train.epochs == config.train.patience < recipe.train.epochs
    assert config.opinion_training.schedule == "cosine"
    assert config.opinion_training.epochs == config.opinion_training.patience <= config.train.epochs


@pytest.mark.parametrize("public", [True, False])
def test_training_has_enough_steps_with_left_out_classes(public):
    labels = np.arange(8000) % 6
    graph = build_graph([0], [1], labels=labels, num_nodes=8000)
    if public:
        graph = stratified_split(graph, train=0.3, val=0.1, rng_seed=2)
    config = override(
        recipe_for("ogbn-arxiv" if public else "CoraML", graph),
        [("data.left_out_classes", "3"), ("data.left_out_set", "1"), ("split.train", "0.3")],
    )
    config = in_minibatches(config, graph)
    steps = -(-len(prepare_graph(graph, config).split.train) // config.minibatch.batch_size)
    assert (steps, config.minibatch.batch_size) == (3, 512)
    assert config.train.epochs * steps >= MINIBATCH_STEPS


def test_a_given_batch_size_counts():
    graph = build_graph([0], [1], labels=np.arange(40_000) % 2, num_nodes=40_000)
    recipe = recipe_for("CoraML", graph)  # 2,000 training nodes
    for size, epochs in ((32, 30), (100, 40), (1000, 400)):
        given = override(recipe, [("minibatch.batch_size", str(size))])
        config = in_minibatches(given, graph)
        assert (config.minibatch.batch_size, config.train.epochs) == (size, epochs)
    whole = override(recipe, [("minibatch.batch_size", "2000")])
    assert in_minibatches(whole, graph) == replace(whole, mode="minibatch")
    assert in_minibatches(recipe, graph, num_train=1024) == replace(recipe, mode="minibatch")


def test_epochs_of_many_steps_are_few():
    labels = np.arange(1_000_000) % 2
    graph = build_graph([0], [1], labels=labels)
    config = in_minibatches(recipe_for("CoraML", graph), graph)
    assert (config.train.epochs, config.opinion.epochs) == (MINIBATCH_EPOCHS, OPINION_EPOCHS)
    short = override(recipe_for("CoraML", graph), [("train.epochs", "7")])
    assert in_minibatches(short, graph).opinion.epochs == 7


@pytest.mark.parametrize("sparse", [False, True])
def test_prepared_features_are_used_as_they_are(sparse):
    table = pa.table({"note": ["old boat", "red boat"] * 2, "size": [1, 2, 3, 4]})
    table = table if sparse else table.select(["size"])
    preparation = Preparation.fit(table, kinds={"note": "text"} if sparse else {})
    features = preparation.apply(table).features
    assert isinstance(features, CSRFeatures) is sparse
    graph = replace(build_graph([0, 1], [2, 3], features=features), preparation=preparation)
    config = recipe_for("mine", graph)
    assert config.data.feature_scaling == "none"
    assert not config.encoder.standardise
