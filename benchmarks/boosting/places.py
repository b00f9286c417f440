"""Where MIL-Boost finds objects without being told: one method on one trial of digits or faces (Section 3.1).

1,000 pictures of 44 x 44, half of them the digit 3, 10% for training (faces: 800, half for training); bags of windows
of 28 x 28, in training every second one in each direction (faces: of 43 x 43, every third; the paper says "several
overlapping"), in tests all of them; stumps from 1,000 random Haar features. Stumps are cut by the weighted error, as in
the paper's Fig. 6. AdaBoost (scikit-learn's) learns from the crops at their true places, or from the middle windows
where it is not aligned; as scores it has h, half the sum of its weighted votes, and a bag its greatest sigmoid(2 h).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from scipy.special import expit
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import roc_curve
from sklearn.tree import DecisionTreeClassifier
from torch import Tensor

from ldl import charts
from ldl.backbones.haar import Haar
from ldl.collective import current_collective
from ldl.data.trials.trials import Trials
from ldl.heads import MILBoost
from ldl.methods.boosting.places import locate
from ldl.methods.boosting.pooling import pool_logits

ADA_BOOST = "AdaBoost, aligned", "AdaBoost, not aligned"
SMOOTHING = 4.0
"""Deviation in pixels of the Gaussian that smoothes a map before its peak is taken; the paper says none. Chosen for
MIL-Boost as printed on digits of other draws (draw_seed 100 to 102), and so was to smooth probabilities, not h."""


@dataclass(frozen=True)
class Scale:
    """Sizes of a trial.

    Attributes:
        window: Side of the windows in pixels.
        stride: Pixels between the windows of training bags.
        stumps: That are boosted.
        pool: Haar features that they choose from.
    """

    window: int
    stride: int
    stumps: int = 64
    pool: int = 1000


def equal_error_rate(score: np.ndarray, positive: np.ndarray) -> float:
    """Where as many negatives are accepted as positives are refused."""
    false, true, _ = roc_curve(positive, score)
    nearest = np.abs(false - (1 - true)).argmin()
    return float((false[nearest] + 1 - true[nearest]) / 2)


def errors(maps: np.ndarray, p: np.ndarray, data: Trials) -> dict[str, float]:
    """Of the test pictures, whose windows have h (n, rows, columns) and which have p (n,).

    Returns:
        ``alignment``: std(l* - l) in pixels, over both axes, of the true and the found shifts of the positives with
        p > .25, where the found place is the mean of the windows under their odds exp(2 h); ``peak``: the same where it
        is the peak of the smoothed map, as in the paper; ``share`` of the positives that these are; ``eer``, the equal
        error rate. Alignment errors are NaN where no positive has p > .25.
    """
    test = data.split.test
    positive = data.positive[test]
    used = positive & (p > 0.25)
    found = {"alignment": locate(maps), "peak": peaks(maps)}
    spreads = {name: (data.truth[test] - places)[used].var(0) for name, places in found.items() if used.any()}
    return {
        **{name: float(np.sqrt(spreads[name].mean())) if name in spreads else np.nan for name in found},
        "share": float(used.sum() / positive.sum()),
        "eer": equal_error_rate(p, positive),
    }


def peaks(maps: np.ndarray) -> np.ndarray:
    """Row and column (n, 2) of the peak of smoothed probabilities, 0 outside, from h of windows (n, rows, columns)."""
    smooth = gaussian_filter(expit(2 * maps), (0, SMOOTHING, SMOOTHING), mode="constant")
    return np.stack(np.unravel_index(smooth.reshape(len(maps), -1).argmax(1), maps.shape[1:]), 1)


Stump = tuple[int, float, float, float]
"""Feature, threshold, and what the stump says up to the threshold and above."""


def staged(stumps: list[Stump], start: float, haar: Haar, pictures: Tensor) -> Iterator[Tensor]:
    """h of all windows of pictures, (n, J), after every stump; only the features that stumps ask for are computed."""
    used = [stump[0] for stump in stumps]
    part = Haar(len(used), window=haar.window, seed=0)
    part.build(tuple(pictures.shape[1:]))
    part.corners, part.weights = haar.corners[used], haar.weights[used]
    features = torch.cat([part(some) for some in pictures.split(100)])
    h = torch.full(features.shape[:2], start, dtype=torch.float64)
    for column, (_, threshold, low, high) in enumerate(stumps):
        h += torch.where(features[:, :, column] <= threshold, low, high)
        yield h


def mil_boost(features: Tensor, data: Trials, options: dict[str, Any]) -> tuple[list[Stump], float]:
    """Stumps and start of a head that is fitted on the training bags (N, J, F)."""
    head = MILBoost(**options, threads=1, seed=0)
    head.build(features.shape[-1], data.labels)
    head.fit(features, data.columns["target"][data.split.train], current_collective())
    columns = (head.feature, head.threshold, head.low, head.high)
    return [(int(f), t, low, high) for f, t, low, high in zip(*(column.tolist() for column in columns))], float(
        head.start
    )


def ada_boost(rows: np.ndarray, positive: np.ndarray, stumps: int) -> tuple[list[Stump], float]:
    """Stumps of AdaBoost on single windows (n, F); half their weighted votes, so that sigmoid(2 h) is a probability."""
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=stumps).fit(rows, positive)
    made: list[Stump] = []
    for tree, weight in zip(model.estimators_, model.estimator_weights_):
        _, low, high = np.sign(tree.tree_.value[:, 0, 1] - tree.tree_.value[:, 0, 0]) * weight / 2
        made.append((int(tree.tree_.feature[0]), float(tree.tree_.threshold[0]), float(low), float(high)))
    return made, 0.0


def crops(images: Tensor, places: np.ndarray, window: int) -> Tensor:
    """The windows of pictures (n, 1, H, W) at places (n, 2)."""
    pairs = zip(images, places)
    return torch.stack([image[:, down : down + window, right : right + window] for image, (down, right) in pairs])


def trial(data: Trials, scale: Scale, method: str, options: dict[str, Any], chart: Path | None) -> dict[str, Any]:
    """What :func:`errors` tells of the selected trial, and ``curve``, the equal error rate after every stump.

    Args:
        data: Set up.
        scale: Sizes.
        method: One of ``ADA_BOOST``, or any other name: MIL-Boost.
        options: The head's, and ``stride``, the pixels between the windows of its training bags.
        chart: Where to draw what was found in some pictures, or None.
    """
    train, test = data.split.train, data.split.test
    haar = Haar(scale.pool, window=scale.window, balanced=True, seed=data.fold)
    haar.build(data.input_shape)
    pooling, r = None, 1.0
    if method in ADA_BOOST:
        middle = np.full_like(data.truth[train], (data.input_shape[2] - scale.window) // 2)
        places = middle if "not" in method else data.truth[train]
        rows = haar(crops(data.images[train], places, scale.window))[:, 0].numpy()
        stumps, start = ada_boost(rows, data.positive[train], scale.stumps)
    else:
        head = {"cut": "error", "max_step": 0.25, "rounds": scale.stumps, **options}
        haar.stride = head.pop("stride", scale.stride)
        stumps, start = mil_boost(haar(data.images[train]), data, head)
        pooling, r = head["pooling"], head.get("r", 1.0)
    rates = []
    for h in staged(stumps, start, haar, data.images[test]):
        p = (torch.sigmoid(2 * h.amax(1)) if pooling is None else pool_logits(2 * h, pooling, r)[1].exp()).numpy()
        rates.append(equal_error_rate(p, data.positive[test]))
    maps = h.numpy().reshape(len(test), -1, data.input_shape[2] - scale.window + 1)
    if chart:
        shown = np.flatnonzero(data.positive[test])[:8]
        rows = test[shown]
        pictures, places = data.images[rows, 0].numpy(), locate(maps[shown])
        charts.score_maps(chart, pictures, maps[shown], places, scale.window, true=data.truth[rows])
    # Boosting may end before the last round; its curve then stays where it is.
    return {**errors(maps, p, data), "curve": rates + rates[-1:] * (scale.stumps - len(rates))}
