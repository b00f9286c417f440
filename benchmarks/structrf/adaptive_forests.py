"""Table 21 of Chen et al. 2018: what the adaptive variable step costs a whole forest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.common.claims import Claim, Number, Statement
from benchmarks.common.items import Work
from benchmarks.structrf.methods import fold_scores, folds_of
from benchmarks.structrf.published import MEASURES, TABLE_21
from ldl.comparison.figures import mean_and_deviation

FOLDS = 3
LARGEST = 0.0003
"""Of the printed differences."""
MODEST = 0.1
"""A difference below this share of the deviation over folds is modest."""
CLOSER: dict[str, dict[str, Any]] = {"alpha .1": {"alpha": 0.1}, "alpha .02": {"alpha": 0.02}, "beta 4": {"beta": 4.0}}

PROTOCOL = (
    "Folds 0 to 2 of `KFold(10, shuffle=True, random_state=0)`; StructRF and StructRF* have the same seed, and so "
    "the same bootstrap samples; 50 trees, depth 20, sampling .8. Differences are means over the folds, exact less "
    "adaptive, as printed; their standard errors are over the folds. The printed ones have four decimals and no "
    f"deviation, and none is above {LARGEST}."
)


def differences(work: Work, name: str, **options: Any) -> np.ndarray:
    """Exact less another forest, (folds, measures)."""
    return np.array(
        [
            [one[measure] - other[measure] for measure in MEASURES]
            for fold in range(folds_of(work, FOLDS))
            for one in [fold_scores(work, name, "StructRF", fold)]
            for other in [fold_scores(work, name, "StructRF", fold, **options)]
        ]
    )


def table_21(work: Work) -> Iterator[Claim]:
    """Of each set whether all differences are as small as printed, and whether they are modest."""
    names = ("SJAFFE",) if work.quick else tuple(TABLE_21)
    modest = []
    for name in names:
        found = differences(work, name, search="adaptive")
        mean, error = found.mean(0), found.std(0, ddof=min(1, len(found) - 1)) / np.sqrt(len(found))
        words = ", ".join(f"{m} {a:+.4f} ± {b:.4f}" for m, a, b in zip(MEASURES, mean, error))
        printed = ", ".join(TABLE_21[name].split())
        yield Statement(f"{name}: the differences are no larger than printed", _small(mean), words, printed)
        rows = [fold_scores(work, name, "StructRF", fold) for fold in range(folds_of(work, FOLDS))]
        deviation = [mean_and_deviation([row[measure] for row in rows])[1] for measure in MEASURES]
        modest.append(max(np.abs(mean) / np.maximum(deviation, 1e-12)))
    worst = max(modest)
    yield Statement(
        "the difference is quite modest: below a tenth of the deviation over folds", bool(worst < MODEST),
        f"at most {100 * worst:.0f}% of it, {names[int(np.argmax(modest))]}",
    )  # fmt: skip
    for name in ("SJAFFE",) if work.quick else ("SJAFFE", "Yeast_alpha"):
        yield _kl(f"{name}, kl: another seed in place of the adaptive step", differences(work, name, seed=1))
        for way, options in CLOSER.items():
            yield _kl(f"{name}, kl: {way}", differences(work, name, search="adaptive", **options))


def _small(mean: np.ndarray) -> bool:
    return bool((np.abs(mean) < LARGEST + 5e-5).all())


def _kl(name: str, found: np.ndarray) -> Number:
    return Number(name, tuple(found[:, MEASURES.index("kl")].tolist()), 0.0, attempt=True)
