# %% [markdown]
# # A graph that changes
#
# Edges are added and removed every day, and nodes join. You need not rebuild the rows or train the
# model from scratch: an update computes only those rows that may have moved, and training continues
# from yesterday's weights. This example shows which nodes have moved and which have not.

# %%
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpn_scale import GPNClassifier, PPRStore, build_graph, load_graph
from gpn_scale.config import PPRConfig
from gpn_scale.data.earlier_nodes import EarlierNodes
from gpn_scale.data.splits import stratified_split
from gpn_scale.page.chart import HEIGHT, WIDTH, Chart
from gpn_scale.page.palette import LIGHT
from gpn_scale.recipes import recipe_for
from precompute.build import build_store

SMALL = "GALLERY_SMALL" in os.environ  # tiny settings, to try the script
NODES, EPOCHS = (500, 5) if SMALL else (5000, 150)
rng = np.random.default_rng(1)

# %% [markdown]
# Yesterday, there were a graph, its rows, and a model.

# %%
yesterday = load_graph(f"synthetic:nodes={NODES},classes=4,unseen_classes=0,features=16")
yesterday = stratified_split(yesterday, train=0.1, val=0.1, rng_seed=1)
folder = Path(tempfile.mkdtemp())
config = recipe_for(yesterday.name, yesterday)
build_store(yesterday, PPRConfig(diffusion=config.diffusion, k=16, clusters=8), folder / "store")
model = GPNClassifier(epochs=EPOCHS, random_state=1).fit(yesterday)
before = model.predict(yesterday)

# %% [markdown]
# Today, ten nodes have eight new neighbours each, all of one class, and ten nodes have joined. Old
# nodes keep their positions, and new ones follow.

# %%
joined = 10
moved = rng.choice(yesterday.split.test, 10, replace=False)
stranger = np.flatnonzero(yesterday.labels == 0)
source = [np.repeat(np.arange(NODES), yesterday.out_degree), np.repeat(moved, 8)]
source.append(np.repeat(np.arange(NODES, NODES + joined), 3))
target = [yesterday.indices, rng.choice(stranger, 8 * len(moved))]
target.append(rng.integers(NODES, size=3 * joined))
today = build_graph(
    np.concatenate(source),
    np.concatenate(target),
    name=yesterday.name,
    features=np.concatenate([yesterday.features, yesterday.features[:joined]]),
    labels=np.append(yesterday.labels, np.full(joined, -1)),
    num_classes=yesterday.num_classes,
    marks=yesterday.marks,
)
roles = EarlierNodes.of(yesterday).grown_split_of(today, train=0.1, val=0.1, rng_seed=1)
today = replace(today, split=roles)

# %% [markdown]
# The update bounds the movement of every row, recomputes those that may have moved by more than
# the tolerance, and keeps the others with their bounds.

# %%
store = PPRStore.open(folder / "store").update(today, tolerance=0.05)
computed = store.history[-1]["computed_rows"]
print(f"{computed:,} of {today.num_nodes:,} rows were computed again")
kept = store.moved(np.arange(NODES))
print(f"rows that stayed have moved by at most {kept.max():.3f}")

# %% [markdown]
# Training continues from yesterday's weights. Nodes that had a label keep their roles, so no node
# of yesterday's training is tested today.

# %%
warm = GPNClassifier(model.config, epochs=EPOCHS // 5).fit(today, warm_start=model)
after = warm.predict(today)
epochs = {name: len(part) for name, part in warm.history_.items()}
print(f"epochs of the warm start: {epochs}")
test = roles.test
print(f"accuracy yesterday {model.score(yesterday):.1%}, today {warm.score(today, nodes=test):.1%}")

# %% [markdown]
# How far did predictions move? We measure the distance between the two distributions over
# classes: 0 if they are equal, 1 if they are disjoint.

# %%
distance = 0.5 * np.abs(after.probabilities[:NODES] - before.probabilities).sum(1)
others = np.setdiff1d(yesterday.split.test, moved)
print(f"median distance: {np.median(distance[moved]):.2f} for nodes with new neighbours, ", end="")
print(f"{np.median(distance[others]):.2f} for others")

# %%
shown = {
    "new neighbours": moved,
    "others": rng.choice(others, min(600, len(others)), replace=False),
}
values = [
    {"x": float(before.p.known[v]), "y": float(distance[v]), "group": name}
    for name, nodes in shown.items()
    for v in nodes
]
percent = {"format": ".0%", "tickCount": 5}
chart = Chart(
    name="a-graph-that-changes",
    title="How far predictions have moved since yesterday",
    description="Movement of predictions over yesterday's p_known, nodes with new neighbours apart",
    specification={
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": values},
        "mark": {"type": "point", "filled": True, "size": 36, "opacity": 0.7},
        "encoding": {
            "x": {
                "field": "x",
                "type": "quantitative",
                "axis": percent | {"title": "p_known yesterday"},
            },
            "y": {
                "field": "y",
                "type": "quantitative",
                "axis": percent | {"title": "distance of both predictions"},
            },
            "color": {
                "field": "group",
                "type": "nominal",
                "scale": {"domain": list(shown), "range": [LIGHT["hue-3"], LIGHT["hue-0"]]},
                "legend": {"symbolType": "circle", "symbolSize": 60},
            },
            "shape": {
                "field": "group",
                "type": "nominal",
                "scale": {"domain": list(shown), "range": ["diamond", "circle"]},
                "legend": None,
            },
        },
    },
)
chart.write("build/gallery/05_a_graph_that_changes.svg")
chart

# %% [markdown]
# **How to read it.** Every point is a test node; the higher it is, the more its prediction has
# moved. Most nodes stay at the bottom. Diamonds are the nodes with new neighbours, which is why
# they are high up. A circle far up has moved without new edges of its own: the new model decides
# differently there, or its neighbourhood has changed further away. `gpn-report --compare` tests
# for a whole graph whether more has moved than chance explains.
