"""Figure 7 of Peng et al. 2018: SJAFFE in the first two dimensions of MSLP's embedding and of others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import fmean

from matplotlib.figure import Figure
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from torch import Tensor

from benchmarks.common.data import FOLDS, inputs_of
from benchmarks.common.items import Claim, Number, Statement, Work
from benchmarks.mslp.choice import open_set
from benchmarks.mslp.embeddings import Embedded, mslp
from benchmarks.mslp.tables import PROJECTIONS
from ldl.charts.drawing import save
from ldl.methods.embedding import nearest

SET = "SJAFFE"
EMBEDDERS = {"MSLP": mslp, **{name: PROJECTIONS[name] for name in ("LPP", "PCA", "CCA", "NPE")}}
"""All with their default options."""
KINDS = {
    "beside its like": "share beside their like",
    "of distances": "correlation of distances",
    "unseen, beside its like": "share of unseen rows beside their like",
}


def figure_7(work: Work) -> Iterator[Claim]:
    """Draw fold 0, and judge how well the planes of all folds separate labels."""
    folds = range(1 if work.quick else FOLDS)
    rows = {
        name: [work.result({"method": name, "fold": fold}, partial(_measure, name, fold)) for fold in folds]
        for name in EMBEDDERS
    }
    _draw(work.folder / "figure7.png")
    means = {name: {kind: fmean(row[kind] for row in rows[name]) for kind in KINDS} for name in rows}
    for kind in list(KINDS)[:2]:
        words = ", ".join(f"{name} {means[name][kind]:.3f}" for name in ("MSLP", "LPP"))
        claim = f"MSLP gathers points with similar label distributions more than LPP, by their {KINDS[kind]}"
        yield Statement(claim, means["MSLP"][kind] > means["LPP"][kind], words)
    for name in rows:
        for kind, what in KINDS.items():
            yield Number(f"{name}, {what}", tuple(row[kind] for row in rows[name]), lower=False, digits=3)


def _embed(name: str, fold: int) -> tuple[Embedded, Tensor, Tensor]:
    """Return the training rows of a fold in two dimensions, and the features and distributions of its test rows."""
    data = open_set(SET, "standard", fold)
    inputs, target = inputs_of(data).double(), data.columns["target"].double()
    train, test = data.split.train, data.split.test
    return EMBEDDERS[name](inputs[train], target[train], 2), inputs[test], target[test]


def _measure(name: str, fold: int) -> dict[str, float]:
    """Return how well two dimensions, each divided by its standard deviation, separate labels.

    The first and third of KINDS are shares of training and test rows whose nearest training row has the same strongest
    label. The second is Spearman's correlation of the distances of training rows in the plane and between their
    distributions.
    """
    embedded, unseen, true = _embed(name, fold)
    spread = embedded.points.std(0)
    points, others = embedded.points / spread, embedded.embed(unseen) / spread
    strongest = embedded.distributions.argmax(1)
    beside = strongest[nearest(points, points, 1, exclude_self=True)[:, 0]] == strongest
    unseen_beside = strongest[nearest(others, points, 1)[:, 0]] == true.argmax(1)
    distances = pdist(points.numpy()), pdist(embedded.distributions.numpy())
    found = float(beside.double().mean()), float(spearmanr(*distances).statistic), float(unseen_beside.double().mean())
    return dict(zip(KINDS, found))


def _draw(path: Path) -> None:
    names = open_set(SET, "standard", 0).labels.names
    figure = Figure(figsize=(4 * len(EMBEDDERS), 4.5), layout="constrained")
    for axis, title in zip(figure.subplots(1, len(EMBEDDERS)), EMBEDDERS):
        embedded = _embed(title, 0)[0]
        points = (embedded.points / embedded.points.std(0)).numpy()
        strongest = embedded.distributions.argmax(1).numpy()
        for label, name in enumerate(names):
            axis.scatter(*points[strongest == label].T, s=8, alpha=0.7, label=f"label {name}", color=f"C{label}")
        axis.set(title=title, xlabel="first dimension", ylabel="second dimension")
    figure.legend(*axis.get_legend_handles_labels(), loc="outside right upper", markerscale=2)
    save(figure, path)
