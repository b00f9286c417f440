"""Section 3.1 and Figure 8 of Babenko et al. 2008: MIL-Boost finds objects at random places in digits or faces.

A trial: 1,000 images of 44 x 44, half of them the digit 3, 10% for training (faces: 800, half for training). Bags are
windows of 28 x 28, in training every second window in each direction (faces: of 43 x 43, every third; the paper says
"several overlapping"), in tests all of them. Stumps choose from 1,000 random Haar features and are cut by the weighted
error, as in the paper's Fig. 6. AdaBoost (scikit-learn's) learns from crops at the true places or, if not aligned,
from the middle windows. Its score is h, half the sum of its weighted votes; a bag has its largest sigmoid(2 h).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from scipy.special import expit
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import roc_curve
from sklearn.tree import DecisionTreeClassifier
from torch import Tensor

from benchmarks.boosting.trials import Methods, found, values
from benchmarks.common.items import Claim, Number, Statement, Work, ahead, read_published
from ldl import charts
from ldl.backbones.haar import Haar
from ldl.bags import MILBoost
from ldl.bags.pooling import locate, pool_logits
from ldl.charts.drawing import new_figure, save
from ldl.collective import current_collective
from ldl.data import ShiftedDigits, ShiftedFaces
from ldl.data.synthetic import Trials
from ldl.jobs.store import Result
from ldl.methods.rows import Rows

ALIGNED, CENTRED = ADA_BOOST = "AdaBoost, aligned", "AdaBoost, not aligned"
LSE: dict[str, Any] = {"pooling": "lse", "r": 150.0}
MAIN = "LSE, real"
POOLINGS: Methods = {
    MAIN: LSE,
    "GM, real": {"pooling": "gm", "r": 20.0},
    "NOR, real": {"pooling": "nor"},
    "ISR, real": {"pooling": "isr"},
    "LSE, discrete": {**LSE, "real": False},
}
PLAIN = "LSE, r 20, steps as long as the line search finds"
FREE: Methods = {PLAIN: {**LSE, "r": 20.0, "max_step": 100.0}}
BASELINES: Methods = {ALIGNED: {}, CENTRED: {}}
EARLY = 4
"""Number of stumps whose error is compared with that of all."""
SMOOTHING = 4.0
"""Standard deviation in pixels of the Gaussian that smoothes a map before its peak is taken. The paper states none;
this one, and smoothing probabilities instead of h, were chosen for MIL-Boost as printed on digits of other draws."""


@dataclass(frozen=True)
class Scale:
    """Sizes of a trial.

    Attributes:
        window: Side of the windows in pixels.
        stride: Pixels between the windows of training bags.
        stumps: Number of boosted stumps.
        pool: Number of Haar features to choose from.
    """

    window: int
    stride: int
    stumps: int = 64
    pool: int = 1000


SHIFTED: dict[str, tuple[type[Trials], Scale]] = {
    "digits": (ShiftedDigits, Scale(28, 2)),
    "faces": (ShiftedFaces, Scale(43, 3)),
}


def figure_8(work: Work, kind: str) -> Iterator[Claim]:
    """Judge equal error rates, and draw their curves."""
    rows = _found(work, kind, {**POOLINGS, **BASELINES})
    curves = {method: np.mean([row["curve"] for row in each], 0) for method, each in rows.items()}
    figure, axis = new_figure(6, 4)
    for method, curve in curves.items():
        axis.plot(np.arange(1, len(curve) + 1), curve, label=method)
    title = f"mean of {len(rows[MAIN])} trials"
    axis.set(xlabel="stumps", ylabel="equal error rate", title=title, ylim=(0, None))
    axis.legend(fontsize=9)
    save(figure, work.folder / "equal_error_rates.png")
    rates = {method: values(each, "eer") for method, each in rows.items()}
    yield _less("MIL-Boost errs less than AdaBoost on data that are not aligned (d)", rates, MAIN, CENTRED)
    few, many = (curves[MAIN][stumps - 1] for stumps in (EARLY, len(curves[MAIN])))
    words = f"{few:.3f} after {EARLY} stumps, {many:.3f} after {len(curves[MAIN])}"
    yield Statement("MIL-Boost errs less the more weak classifiers (c)", bool(many < few), words)
    if kind == "faces":
        yield _less("AdaBoost with aligned data has the lower error (text)", rates, ALIGNED, MAIN)
    for method, each in rates.items():
        yield Number(f"{method}, equal error rate", each, digits=3)


def alignment(work: Work, kind: str) -> Iterator[Claim]:
    """Judge the alignment errors of the text. Printed numbers of faces are not judged, since the faces are others."""
    rows = _found(work, kind, {**POOLINGS, **FREE, **BASELINES})
    published = read_published("boosting")["alignment"][kind]
    for ours, place, words in ((MAIN, "alignment", ""), (PLAIN, "peak", "as printed: ")):
        errors = {"MIL-Boost": values(rows[ours], place), "AdaBoost": values(rows[ALIGNED], place)}
        for name, each in errors.items():
            theirs = published[name] if kind == "digits" else None
            yield Number(f"{words}{name}", each, theirs, digits=2, baseline=name == "AdaBoost")
        printed = ", ".join(f"{name} {error:.2f}" for name, error in published.items())
        yield _less(f"{words}MIL-Boost aligns better than AdaBoost", errors, "MIL-Boost", "AdaBoost", printed)
    for method, trials in rows.items():
        if method not in (MAIN, ALIGNED):
            yield Number(method, values(trials, "alignment"), digits=2)


def _found(work: Work, kind: str, methods: Methods) -> dict[str, list[Result]]:
    module, scale = SHIFTED[kind]
    scale = Scale(scale.window, scale.stride, 4, 50) if work.quick else scale
    return found(work, f"places_{kind}", module, methods, partial(_trial, scale))


def _less(claim: str, errors: dict[str, tuple[float, ...]], ours: str, other: str, theirs: str = "") -> Statement:
    """Judge whether the error of one method is below that of another, over the trials."""
    words = ", ".join(f"{method} {fmean(errors[method]):.3f}" for method in (ours, other))
    return ahead(claim, errors[ours], errors[other], words, theirs)


def _trial(scale: Scale, data: Trials, method: str, options: dict[str, Any], chart: Path | None) -> Result:
    """Return the results of :func:`_errors` and ``curve``, the equal error rate after every stump."""
    train, test = data.split.train, data.split.test
    haar = Haar(scale.pool, window=scale.window, balanced=True, seed=data.fold)
    haar.build(data.input_shape)
    pooling, r = None, 1.0
    if method in ADA_BOOST:
        middle = np.full_like(data.truth[train], (data.input_shape[2] - scale.window) // 2)
        places = middle if method == CENTRED else data.truth[train]
        rows = haar(_crops(data.images[train], places, scale.window))[:, 0].numpy()
        stumps, start = _ada_boost(rows, data.positive[train], scale.stumps)
    else:
        head = {"cut": "error", "max_step": 0.25, "rounds": scale.stumps, **options}
        haar.stride = scale.stride
        stumps, start = _mil_boost(haar(data.images[train]), data, head)
        pooling, r = head["pooling"], head.get("r", 1.0)
    rates = []
    for h in _staged(stumps, start, haar, data.images[test]):
        p = (torch.sigmoid(2 * h.amax(1)) if pooling is None else pool_logits(2 * h, pooling, r)[1].exp()).numpy()
        rates.append(_equal_error_rate(p, data.positive[test]))
    maps = h.numpy().reshape(len(test), -1, data.input_shape[2] - scale.window + 1)
    if chart:
        shown = np.flatnonzero(data.positive[test])[:8]
        chosen = test[shown]
        images, places = data.images[chosen, 0].numpy(), locate(maps[shown])
        charts.score_maps(chart, images, maps[shown], places, scale.window, true=data.truth[chosen])
    # Boosting may end before the last round; the curve then stays constant.
    return {**_errors(maps, p, data), "curve": rates + rates[-1:] * (scale.stumps - len(rates))}


Stump = tuple[int, float, float, float]
"""Feature, threshold, and the values up to the threshold and above it."""


def _mil_boost(features: Tensor, data: Trials, options: dict[str, Any]) -> tuple[list[Stump], float]:
    """Return the stumps and the start of a head that is fitted on the training bags (N, J, F)."""
    head = MILBoost(**options, threads=1, seed=0)
    head.build(features.shape[-1], data.labels)
    head.fit(Rows(features, data.columns["target"][data.split.train]), current_collective())
    columns = (column.tolist() for column in (head.feature, head.threshold, head.low, head.high))
    return [(int(feature), *rest) for feature, *rest in zip(*columns)], float(head.start)


def _ada_boost(rows: np.ndarray, positive: np.ndarray, stumps: int) -> tuple[list[Stump], float]:
    """Return AdaBoost's stumps on windows (n, F), with half their weighted votes: sigmoid(2 h) is a probability."""
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=stumps, random_state=0)
    model.fit(rows, positive)
    made: list[Stump] = []
    for tree, weight in zip(model.estimators_, model.estimator_weights_):
        _, low, high = np.sign(tree.tree_.value[:, 0, 1] - tree.tree_.value[:, 0, 0]) * weight / 2
        made.append((int(tree.tree_.feature[0]), float(tree.tree_.threshold[0]), float(low), float(high)))
    return made, 0.0


def _crops(images: Tensor, places: np.ndarray, window: int) -> Tensor:
    """Cut the windows of images (n, 1, H, W) at places (n, 2)."""
    pairs = zip(images, places)
    return torch.stack([image[:, down : down + window, right : right + window] for image, (down, right) in pairs])


def _staged(stumps: list[Stump], start: float, haar: Haar, images: Tensor) -> Iterator[Tensor]:
    """Yield h of all windows of images, (n, J), after every stump. Only features that stumps use are computed."""
    used = [stump[0] for stump in stumps]
    part = Haar(len(used), window=haar.window, seed=0)
    part.build(tuple(images.shape[1:]))
    part.corners, part.weights = haar.corners[used], haar.weights[used]
    features = torch.cat([part(some) for some in images.split(100)])
    h = torch.full(features.shape[:2], start, dtype=torch.float64)
    for column, (_, threshold, low, high) in enumerate(stumps):
        h += torch.where(features[:, :, column] <= threshold, low, high)
        yield h


def _errors(maps: np.ndarray, p: np.ndarray, data: Trials) -> dict[str, float]:
    """Return the errors of the test images, whose windows have h (n, rows, columns) and which have p (n,).

    ``alignment`` is std(l* - l) in pixels, over both axes, of the true and the found shifts of the positives with p >
    .25, where the found place is the mean of the windows under their odds exp(2 h). For ``peak`` it is the peak of the
    smoothed map, as in the paper. Both are NaN if no positive has p > .25. ``eer`` is the equal error rate.
    """
    test = data.split.test
    positive = data.positive[test]
    used = positive & (p > 0.25)
    smooth = gaussian_filter(expit(2 * maps), (0, SMOOTHING, SMOOTHING), mode="constant")
    peaks = np.stack(np.unravel_index(smooth.reshape(len(maps), -1).argmax(1), maps.shape[1:]), 1)
    places = {"alignment": locate(maps), "peak": peaks}
    spreads = {name: (data.truth[test] - place)[used].var(0) for name, place in places.items() if used.any()}
    return {
        **{name: float(np.sqrt(spreads[name].mean())) if name in spreads else np.nan for name in places},
        "eer": _equal_error_rate(p, positive),
    }


def _equal_error_rate(score: np.ndarray, positive: np.ndarray) -> float:
    false, true, _ = roc_curve(positive, score)
    nearest = np.abs(false - (1 - true)).argmin()
    return float((false[nearest] + 1 - true[nearest]) / 2)
