"""Figure 4 of Chen et al. 2018: Chebyshev distance on SBU_3DFE over depth, sampling ratio and number of trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.common.claims import Claim, Statement
from benchmarks.common.items import Work
from benchmarks.structrf.methods import fold_scores, folds_of
from ldl.charts.drawing import save

DEPTHS = (5, 10, 15, 20, 25)
PANELS: dict[str, tuple[tuple[float, ...], dict[str, Any]]] = {
    "sampling": ((0.2, 0.4, 0.6, 0.8, 1.0), {"trees": 20}),
    "trees": ((10, 20, 50, 100), {"sampling": 0.8}),
}
"""What the curves of a panel differ in, and what is the same in all of them."""
FOLDS = 1
SLIGHT = 0.01
"""A fall by less than this share is no significant one."""

PROTOCOL = (
    "SBU_3DFE, fold 0 of `KFold(10, shuffle=True, random_state=0)`, seed 0. A fall by less "
    "than a hundredth counts as none."
)


def curves(work: Work, panel: str) -> np.ndarray:
    """Mean Chebyshev distances of a panel, (curves, depths)."""
    values, fixed = PANELS[panel]
    return np.array(
        [
            [
                np.mean([
                    fold_scores(work, "SBU_3DFE", "StructRF", fold, depth=depth, **{**fixed, panel: value})["chebyshev"]
                    for fold in range(folds_of(work, FOLDS))
                ])
                for depth in DEPTHS
            ]
            for value in values
        ]
    )  # fmt: skip


def figure_4(work: Work) -> Iterator[Claim]:
    """What section 4.4 says of both panels; a chart of them lies in the item's folder."""
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    for axis, panel in zip(figure.subplots(1, 2, sharey=True), PANELS):
        for value, curve in zip(PANELS[panel][0], curves(work, panel)):
            axis.plot(DEPTHS, curve, marker="o", label=f"{panel} {value}")
        axis.set_xlabel("maximal depth")
        axis.set_ylabel("Chebyshev distance")
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize=8)
    save(figure, work.folder / "figure4.png")

    sampled, grown = curves(work, "sampling"), curves(work, "trees")
    yield falls("the distance falls as depth rises to 20", sampled[-2, 0], sampled[-2, 3])
    yield stays("and no further, from depth 20 to 25", sampled[-2, 3], sampled[-2, 4])
    yield falls("it falls as the sampling ratio rises to .8", sampled[0, 3], sampled[3, 3])
    yield stays("and no further, from .8 to 1", sampled[3, 3], sampled[4, 3])
    yield falls("it falls as there are more trees, up to 50", grown[0, 3], grown[2, 3])
    yield stays("and no further, from 50 trees to 100", grown[2, 3], grown[3, 3])
    changes = grown[:, 3] / grown[:, 0] - 1
    alike = bool(np.ptp(changes[1:]) < SLIGHT)
    words = ", ".join(f"{100 * change:+.1f}% with {trees:g}" for trees, change in zip(PANELS["trees"][0], changes))
    yield Statement("curves of 20 trees and more have the same shape", alike, f"from depth 5 to 20 {words}")
    worse = bool((grown[:, 0] > grown[:, 3]).all() and (sampled[:, 0] > sampled[:, 3]).all())
    yield Statement("depth 5 is poor: it underfits", worse, f"{grown[2, 0]:.4f} with 50 trees, {grown[2, 3]:.4f} at 20")


def falls(name: str, before: float, after: float) -> Statement:
    """Whether a distance falls by more than :data:`SLIGHT`."""
    return Statement(name, bool(after / before - 1 < -SLIGHT), f"{before:.4f}, then {after:.4f}")


def stays(name: str, before: float, after: float) -> Statement:
    """Whether a distance changes by less than :data:`SLIGHT`."""
    return Statement(name, bool(abs(after / before - 1) < SLIGHT), f"{before:.4f}, then {after:.4f}")
