# %% [markdown]
# # What should I label next?
#
# Labels cost time. `triage` chooses the nodes whose labels would teach the model most: those that
# are uncertain and reach many other uncertain nodes. This example starts with a few labels, buys
# more in rounds, once by this list and once at random, and compares the accuracy.

# %%
import os

import numpy as np

from gpn_scale import GPNClassifier, load_graph
from gpn_scale.data.graph import Split
from gpn_scale.page.curve_chart import CurveAxes, Line, curve_chart
from gpn_scale.triage.lists import TriageRequest

SMALL = "GALLERY_SMALL" in os.environ  # tiny settings, to try the script
NODES, EPOCHS, ROUNDS, BOUGHT, SEEDS = (400, 5, 1, 6, 1) if SMALL else (2000, 100, 3, 12, 2)

truth = load_graph(
    f"synthetic:nodes={NODES},classes=6,unseen_classes=0,foreign=0,isolated=0,separation=2,homophily=0.75"
)
print(truth)


# %% [markdown]
# Two training nodes per class to start with, and five for validation. A fifth of all nodes is set
# aside to measure the accuracy; it is never bought.


# %%
def first_split(seed: int) -> Split:
    """Return two training and five validation nodes of every class, and a fifth for tests."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(truth.num_nodes)
    test, rest = np.sort(order[: NODES // 5]), order[NODES // 5 :]
    train, val = [], []
    for label in range(truth.num_classes):
        nodes = rest[truth.labels[rest] == label]
        train.append(nodes[:2])
        val.append(nodes[2:7])
    return Split(train=np.sort(np.concatenate(train)), val=np.sort(np.concatenate(val)), test=test)


def with_bought(split: Split, nodes: np.ndarray) -> Split:
    """Return the split after labels of more training nodes were bought."""
    return Split(train=np.union1d(split.train, nodes), val=split.val, test=split.test)


def chosen(strategy: str, classifier: GPNClassifier, split: Split, seed: int) -> np.ndarray:
    """Return the nodes to buy labels of."""
    used = np.concatenate([split.train, split.val, split.test])
    free = np.setdiff1d(np.arange(NODES), used)
    if strategy == "at random":
        return np.random.default_rng(seed).choice(free, BOUGHT, replace=False)
    # Only some labels are known, so the list comes from a graph without the others.
    request = TriageRequest(review=0, label_next=BOUGHT + len(split.test))
    listed = classifier.triage(truth.with_split(split), request).label_next["id"].to_numpy()
    listed = np.asarray(listed, np.int64)
    return listed[np.isin(listed, free)][:BOUGHT]


# %% [markdown]
# Each round trains a model, measures it, and buys labels. Both strategies begin with the same
# labels.

# %%
accuracy = {"by triage": [], "at random": []}
for strategy, curves in accuracy.items():
    for seed in range(SEEDS):
        split, curve = first_split(seed), []
        for step in range(ROUNDS + 1):
            graph = truth.with_split(split)
            classifier = GPNClassifier(epochs=EPOCHS, random_state=seed).fit(graph)
            curve.append(classifier.score(graph, nodes=split.test))
            if step < ROUNDS:
                split = with_bought(split, chosen(strategy, classifier, split, 100 * seed + step))
        curves.append(curve)
    print(strategy, np.round(np.mean(curves, axis=0), 3))

# %%
labels = 2 * truth.num_classes + BOUGHT * np.arange(ROUNDS + 1)
lines = [Line(labels, np.mean(curves, axis=0), name) for name, curves in accuracy.items()]
axes = CurveAxes(x_title="training labels", y_title="test accuracy", is_percent=True)
chart = curve_chart("what-to-label-next", "Accuracy for labels bought", lines, axes)
chart.write("build/gallery/03_what_to_label_next.svg")
chart

# %% [markdown]
# **How to read it.** Both curves begin at the same point. The steeper one makes more of each
# label; read it horizontally as well: how many labels does the other curve need for the same
# accuracy? A mean of two starts is still noisy, so small differences mean nothing;
# `benchmarks/label_next.py` measures the strategies on real graphs and more seeds.
