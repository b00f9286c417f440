"""MIL-Boost finds where the digit lies without being told: alignment errors and equal error rates.

    python benchmarks/boosting/shifted_digits.py [--data digits|faces] [--trials 10] [--methods ...]

Protocol (Babenko et al. 2008, Section 3.1): 1,000 pictures of 44 x 44, half of them the digit 3, 10% for training
(faces: 800, half for training); bags of windows of 28 x 28, in training every second one in each direction (the paper
says "several overlapping"), in tests all 17 x 17; 64 stumps from 1,000 random Haar features;
means over ten trials. The alignment error is std(l* - l) in pixels, over both axes, of the true and the found shifts of
the positive test pictures with p > .25, whose share is given; beside it the error along the plane, which is sqrt(2)
times as large where both axes err alike. The found place is the mean place of the windows under their odds exp(2 h).
AdaBoost (scikit-learn's) learns from the crops at their true places; as scores it has h, half the sum of its weighted
votes, as probability of a bag its greatest sigmoid(2 h); "not aligned" learns from the middle windows.

The stumps of all but "cut by the bound" are cut by the weighted error, as in the paper's Fig. 6; features balanced.

Sharpness, step, cut and how places are found were chosen for LSE on the digits of other draws (--draw_seed 100 to
104), and serve the other soft maxima and the faces as they are. Fits that are in the folder already are read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import roc_curve
from sklearn.tree import DecisionTreeClassifier
from torch import Tensor

from benchmarks.boosting.trials import add_options, run_trials, tabulate
from benchmarks.common.command import launch, make_parser
from ldl import charts
from ldl.backbones.haar import Haar
from ldl.cells.store import Row
from ldl.collective import current_collective
from ldl.data import ShiftedDigits, ShiftedFaces
from ldl.data.trials.trials import Trials
from ldl.heads import MILBoost
from ldl.methods.boosting.places import locate
from ldl.methods.boosting.pooling import pool_logits

DATA: dict[str, tuple[Any, int]] = {"digits": (ShiftedDigits, 28), "faces": (ShiftedFaces, 43)}
"""Data module and side of the windows."""
MAIN = "LSE, real"
METHODS: dict[str, dict[str, Any]] = {
    MAIN: {"pooling": "lse", "r": 150.0},
    "LSE, real, cut by the bound": {"pooling": "lse", "r": 150.0, "cut": "bound"},
    "LSE, discrete": {"pooling": "lse", "r": 150.0, "real": False},
    "GM, real": {"pooling": "gm", "r": 20.0},
    "NOR, real": {"pooling": "nor"},
    "ISR, real": {"pooling": "isr"},
}
HEAD: dict[str, Any] = {"cut": "error", "max_step": 0.25}
ALIGNED, CENTRED = "AdaBoost, aligned", "AdaBoost, not aligned"
MEASURES = {
    "alignment": ("alignment error [px]", 3),
    "plane": ("in the plane [px]", 3),
    "share": ("share with p > .25", 3),
    "eer": ("equal error rate", 3),
}
STUMPS, POOL = 64, 1000


def equal_error_rate(score: np.ndarray, positive: np.ndarray) -> float:
    """Where as many negatives are accepted as positives are refused."""
    false, true, _ = roc_curve(positive, score)
    nearest = np.abs(false - (1 - true)).argmin()
    return float((false[nearest] + 1 - true[nearest]) / 2)


def errors(maps: np.ndarray, p: np.ndarray, data: Trials) -> dict[str, Any]:
    """Alignment errors, share with p > .25 and equal error rate, of the test pictures."""
    test = data.split.test
    positive = data.positive[test]
    used = positive & (p > 0.25)
    offset = (data.truth[test] - locate(maps))[used]
    variance = offset.var(0) if len(offset) else np.full(2, np.nan)
    return {
        "alignment": float(np.sqrt(variance.mean())),
        "plane": float(np.sqrt(variance.sum())),
        "share": float(used.sum() / positive.sum()),
        "eer": equal_error_rate(p, positive),
    }


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
    head = MILBoost(**{**HEAD, **options}, rounds=STUMPS, threads=1, seed=0)
    head.build(features.shape[-1], data.labels)
    head.fit(features, data.columns["target"][data.split.train], current_collective())
    columns = (head.feature, head.threshold, head.low, head.high)
    return [(int(f), t, low, high) for f, t, low, high in zip(*(column.tolist() for column in columns))], float(
        head.start
    )


def ada_boost(rows: np.ndarray, positive: np.ndarray) -> tuple[list[Stump], float]:
    """Stumps of AdaBoost on single windows (n, F); half their weighted votes, so that sigmoid(2 h) is a probability."""
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=STUMPS).fit(rows, positive)
    stumps: list[Stump] = []
    for tree, weight in zip(model.estimators_, model.estimator_weights_):
        _, low, high = np.sign(tree.tree_.value[:, 0, 1] - tree.tree_.value[:, 0, 0]) * weight / 2
        stumps.append((int(tree.tree_.feature[0]), float(tree.tree_.threshold[0]), float(low), float(high)))
    return stumps, 0.0


def crops(images: Tensor, places: np.ndarray, window: int) -> Tensor:
    """The windows of pictures (n, 1, H, W) at places (n, 2)."""
    pairs = zip(images, places)
    return torch.stack([image[:, down : down + window, right : right + window] for image, (down, right) in pairs])


def trial(data: Trials, window: int, number: int, method: str, stride: int, folder: Path) -> dict[str, Any]:
    """Measures of one method on one trial, with the equal error rate after every stump."""
    train, test = data.split.train, data.split.test
    haar = Haar(POOL, window=window, balanced=True, seed=number)
    haar.build(data.input_shape)
    if method in METHODS:
        options = METHODS[method]
        haar.stride = stride
        stumps, start = mil_boost(haar(data.images[train]), data, options)
        pooling, r = options["pooling"], options.get("r", 1.0)
    else:
        middle = np.full_like(data.truth[train], (data.input_shape[2] - window) // 2)
        places = data.truth[train] if method == ALIGNED else middle
        stumps, start = ada_boost(haar(crops(data.images[train], places, window))[:, 0].numpy(), data.positive[train])
        pooling, r = None, 1.0
    rates = []
    for h in staged(stumps, start, haar, data.images[test]):
        p = (torch.sigmoid(2 * h.amax(1)) if pooling is None else pool_logits(2 * h, pooling, r)[1].exp()).numpy()
        rates.append(equal_error_rate(p, data.positive[test]))
    maps = h.numpy().reshape(len(test), -1, data.input_shape[2] - window + 1)
    if number == 0:
        shown = np.flatnonzero(data.positive[test])[:8]
        name = method.lower().replace(", ", "_").replace(" ", "_")
        places, rows = locate(maps[shown]), test[shown]
        pictures = data.images[rows, 0].numpy()
        charts.score_maps(folder / f"maps_{name}.png", pictures, maps[shown], places, window, true=data.truth[rows])
    return {**errors(maps, p, data), "curve": rates}


def main() -> None:
    """Measure what is missing, then write the table and the equal error rates of every round."""
    parser = make_parser(__doc__, block="shifted_digits, or shifted_faces")
    parser.add_argument("--data", choices=DATA, default="digits")
    parser.add_argument("--r", type=float, help="sharpness instead of the chosen one, for the choice")
    parser.add_argument("--stride", type=int, default=2, help="pixels between the windows of training bags")
    add_options(parser, [*METHODS, ALIGNED, CENTRED], left_out=[CENTRED])
    options = parser.parse_args()
    torch.set_num_threads(1)
    out = options.out or Path(f"runs/benchmark_shifted_{options.data}")
    out.mkdir(parents=True, exist_ok=True)
    if options.r:
        for arguments in METHODS.values():
            arguments.update({"r": options.r} if "r" in arguments else {})
    module, window = DATA[options.data]
    data = module(draw_seed=options.draw_seed, folds=options.trials)
    data.setup()

    def measure(number: int, method: str) -> Row:
        return trial(data, window, number, method, options.stride, out)

    def shown(row: Row) -> Row:
        return {name: round(row[name], 3) for name in MEASURES}

    settings = {"data": options.data, "stride": options.stride, "r": options.r}
    results = run_trials(data, options, out, measure, shown, settings)
    curves = {}
    for method, trials in results.items():
        # Boosting may end before the last round; its curve then stays where it is.
        padded = [np.pad(curve := row["curve"], (0, STUMPS - len(curve)), "edge") for row in trials]
        curves[method] = np.mean(padded, 0)
    charts.error_curves(out / "equal_error_rates.png", curves, f"mean of {options.trials} trials")
    tabulate(results, MEASURES, out, options.page, f"shifted_{options.data}")


if __name__ == "__main__":
    launch(main)
