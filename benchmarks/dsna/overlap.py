"""Imbalance and overlap of FG-NET's ages and of edges: Figures 1 and 2 of Huang, Loy & Tang 2016."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import linregress
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestNeighbors

from benchmarks.common.claims import Claim, Statement
from benchmarks.common.items import Work
from benchmarks.dsna.persons import read_people
from ldl.cells.store import Row
from ldl.charts.drawing import save
from ldl.data.edges.bsds500 import BSDS500

OLD, YEARS = 60, 10
NEIGHBOURS = 10
SIDE, CLASSES = 15, 150
"""Pixels of a patch of drawn edges, and classes into which patches fall; sketch tokens have 35 and 150."""


def figure1(work: Work) -> Iterator[Claim]:
    """Ages of FG-NET, and classes of edge patches."""
    people = read_people(False)
    ages, counts = np.unique(people.values, return_counts=True)
    facts = {
        "images": (len(people.values), 1002),
        "persons": (len(np.unique(people.persons)), 82),
        "years of the oldest": (int(ages.max()), 69),
        f"images of {OLD} years and more": (int((people.values >= OLD).sum()), 8),
    }
    for name, (ours, printed) in facts.items():
        yield Statement(f"FG-NET, {name}", ours == printed, str(ours), str(printed))
    above = np.setdiff1d(np.arange(OLD, ages.max()), ages)
    yield Statement("FG-NET, certain ages of 60 and more have no image", len(above) > 0, f"{len(above)} ages have none")
    edges = work.cell({"side": SIDE, "classes": CLASSES}, lambda: _edge_classes(4 if work.quick else 200))["counts"]
    power, decay = _fits(np.sort(edges)[::-1])
    yield Statement(
        "edges, a power law: a class's size falls rather with a power of its rank than exponentially",
        power > decay, f"R^2 {power:.2f} against {decay:.2f}",
    )  # fmt: skip
    yield Statement("edges, the classes are imbalanced: the largest is ten times the smallest",
                    max(edges) >= 10 * min(edges), f"{max(edges) / min(edges):.0f} times")  # fmt: skip
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.bar(ages, counts)
    left.set(xlabel="age in years", ylabel="images", title="FG-NET")
    right.bar(range(len(edges)), np.sort(edges)[::-1])
    right.set(xlabel="class of edges, by size", ylabel="patches", title="BSDS500")
    save(figure, work.folder / "imbalance.png")


def _edge_classes(images: int) -> Row:
    """How many patches fall into each class: k-means of drawn edges, thickened, around pixels that are drawn."""
    data = BSDS500(crop=32)
    data.setup()
    rng, half, patches = np.random.default_rng(0), SIDE // 2, []
    for row in data.split.train[:images]:
        drawn = np.asarray(data.read(row)[1].boundaries[0]) > 0
        inside = np.argwhere(drawn[half:-half, half:-half])
        for top, left in inside[rng.permutation(len(inside))[:100]]:
            patch = drawn[top : top + SIDE, left : left + SIDE].astype(np.float32)
            patches.append(patch.reshape(5, SIDE // 5, 5, SIDE // 5).mean((1, 3)).ravel())
    classes = KMeans(min(CLASSES, len(patches) // 4), n_init=1, max_iter=50, random_state=0).fit(np.array(patches))
    return {"counts": np.bincount(classes.labels_).tolist()}


def _fits(counts: np.ndarray) -> tuple[float, float]:
    """R^2 of the logarithm of falling counts over the logarithm of the rank, and over the rank."""
    rank = np.arange(1, len(counts) + 1)
    power, decay = (float(linregress(x, np.log(counts)).rvalue) ** 2 for x in (np.log(rank), rank))
    return power, decay


def figure2(work: Work) -> Iterator[Claim]:
    """Planes of PCA and LDA."""
    people = read_people(False)
    values, old = people.values, people.values >= OLD
    decades = values // YEARS
    planes = {
        "PCA": PCA(2).fit_transform(people.features),
        "LDA": LinearDiscriminantAnalysis(n_components=2).fit_transform(people.features, decades),
    }
    figure = Figure(figsize=(9, 4), layout="constrained")
    for (name, plane), axis in zip(planes.items(), figure.subplots(1, 2)):
        near = NearestNeighbors(n_neighbors=NEIGHBOURS + 1).fit(plane).kneighbors(plane[old], return_distance=False)
        others = float((~old[near[:, 1:]]).mean())
        yield Statement(
            f"{name}: most of the {NEIGHBOURS} neighbours of a picture of {OLD} years and more are younger",
            others > 0.5, f"{others:.0%} of them",
        )  # fmt: skip
        for members, label in ((~old, f"below {OLD} years"), (old, f"{OLD} years and more")):
            axis.scatter(*plane[members].T, s=6 if label.startswith("below") else 40, label=label)
        axis.set(title=name)
        axis.legend()
    save(figure, work.folder / "planes.png")
    means = {which: people.features[rows].mean(0) for which, rows in (("old", old), ("others", ~old))}
    apart = float(np.linalg.norm(means["old"] - means["others"]))
    spread = float(np.linalg.norm(people.features[old] - means["old"], axis=1).mean())
    yield Statement(
        "the rare class varies much: its pictures lie farther from their mean than this from that of the others",
        spread > apart,
        f"{spread:.2f}, {apart:.2f}",
    )
