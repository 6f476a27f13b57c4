# %% [markdown]
# # Certified personalised PageRank alone
#
# Recommendation and retrieval often need just one thing: the nodes most related to a root.
# `topk_ppr` takes edges as arrays and returns ids, weights, and a bound on everything that
# is not in the list. No model, no labels, no torch. The example makes its own graph;
# docs/ppr_engine.md does the same for web-Google.

# %%
import os

import numpy as np
import scipy.sparse

from gpn_scale.page.chart import WIDTH, Chart
from gpn_scale.page.palette import LIGHT
from precompute import topk_ppr

SMALL = "GALLERY_SMALL" in os.environ  # tiny settings, to try the script
ITEMS, K, TELEPORT, SHOWN = (300, 20, 0.3, 12) if SMALL else (20_000, 50, 0.3, 12)
rng = np.random.default_rng(1)

# %% [markdown]
# The graph has items on a shelf that are bought together: most pairs are close to each other, and
# some consist of an item and a popular one far away.

# %%
popular = rng.pareto(1.5, size=ITEMS) + 0.1
first = np.repeat(np.arange(ITEMS), 4)
near = np.clip(first + rng.integers(-5, 6, size=len(first)), 0, ITEMS - 1)
far = rng.choice(ITEMS, len(first), p=popular / popular.sum())
edges = np.stack([first, np.where(rng.random(len(first)) < 0.95, near, far)])

# %% [markdown]
# One call for as many roots as you like. The first one compiles the kernels, once per machine.

# %%
roots = rng.choice(ITEMS, 100, replace=False)
rows = topk_ppr(edges, roots, k=K, teleport=TELEPORT, directed=False)
distance = np.abs(rows.ids - roots[:, None])
print(f"rows hold {rows.weights.sum(1).mean():.0%} of their mass")
print(f"{rows.is_certain.sum(1).mean():.1f} of {K} entries are proved to be among the {K} largest")
print(f"{np.mean(distance <= 10):.0%} of the listed items stand within ten places of the root")

# %% [markdown]
# To check this, we compute the exact row of one root with a sparse solver.

# %%
shape = (ITEMS, ITEMS)
pairs = scipy.sparse.coo_array((np.ones(edges.shape[1]), tuple(edges)), shape).tocsr()
pairs = ((pairs + pairs.T) > 0).astype(np.float64).tolil()
pairs.setdiag(0)
walk = pairs.tocsr()
degree = np.maximum(np.asarray(walk.sum(1)).ravel(), 1)
place = int(np.argsort(rows.missing_mass)[len(roots) // 2])  # a usual one
root = int(roots[place])
step = (scipy.sparse.diags_array(1 / degree) @ walk).T.tocsr()
exact = np.zeros(ITEMS)
exact[root] = 1.0
start = exact.copy()
for _ in range(150):
    exact = TELEPORT * start + (1 - TELEPORT) * (step @ exact)

ids, weights, missing = rows.ids[place], rows.weights[place], rows.missing_mass[place]
largest = set(np.argsort(-exact)[:K].tolist())
print(f"{len(largest & set(ids.tolist()))} of the {K} largest entries of root {root} are listed")
print(f"no weight is too large: {bool((weights <= exact[ids] * (1 + 1e-7)).all())}")
print(f"missing: {1 - exact[ids].sum():.4f} of the exact row, bound {missing:.4f}")

# %%
values = [
    {
        "item": f"item {node}" + (" (root)" if node == root else ""),
        "low": float(weight),
        "high": float(min(1.0, weight + missing)),
        "exact": float(exact[node]),
    }
    for node, weight in zip(ids[:SHOWN].tolist(), weights[:SHOWN].tolist(), strict=True)
]
y = {
    "field": "item",
    "type": "nominal",
    "sort": None,
    "axis": {"title": None, "ticks": False, "labelColor": LIGHT["ink"]},
}
axis = {"title": "weight in the row", "format": ".0%", "grid": True, "tickCount": 5}
x = {"type": "quantitative", "axis": axis}
chart = Chart(
    name="certified-ppr",
    title=f"The largest entries of the row of item {root}",
    description="Certified intervals of the weights of a row, and the exact weights",
    specification={
        "width": WIDTH,
        "height": {"step": 18},
        "data": {"values": values},
        "encoding": {"y": y},
        "layer": [
            {
                "mark": {"type": "rule", "color": LIGHT["hue-5"], "strokeWidth": 5, "opacity": 0.5},
                "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "tick", "color": LIGHT["hue-0"], "thickness": 3, "size": 13},
                "encoding": {"x": x | {"field": "low"}},
            },
            {
                "mark": {"type": "point", "shape": "circle", "color": LIGHT["hue-3"], "size": 50},
                "encoding": {"x": x | {"field": "exact"}},
            },
        ],
    },
)
chart.write("build/gallery/08_certified_ppr.svg")
chart

# %% [markdown]
# **How to read it.** These are the twelve largest entries of the row. The dark tick is the returned
# weight, which is never above the exact one. The pale bar is what the certificate leaves open: the
# exact weight, the ring, lies on it, in practice at its left end. An entry whose weight is at
# least `missing_mass`, the length of a bar, is proved to be among the k largest.
