"""Imbalance, overlap, and the convergence of DSNA's solver: Figures 1, 2 and 5 of Huang, Loy & Tang 2016."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy.stats import linregress
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from benchmarks.common.data import fit_rows
from benchmarks.common.items import Claim, Statement, Work
from benchmarks.dsna.ages import OBLIQUE, ONE
from benchmarks.dsna.subjects import Setting, Subjects, read_subjects
from ldl.charts.drawing import new_figure, save
from ldl.edges.bsds500 import BSDS500
from ldl.heads import DSNA, CostSensitiveForest
from ldl.jobs.store import Key, Result
from ldl.methods.dsna.clusters import gather_leaves
from ldl.methods.dsna.sparse import approximate

OLD, YEARS = 60, 10
NEIGHBOURS = 10
SIDE, CLASSES = 15, 150
"""Pixels of a patch of drawn edges, and classes of patches; sketch tokens have 35 and 150."""

Problem = tuple[Tensor, Tensor, Tensor]
STEPS = [*range(1, 11), 15, 20, 30, 40, 60]
NEAR = 0.01
"""A problem has converged if its objective is above the least one by at most this share."""
PROBLEMS = {"DSNA": ONE["attraction"], "AH": 0.0}
ALGORITHM_1: Setting = {**ONE, "clusters": 3, "start": "cluster"}
"""Algorithm 1 with the middle of the published range of clusters."""


def figure_1(work: Work) -> Iterator[Claim]:
    """Judge the imbalance of classes of edges, and draw it beside that of ages."""
    edges = work.result({"side": SIDE, "classes": CLASSES}, lambda: _edge_classes(4 if work.quick else 200))["counts"]
    falling = np.sort(edges)[::-1]
    rank = np.arange(1, len(falling) + 1)
    power, decay = (float(linregress(x, np.log(falling)).rvalue) ** 2 for x in (np.log(rank), rank))
    yield Statement(
        "edges, a power law: a class's size falls rather with a power of its rank than exponentially",
        power > decay, f"R^2 {power:.2f} against {decay:.2f}",
    )  # fmt: skip
    yield Statement("edges, the classes are imbalanced: the largest is ten times the smallest",
                    max(edges) >= 10 * min(edges), f"{max(edges) / min(edges):.0f} times")  # fmt: skip
    ages, counts = np.unique(read_subjects(False).values, return_counts=True)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.bar(ages, counts)
    left.set(xlabel="age in years", ylabel="images", title="FG-NET")
    right.bar(range(len(edges)), falling)
    right.set(xlabel="class of edges, by size", ylabel="patches", title="BSDS500")
    save(figure, work.folder / "imbalance.png")


def _edge_classes(images: int) -> Result:
    """Return the sizes of classes by k-means of patches of drawn edges, thickened, around drawn pixels."""
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


def figure_2(work: Work) -> Iterator[Claim]:
    """Judge the overlap of ages in the planes of PCA and LDA, and draw them."""
    subjects = read_subjects(False)
    values, old = subjects.values, subjects.values >= OLD
    planes = {
        "PCA": PCA(2).fit_transform(subjects.features),
        "LDA": LinearDiscriminantAnalysis(n_components=2).fit_transform(subjects.features, values // YEARS),
    }
    figure = Figure(figsize=(9, 4), layout="constrained")
    for (name, plane), axis in zip(planes.items(), figure.subplots(1, 2)):
        near = NearestNeighbors(n_neighbors=NEIGHBOURS + 1).fit(plane).kneighbors(plane[old], return_distance=False)
        others = float((~old[near[:, 1:]]).mean())
        yield Statement(
            f"{name}: most of the {NEIGHBOURS} neighbours of an image of {OLD} years and more are younger",
            others > 0.5, f"{others:.0%} of them",
        )  # fmt: skip
        for members, label, size in ((~old, f"below {OLD} years", 6), (old, f"{OLD} years and more", 40)):
            axis.scatter(*plane[members].T, s=size, label=label)
        axis.set(title=name)
        axis.legend()
    save(figure, work.folder / "planes.png")
    means = {which: subjects.features[rows].mean(0) for which, rows in (("old", old), ("others", ~old))}
    apart = float(np.linalg.norm(means["old"] - means["others"]))
    spread = float(np.linalg.norm(subjects.features[old] - means["old"], axis=1).mean())
    yield Statement(
        "the rare class varies much: its images lie farther from their mean than this from that of the others",
        spread > apart,
        f"{spread:.2f}, {apart:.2f}",
    )


def figure_5(work: Work) -> Iterator[Claim]:
    """Judge the objective over the iterations of the solver, and Algorithm 1's rounds."""
    subjects = read_subjects(work.quick)
    setting = {**OBLIQUE, "trees": 2 if work.quick else 20}
    key: Key = {"steps": STEPS, "setting": setting, "problems": PROBLEMS}
    found = work.result(key, partial(_solve, subjects, setting))
    figure, axis = new_figure(5.4, 4)
    for name in PROBLEMS:
        axis.semilogy(STEPS, found[name]["gaps"], label=name)
    axis.set(xlabel="iteration", ylabel="gap to the least objective, relative", title="a person of FG-NET, median")
    axis.legend()
    save(figure, work.folder / "convergence.png")
    after = {name: next((k for k, gap in zip(STEPS, found[name]["gaps"]) if gap < NEAR), None) for name in PROBLEMS}
    words = {name: f"{name} {k or f'more than {STEPS[-1]}'}" for name, k in after.items()}
    within = {name: k or STEPS[-1] + 1 for name, k in after.items()}
    yield Statement(f"DSNA comes within {NEAR:.0%} of its least objective in ten iterations", within["DSNA"] <= 10,
                    words["DSNA"], "typically within 10")  # fmt: skip
    yield Statement(
        "DSNA converges in fewer iterations than AH", within["DSNA"] < within["AH"], ", ".join(words.values())
    )
    ten = {name: found[name]["objective"][STEPS.index(10)] for name in PROBLEMS}
    shown = ", ".join(f"{name} {objective:.3f}" for name, objective in ten.items())
    yield Statement("after ten iterations DSNA's objective is below AH's, as medians", ten["DSNA"] < ten["AH"], shown)
    share = found["settled"]
    yield Statement(
        "Algorithm 1 settles within ten rounds for most queries", share > 0.5, f"{share:.0%} of the queries"
    )


def _solve(subjects: Subjects, setting: Setting) -> Result:
    """Solve for the images of one subject among the neighbours that a forest of the other subjects finds."""
    own = subjects.groups[subjects.rows] == subjects.groups[subjects.rows][0]
    train, test = subjects.rows[~own], subjects.rows[own]
    head = fit_rows(DSNA(**setting, tolerance=1e-4, seed=0), subjects.data, subjects.inputs, train)
    tested = subjects.inputs[test]
    found: Result = {}
    for name, pull in PROBLEMS.items():
        problem = _problem(subjects, head, train, tested, labels=name == "DSNA")
        sparsity = ONE["sparsity"]
        least = approximate(*problem, sparsity, pull, tolerance=1e-9).objective
        each = [
            approximate(*problem, sparsity, pull, tolerance=0.0, iterations=k, finished=False).objective for k in STEPS
        ]
        gaps = [float(((objective - least) / least).clamp_min(1e-12).median()) for objective in each]
        found[name] = {"objective": [float(objective.median()) for objective in each], "gaps": gaps}
    return found | {"settled": _settled(head, tested)}


@torch.no_grad()
def _problem(subjects: Subjects, head: DSNA, train: np.ndarray, tested: Tensor, labels: bool) -> Problem:
    """Return members, queries and anchors. Without labels all members weigh the same."""
    queries, estimates = head.map(tested), CostSensitiveForest.point_estimate(head, tested)
    assert estimates is not None
    near = gather_leaves(head.forest, head.leaves(tested))
    weight = near.real.double()
    share = weight / weight.sum(1, keepdim=True)
    points = head.points[near.rows]
    centre = share.unsqueeze(1) @ points
    members = (points - centre) * weight.unsqueeze(2)
    if not labels:
        return members, queries - centre.squeeze(1), share
    gap = (torch.from_numpy(subjects.values[train])[near.rows] - estimates[:, None]).abs()
    distance = (points - queries[:, None]).norm(dim=2) * gap
    anchors = (-distance).masked_fill(~near.real, -torch.inf).softmax(1)
    return members, queries - centre.squeeze(1), anchors


def _settled(head: DSNA, tested: Tensor) -> float:
    """Return the share of the queries whose estimate one more round than ten does not change."""
    estimates = []
    for rounds in (10, 11):
        for name, option in {**ALGORITHM_1, "rounds": rounds}.items():
            setattr(head, name, option)
        estimate = head.point_estimate(tested)
        assert estimate is not None
        estimates.append(estimate)
    return float((estimates[0] == estimates[1]).double().mean())
