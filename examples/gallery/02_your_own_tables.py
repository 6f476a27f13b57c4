# %% [markdown]
# # Your own tables: the Debian archive
#
# Two raw tables are enough: one of nodes with columns of any kind, one of edges. Here, the nodes
# are the packages of the Debian archive, the edges are their dependencies, and the class of a
# package is its section: games, python, fonts. Which packages look as if they were in the wrong
# section? A Debian machine has the lists of packages, so this runs offline. **On any other
# machine the script writes tables of a made-up archive itself**, with a few packages in the wrong
# section on purpose.

# %%
import csv
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from gpn_scale import GPNClassifier, Graph
from gpn_scale.data.splits import stratified_split
from gpn_scale.page.dot_chart import Dot, dot_chart

SMALL = "GALLERY_SMALL" in os.environ  # tiny settings, to try the script
PACKAGES, EPOCHS = (300, 10) if SMALL else (6000, 150)
folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(1)

# %% [markdown]
# The lists of a Debian machine, if it has any: `apt-cache dumpavail` prints them in blocks of
# `Field: value`. The packages of the eight largest sections are kept, at most as many as
# `PACKAGES` says.


# %%
def debian_packages() -> list[dict[str, str]]:
    """Return the fields of every package that the machine knows of; [] on other machines."""
    if SMALL or shutil.which("apt-cache") is None:
        return []
    done = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=False)
    packages = []
    for block in done.stdout.split("\n\n"):
        pairs = (line.partition(": ") for line in block.splitlines() if line[:1] not in ("", " "))
        packages.append({name: value for name, _, value in pairs})
    return [package for package in packages if "Section" in package]


def made_up_packages(count: int) -> list[dict[str, str]]:
    """Return packages of a small archive; a twentieth of them states another section."""
    sections = ["games", "python", "fonts", "libs", "science", "sound"]
    packages = []
    for number in range(count):
        section = sections[number % len(sections)]
        near = [number - len(sections) * step for step in rng.integers(1, 9, size=2)]
        needs = [f"package-{other}" for other in [*near, int(rng.integers(count))] if other >= 0]
        stated = rng.choice(sections) if rng.random() < 0.05 else section
        words = [f"{section}-{rng.integers(20)}", f"word-{rng.integers(40)}"]
        packages.append(
            {
                "Package": f"package-{number}",
                "Section": str(stated),
                "Installed-Size": str(int(rng.lognormal(6 + sections.index(section) / 3))),
                "Maintainer": f"{section} team" if rng.random() < 0.6 else f"person {number % 50}",
                "Description": " ".join(words),
                "Depends": ", ".join(needs),
            }
        )
    return packages


packages = debian_packages() or made_up_packages(PACKAGES)
sections, counts = np.unique([p["Section"] for p in packages], return_counts=True)
largest = set(sections[np.argsort(-counts)][:8])
packages = [package for package in packages if package["Section"] in largest]
packages = [packages[i] for i in sorted(rng.permutation(len(packages))[:PACKAGES])]
print(f"{len(packages):,} packages, the first of them {packages[0]['Package']}")

# %% [markdown]
# The two tables, as any export would write them. Columns may be numbers, categories, dates or
# texts, and may have gaps.

# %%
with (folder / "packages.csv").open("w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file)
    writer.writerow(["package", "section", "installed_size", "maintainer", "description"])
    for package in packages:
        fields = ("Package", "Section", "Installed-Size", "Maintainer", "Description")
        writer.writerow([package.get(field, "") for field in fields])
with (folder / "dependencies.csv").open("w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file)
    writer.writerow(["package", "needs"])
    for package in packages:
        for need in filter(None, package.get("Depends", "").split(", ")):
            writer.writerow([package["Package"], need.split()[0].split(":")[0]])

# %% [markdown]
# One call makes the graph. Dependencies on packages that are not in the table are dropped,
# because the call says so; otherwise they would be refused, all of them in one list. Each column
# is prepared by its kind, and the model keeps the rule.

# %%
graph = Graph.from_tables(
    folder / "packages.csv",
    folder / "dependencies.csv",
    id="package",
    label="section",
    source="package",
    target="needs",
    unknown_ids="drop",
    name="archive",
)
graph = stratified_split(graph, train=0.3, val=0.2, rng_seed=1)
print(graph)
classifier = GPNClassifier(epochs=EPOCHS, random_state=1).fit(graph)
prediction = classifier.predict(graph)

# %% [markdown]
# Suspects: test packages whose stated section the model finds least probable, among those that it
# otherwise knows well.

# %%
test = graph.split.test
stated = prediction.probabilities[test, graph.labels[test]]
known = prediction.p.known[test] > 0.2
for node in test[known][np.argsort(stated[known])][:10]:
    looks = prediction.predicted_class[node]
    section, other = graph.class_names[graph.labels[node]], graph.class_names[looks]
    sure = prediction.probabilities[node, looks]
    print(f"{graph.node_names[node]:<32} {section:<12} looks like {other} ({sure:.0%})")

# %%
dots = []
for label, section in enumerate(graph.class_names):
    right = prediction.predicted_class[test][graph.labels[test] == label] == label
    error = 1.96 * np.sqrt(right.mean() * (1 - right.mean()) / max(len(right), 1))
    dots.append(Dot(f"{section} ({len(right)})", 100 * right.mean(), 100 * error))
chart = dot_chart(
    "your-own-tables",
    "Sections that the model recognises",
    sorted(dots, key=lambda dot: -dot.value),
    "test packages with the stated section, percent",
)
chart.write("build/gallery/02_your_own_tables.svg")
chart

# %% [markdown]
# **How to read it.** Each row is a section, with its number of test packages; the dot is the
# percentage of them that the model assigns to their stated section, the line its 95 % interval. A
# section far to the right has distinctive words, maintainers and dependencies. One far to the left
# is not well separated from others, so a suspect in it deserves less attention than one in a
# section at the top.
