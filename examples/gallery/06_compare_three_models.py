# %% [markdown]
# # Compare three models
#
# All models of the library, the paper's and newer ones, have the same interface, so a comparison
# is a loop. This one compares GPN+ (the default), the paper's GPN, and APPNP, a plain graph
# network whose only uncertainty is that of its softmax. Two questions: how often is the class
# right, and which model notices nodes of a class that training has never seen?

# %%
import os

import numpy as np

from gpn_scale import load_graph
from gpn_scale.data.splits import stratified_split
from gpn_scale.evaluation.metrics import auroc
from gpn_scale.models.registry import setting_of
from gpn_scale.page.dot_chart import Dot, dot_chart
from gpn_scale.recipes import recipe_for

SMALL = "GALLERY_SMALL" in os.environ  # tiny settings, to try the script
NODES, EPOCHS, SEEDS = (400, 5, 1) if SMALL else (3000, 150, 3)
MODELS = {"GPN+": "p_known", "GPN": "epistemic", "APPNP": "aleatoric"}  # and the score of each

# %% [markdown]
# The declared score of each model is chosen beforehand: the p-value of GPN+, the total evidence
# of GPN, the largest probability of APPNP. All scores grow with uncertainty. The area under the
# ROC curve is the probability that an unknown node gets a higher score than a known one; 50 % is
# chance.

# %%
accuracy = {name: [] for name in MODELS}
detection = {name: [] for name in MODELS}
for seed in range(1, SEEDS + 1):
    graph = load_graph(f"synthetic:nodes={NODES},classes=5,separation=2.5,rng_seed={seed}")
    graph = stratified_split(graph, train=0.05, val=0.1, rng_seed=seed)
    test, unseen = graph.split.test, graph.marks["unseen_class"]
    changes = [("train.epochs", str(EPOCHS)), ("train.rng_seed", str(seed))]
    for name, score in MODELS.items():
        model = setting_of(name, recipe_for(graph.name, graph), changes, graph).new().fit(graph)
        prediction = model.predict(graph)
        accuracy[name].append(np.mean(prediction.predicted_class[test] == graph.labels[test]))
        nodes = np.concatenate([test, unseen])
        is_unknown = np.arange(len(nodes)) >= len(test)
        detection[name].append(auroc(is_unknown, prediction.score(score)[nodes]))
for name in MODELS:
    print(f"{name}: accuracy {np.mean(accuracy[name]):.1%}, AUC-ROC {np.mean(detection[name]):.1%}")

# %%
dots = []
for title, values in (("right class", accuracy), ("unseen class noticed", detection)):
    best = max(values, key=lambda name: np.mean(values[name]))
    for name in MODELS:
        mean, spread = 100 * np.mean(values[name]), 100 * np.std(values[name]) / np.sqrt(SEEDS)
        dots.append(Dot(f"{title}: {name}", mean, spread, is_best=name == best))
chart = dot_chart(
    "compare-three-models",
    "Accuracy, and AUC-ROC of unseen classes",
    dots,
    "percent, mean and standard error",
)
chart.write("build/gallery/06_compare_three_models.svg")
chart

# %% [markdown]
# **How to read it.** The upper three rows compare how often the class of a known node is right,
# the lower three how well an unknown class is noticed; the diamond is the best of each three, the
# line its standard error over the graphs. A model can be good at one and bad at the other.
# The leaderboard does this with real graphs, more models and five sets of unseen classes.
