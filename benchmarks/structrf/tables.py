"""Tables 4 to 19 and 21, Figure 4 and Section 4.4 of Chen et al. 2018."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.common.items import Claim, Number, Statement, Work
from benchmarks.structrf.methods import (
    BASELINES,
    METRICS,
    PRINTED,
    PUBLISHED,
    SETS,
    fold_metrics,
    forest_metrics,
)
from ldl.charts.drawing import save
from ldl.jobs.store import Result
from ldl.search.statistics import mean_and_std, sign_of

WITHOUT_SCALING = ("Natural_Scene", "SBU_3DFE", "Movie")
"""Large sets, on which SA-IIS was not run."""

DEPTHS = (5, 10, 15, 20, 25)
PANELS: dict[str, tuple[tuple[float, ...], dict[str, Any]]] = {
    "sampling": ((0.2, 0.4, 0.6, 0.8, 1.0), {"trees": 20}),
    "trees": ((10, 20, 50, 100), {"sampling": 0.8}),
}
"""Figure 4: the option in which the curves of a panel differ, its values, and the options of all curves."""
SLIGHT = 0.01
"""A relative fall by less than this share counts as none."""

LARGEST = 0.0003
"""Table 21: the largest printed difference."""
MODEST = 0.1
"""Table 21: a difference below this share of the standard deviation over folds is modest."""
TABLE_21_FOLDS = 3


def metrics_of_a_set(work: Work, name: str) -> Iterator[Claim]:
    """One of Tables 4 to 18: judge StructRF, and show the other methods and the mean baseline beside it."""
    yield from _numbers("StructRF", forest_metrics(work, name), name)
    for method in _methods(name):
        yield from _numbers(method, [fold_metrics(work, name, method, 0)], name)
    yield from _numbers("mean baseline", [fold_metrics(work, name, "mean baseline", 0)])


def _methods(name: str) -> list[str]:
    return [method for method in BASELINES if method != "SA-IIS" or name not in WITHOUT_SCALING]


def _numbers(method: str, rows: list[Result], name: str = "") -> Iterator[Claim]:
    for metric in METRICS:
        ours = tuple(row[metric] for row in rows)
        mean, deviation = PRINTED[name, method][metric] if name else (None, None)
        yield Number(f"{method}, {metric}", ours, mean, deviation, sign_of(metric) > 0, baseline=method != "StructRF")


def table_19(work: Work) -> Iterator[Claim]:
    """StructRF on Movie by further metrics."""
    rows = forest_metrics(work, "Movie")
    for metric, (mean, deviation) in PUBLISHED["table_19"].items():
        yield Number(metric, tuple(row[metric] for row in rows), mean, deviation, sign_of(metric) > 0)


def orders(work: Work) -> Iterator[Claim]:
    """Section 4.4: StructRF is ahead of SA-BFGS, SA-IIS and RF on all metrics."""
    for method in BASELINES:
        names = [name for name in (("SJAFFE",) if work.quick else SETS) if method in _methods(name)]
        pairs = [(name, metric) for name in names for metric in METRICS]
        ahead = sum(_ahead(work, *pair, method) for pair in pairs)
        printed = sum(_printed_ahead(*pair, method) for pair in pairs)
        yield Statement(
            f"StructRF is better than {method} on all measures of all sets", ahead >= printed,
            f"on {ahead} of {len(pairs)}", f"on {printed} of {len(pairs)}",
        )  # fmt: skip


def _ahead(work: Work, name: str, metric: str, method: str) -> bool:
    ours, theirs = (fold_metrics(work, name, each, 0)[metric] for each in ("StructRF", method))
    return bool(sign_of(metric) * (ours - theirs) < 0)


def _printed_ahead(name: str, metric: str, method: str) -> bool:
    ours, theirs = (PRINTED[name, each][metric][0] for each in ("StructRF", method))
    return sign_of(metric) * (ours - theirs) <= 0


def figure_4(work: Work) -> Iterator[Claim]:
    """Judge what Section 4.4 says of both panels, and draw them."""
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    curves = {panel: _curves(work, panel) for panel in PANELS}
    for axis, panel in zip(figure.subplots(1, 2, sharey=True), PANELS):
        for value, curve in zip(PANELS[panel][0], curves[panel]):
            axis.plot(DEPTHS, curve, marker="o", label=f"{panel} {value}")
        axis.set(xlabel="maximal depth", ylabel="Chebyshev distance")
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize=8)
    save(figure, work.folder / "figure4.png")

    sampled, grown = curves["sampling"], curves["trees"]
    yield _falls("the distance falls as depth rises to 20", sampled[-2, 0], sampled[-2, 3])
    yield _stays("and no further, from depth 20 to 25", sampled[-2, 3], sampled[-2, 4])
    yield _falls("it falls as the sampling ratio rises to 0.8", sampled[0, 3], sampled[3, 3])
    yield _stays("and no further, from 0.8 to 1", sampled[3, 3], sampled[4, 3])
    yield _falls("it falls as there are more trees, up to 50", grown[0, 3], grown[2, 3])
    yield _stays("and no further, from 50 trees to 100", grown[2, 3], grown[3, 3])
    changes = grown[:, 3] / grown[:, 0] - 1
    alike = bool(np.ptp(changes[1:]) < SLIGHT)
    words = ", ".join(f"{100 * change:+.1f}% with {trees:g}" for trees, change in zip(PANELS["trees"][0], changes))
    yield Statement("curves of 20 trees and more have the same shape", alike, f"from depth 5 to 20 {words}")
    worse = bool((grown[:, 0] > grown[:, 3]).all() and (sampled[:, 0] > sampled[:, 3]).all())
    yield Statement("depth 5 is poor: it underfits", worse, f"{grown[2, 0]:.4f} with 50 trees, {grown[2, 3]:.4f} at 20")


def _curves(work: Work, panel: str) -> np.ndarray:
    """Return the Chebyshev distances of a panel on fold 0 of SBU_3DFE, (curves, depths)."""
    values, fixed = PANELS[panel]
    points = [[{**fixed, panel: value, "depth": depth} for depth in DEPTHS] for value in values]
    return np.array(
        [[forest_metrics(work, "SBU_3DFE", 1, **options)[0]["chebyshev"] for options in curve] for curve in points]
    )


def _falls(name: str, before: float, after: float) -> Statement:
    return Statement(name, bool(after / before - 1 < -SLIGHT), f"{before:.4f}, then {after:.4f}")


def _stays(name: str, before: float, after: float) -> Statement:
    return Statement(name, bool(abs(after / before - 1) < SLIGHT), f"{before:.4f}, then {after:.4f}")


def table_21(work: Work) -> Iterator[Claim]:
    """Judge whether the adaptive step costs a forest as little as printed, and whether that is modest."""
    names = ("SJAFFE",) if work.quick else tuple(PUBLISHED["table_21"])
    shares = []
    for name in names:
        exact, adaptive = (
            np.array([[row[metric] for metric in METRICS] for row in forest_metrics(work, name, TABLE_21_FOLDS, **way)])
            for way in ({}, {"search": "adaptive"})
        )
        found = exact - adaptive
        mean, error = found.mean(0), found.std(0, ddof=min(1, len(found) - 1)) / np.sqrt(len(found))
        words = ", ".join(f"{m} {a:+.4f} ± {b:.4f}" for m, a, b in zip(METRICS, mean, error))
        printed = ", ".join(PUBLISHED["table_21"][name].split())
        small = bool((np.abs(mean) < LARGEST + 5e-5).all())
        yield Statement(f"{name}: the differences are no larger than printed", small, words, printed)
        deviation = [mean_and_std(column)[1] for column in exact.T]
        shares.append(max(np.abs(mean) / np.maximum(deviation, 1e-12)))
    worst = max(shares)
    yield Statement(
        "the difference is quite modest: below a tenth of the deviation over folds", bool(worst < MODEST),
        f"at most {100 * worst:.0f}% of it, {names[int(np.argmax(shares))]}",
    )  # fmt: skip
