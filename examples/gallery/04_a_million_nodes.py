# %% [markdown]
# # Where does the time go on a large graph?
#
# The memory of training on batches grows little with the graph: the influence of other nodes on
# a node is computed once, as a short row of weights, and stored. This example generates a graph of
# 100,000 nodes, computes the rows, trains on batches of them, and predicts all nodes.
# `GALLERY_NODES=1000000 python examples/gallery/04_a_million_nodes.py` does the same for a million
# nodes; how long that takes has not been measured.

# %%
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from gpn_scale import GPNClassifier, PPRStore, load_graph
from gpn_scale.config import PPRConfig
from gpn_scale.data.splits import stratified_split
from gpn_scale.page.dot_chart import Dot, dot_chart
from gpn_scale.recipes import recipe_for
from precompute.build import build_store

SMALL = "GALLERY_SMALL" in os.environ  # tiny settings, to try the script
NODES, EPOCHS = (600, 1) if SMALL else (100_000, 15)
NODES = int(os.environ.get("GALLERY_NODES", NODES))
seconds = {}


def lap(name: str, began: float) -> None:
    """Note the seconds of a step, and print them with the memory so far."""
    seconds[name] = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{name}: {seconds[name]:.1f} s, at most {memory:.2f} GB so far")


# %% [markdown]
# The graph has features, 2 % of its nodes for training and 5 % for validation, and some unknown
# nodes to find later.

# %%
began = time.perf_counter()
graph = load_graph(f"synthetic:nodes={NODES},classes=8,features=16")
graph = stratified_split(graph, train=0.02, val=0.05, rng_seed=1)
lap("make the graph", began)
print(graph)

# %% [markdown]
# A row holds the 16 nodes with the largest weights for a node, and the mass that was cut, per
# cluster of the graph. `gpn-precompute` does the same from the command line, on many machines if
# necessary, and continues after a crash.

# %%
folder = Path(tempfile.mkdtemp())
config = recipe_for(graph.name, graph)
began = time.perf_counter()
build_store(graph, PPRConfig(diffusion=config.diffusion, k=16, clusters=16), folder / "store")
lap("compute the rows", began)
store = PPRStore.open(folder / "store")
print(f"a row holds {1 - np.mean(store.missing_mass):.0%} of its mass on average")

# %% [markdown]
# Training reads batches of rows. The tail that the rows cut off is estimated, since lost evidence
# would look like uncertainty.

# %%
began = time.perf_counter()
classifier = GPNClassifier(mode="minibatch", epochs=EPOCHS, random_state=1)
classifier.fit(graph, store=store)
lap("train", began)

began = time.perf_counter()
prediction = classifier.predict(graph)
lap("predict all nodes", began)
print(f"accuracy on test nodes: {classifier.score(graph, nodes=graph.split.test[:20_000]):.1%}")
for mark, nodes in graph.marks.items():
    print(f"{mark}: median p_known {np.median(prediction.p.known[nodes]):.3f}")

# %%
dots = [Dot(name, 1e6 * value / NODES) for name, value in seconds.items()]
chart = dot_chart(
    "a-million-nodes",
    f"Where the time goes, {NODES:,} nodes",
    dots,
    "microseconds per node",
)
chart.write("build/gallery/04_a_million_nodes.svg")
chart

# %% [markdown]
# **How to read it.** The numbers are microseconds per node. Rows are computed once and used for any
# number of trainings; the time of an epoch grows with the training and validation nodes, not with
# all nodes. In a benchmark with graphs of one and of ten million nodes, the time per node of these
# steps grew by 13 to 28 % (benchmarks/results/minibatch_scaling_2cores_202611.md).
