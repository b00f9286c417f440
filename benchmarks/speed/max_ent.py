"""MaxEnt with its penalty chosen: by L-BFGS along the features as they are, and along their principal axes.

    python benchmarks/speed/max_ent.py [--sets SJAFFE M2B] [--rounds 3] [--page docs/results/speed.md]

Both choose the penalty on the same inner folds and fit all rows of a set, scaled by ``quantile_normal``, in turns.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
from scipy.special import log_softmax

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import read_set
from benchmarks.common.tables import show, write_block
from benchmarks.common.timing import seconds, take_turns
from ldl.data.tables.scaling import FeatureScaler
from ldl.heads import MaxEnt
from ldl.methods.max_ent import along_features, choose_l2, fit_max_ent, principal_axes
from ldl.reports.files import markdown

SETS = ["SJAFFE", "SBU_3DFE", "Natural_Scene", "SCUT_FBP", "M2B"]
"""Movie takes the features as they are ten minutes a round."""
WAYS = ("features", "principal axes")
HEADER = ("set", "rows x features x labels", "penalty", *(f"{way}, s" for way in WAYS), "times faster", "KL differs by")


def main() -> None:
    """Measure every set, then print the table."""
    parser = make_parser(__doc__, block="max_ent")
    parser.add_argument("--sets", nargs="+", default=SETS, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    options = parser.parse_args()
    rows = [compare(name, options.rounds) for name in options.sets]
    show("MaxEnt, seconds of the processor", HEADER, rows)
    if options.page:
        text = f"Processor seconds, medians of {options.rounds} rounds.\n\n{markdown(HEADER, rows)}"
        write_block(options.page, "max_ent", text)


def compare(name: str, rounds: int) -> list[str]:
    """A row of the table."""
    features, target = (part.double().numpy() for part in read_set(name))
    scaler = FeatureScaler("quantile_normal", None)
    scaler.fit(features)
    rows = scaler.transform(features)
    found: dict[str, tuple[float, np.ndarray]] = {}

    def measure(way: str, turn: int) -> float:
        return seconds(lambda: found.update({way: fit(rows, target, way)})).processor

    took = take_turns(WAYS, rounds, measure)
    before, now = (median(took[way]) for way in WAYS)
    divergence = partial(mean_cross_entropy, rows, target)
    apart = abs(divergence(found[WAYS[0]][1]) - divergence(found[WAYS[1]][1]))
    penalties = sorted({f"{l2:g}" for l2, _ in found.values()})
    shape = f"{rows.shape[0]} x {rows.shape[1]} x {target.shape[1]}"
    return [name, shape, ", ".join(penalties), f"{before:.2f}", f"{now:.2f}", f"{before / now:.1f}", f"{apart:.1e}"]


def fit(rows: np.ndarray, target: np.ndarray, way: str) -> tuple[float, np.ndarray]:
    """The penalty and the weights (C, F + 1), as ``MaxEnt`` has them by default, the one ``way`` or the other."""
    limits = (MaxEnt().iterations, MaxEnt().tolerance)
    if way == WAYS[0]:
        l2 = choose_l2(rows, target, *limits)
        return l2, fit_max_ent(rows, target, l2, *limits)
    axes = principal_axes(rows)
    turned, variance = axes.transform(rows), axes.explained_variance_
    l2 = choose_l2(turned, target, *limits, variance=variance)
    return l2, along_features(fit_max_ent(turned, target, l2, *limits, variance), axes)


def mean_cross_entropy(rows: np.ndarray, target: np.ndarray, weights: np.ndarray) -> float:
    """Of the model, in nats a row; the KL divergence but for the targets' entropy."""
    return -float((target * log_softmax(rows @ weights[:, :-1].T + weights[:, -1], axis=1)).sum(1).mean())


if __name__ == "__main__":
    launch(main)
