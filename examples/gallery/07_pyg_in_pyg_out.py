# %% [markdown]
# # PyG in, PyG out
#
# If your graph is a `Data` of PyTorch Geometric, you need not convert anything by hand: the
# classifier accepts it and returns its predictions as tensors. If you build your own network,
# `AddTopKPPR` adds certified personalised-PageRank edges to the graph: how many neighbours per node
# does it need?

# %%
import os

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv

from gpn_scale import GPNClassifier, graph_from_pyg, load_graph
from gpn_scale.data.splits import stratified_split
from gpn_scale.interop import AddTopKPPR, to_pyg
from gpn_scale.page.curve_chart import CurveAxes, Line, curve_chart

SMALL = "GALLERY_SMALL" in os.environ  # tiny settings, to try the script
NODES, EPOCHS, KS = (400, 5, (1, 8)) if SMALL else (3000, 100, (1, 4, 16, 64, 256, 1024))

# %% [markdown]
# We need a `Data` like that of any PyG dataset. Here it comes from the synthetic graph, so that
# the example runs offline.

# %%
graph = load_graph(f"synthetic:nodes={NODES},classes=5,unseen_classes=0,separation=1.5,features=16")
data = to_pyg(stratified_split(graph, train=0.05, val=0.1, rng_seed=1))
assert isinstance(data, Data)
print(data)

# %% [markdown]
# In: `fit` takes the `Data` directly. Out: `to_pyg` puts the prediction beside the labels, with
# the concentrations `alpha` of every node's Dirichlet distribution.

# %%
classifier = GPNClassifier(epochs=EPOCHS, random_state=1).fit(data)
data = to_pyg(graph_from_pyg(data), classifier.predict(data))
right = (data.predicted_class == data.y)[data.test_mask]
print(f"GPN+: {right.float().mean():.1%} of the test nodes are right")
print(torch.distributions.Dirichlet(data.alpha[:3]))


# %% [markdown]
# Our own network averages features over the k nodes that a walk from the node visits most, and has
# a linear classifier on top. The transform adds the edges, their weights, and the missing mass of
# the rows.


# %%
def linear_accuracy(features: torch.Tensor) -> float:
    """Return the test accuracy of a linear classifier on `features`."""
    torch.manual_seed(1)
    model = torch.nn.Linear(features.shape[1], int(data.y.max()) + 1)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=1e-3)
    for _ in range(EPOCHS):
        optimiser.zero_grad()
        logits = model(features[data.train_mask])
        torch.nn.functional.cross_entropy(logits, data.y[data.train_mask]).backward()
        optimiser.step()
    predicted = model(features[data.test_mask]).argmax(1)
    return float((predicted == data.y[data.test_mask]).float().mean())


accuracy, held = [], []
for k in KS:
    rows = AddTopKPPR(k=k, teleport=0.15)(data)
    smooth = SimpleConv("sum")(rows.x, rows.ppr_edge_index, rows.ppr_edge_weight)
    accuracy.append(linear_accuracy(smooth))
    held.append(1.0 - float(rows.ppr_missing_mass.mean()))
    print(f"k = {k}: {accuracy[-1]:.1%} right, rows hold {held[-1]:.0%} of their mass")
print(f"without any neighbours: {linear_accuracy(data.x):.1%}")

# %%
powers = np.log2(KS)
ticks = {
    "title": "k, entries of a row",
    "values": powers.tolist(),
    "labelExpr": "pow(2, datum.value)",
}
axes = CurveAxes(x_title="k", y_title="fraction", x_axis=ticks, is_percent=True, y_range=(0.0, 1.0))
lines = [
    Line(powers, np.array(accuracy), "test accuracy of the linear model"),
    Line(powers, np.array(held), "mass of the rows that k entries hold, at least"),
]
chart = curve_chart("pyg-in-pyg-out", "How many entries does a row need?", lines, axes)
chart.write("build/gallery/07_pyg_in_pyg_out.svg")
chart

# %% [markdown]
# **How to read it.** The dashed curve is certified: the k entries hold at least this much of the
# exact row. The solid curve is the accuracy of a simple model on them. From mark to mark, rows take
# four times the memory. Both curves still rise at the right, since the rest of a row is spread over
# very many nodes. If you cannot afford the k that you would like, estimate the rest instead of
# dropping it, as minibatch mode does.
