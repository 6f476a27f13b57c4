# %% [markdown]
# # Which nodes does the model not know?
#
# A classifier always answers. This example trains a model on a graph in which some nodes are
# unknown to it on purpose: nodes of a class without labels, and nodes with features unlike all
# others. It then computes the p-value `p_known` of every node: the fraction of known nodes that
# look at least as strange. The graph is synthetic, so the truth is known.

# %%
import os

import numpy as np

from gpn_scale import GPNClassifier, load_graph
from gpn_scale.data.splits import stratified_split
from gpn_scale.page.histogram_chart import histogram_chart
from gpn_scale.page.histograms import histogram_of

SMALL = "GALLERY_SMALL" in os.environ  # tiny settings, to try the script
NODES, EPOCHS = (400, 10) if SMALL else (4000, 200)

graph = load_graph(f"synthetic:nodes={NODES},classes=5,foreign=0.03,features=16")
graph = stratified_split(graph, train=0.1, val=0.1, rng_seed=1)
print(graph)
print({mark: len(nodes) for mark, nodes in graph.marks.items()})

# %% [markdown]
# Training sees a tenth of the labels; another tenth is used for early stopping and to calibrate
# the p-values. The unknown nodes are part of the graph, but they have no labels, and nothing tells
# the model that they are special.

# %%
classifier = GPNClassifier(epochs=EPOCHS, random_state=1).fit(graph)
prediction = classifier.predict(graph)
print(f"accuracy on test nodes: {classifier.score(graph, nodes=graph.split.test):.1%}")

# %% [markdown]
# These are the ten strangest nodes, with the reason in words. If the graph had ids of its own,
# `node_name` would hold them.

# %%
frame = prediction.to_frame(graph)
columns = ["node", "predicted_class", "alpha_0", "p_known", "reason"]
print(frame.sort_values("p_known")[columns].head(10).to_string(index=False))

# %% [markdown]
# If you review every node with a p-value below 5 %, how many known nodes do you review
# unnecessarily, and how many unknown ones do you find?

# %%
groups = {
    "known test nodes": prediction.p.known[graph.split.test],
    "unseen class": prediction.p.known[graph.marks["unseen_class"]],
    "foreign features": prediction.p.known[graph.marks["foreign_features"]],
}
for name, p_known in groups.items():
    print(f"{name}: {np.mean(p_known < 0.05):.0%} have p_known below 5 %")

# %%
chart = histogram_chart(
    "which-nodes-are-unknown",
    "P-values of known and unknown nodes",
    histogram_of(groups, bins=20),
    "p_known",
    kind="percent",
)
chart.write("build/gallery/01_which_nodes_are_unknown.svg")
chart

# %% [markdown]
# **How to read it.** For known nodes the p-value is spread evenly over 0 to 100 %, by
# construction: 5 % of them are below 5 %, which is the rate of false alarms that you choose.
# Unknown nodes cluster at the left. The further left a group is, the easier it is to find; nodes
# in the right half look like known nodes in every respect that the model can see.
