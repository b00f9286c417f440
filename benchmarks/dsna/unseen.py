"""A band of ages that training never saw: leaf averages against DSNA and the affine hull, on FG-NET's AAM features.

    python benchmarks/dsna/unseen.py [--low 40 --high 69 --chart dsna_unseen.png]

Five folds of whole persons; all rows of the band are taken from training, and the test rows of the band are predicted.
Nothing is tuned: the settings are those of ``configs/runs/fgnet_aam/dsna.yaml`` with linear features.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
from matplotlib.figure import Figure

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import fit_rows, inputs_of
from ldl.charts.drawing import save
from ldl.data import FGNETAAM
from ldl.heads import DSNA, CostSensitiveForest

SETTINGS: dict[str, Any] = {"features": 1.0, "log_offset": 2.0, "min_samples": 20, "seed": 0, "tolerance": 1e-4}
WEIGHTS: dict[str, dict[str, Any]] = {
    "DSNA": {"clusters": 1, "rounds": 1, "width": 0.1, "sparsity": 0.05, "attraction": 0.5},
    "affine hull": {"clusters": 1, "rounds": 1, "sparsity": 0.05, "attraction": 0.0},
}


def main() -> None:
    """Print the errors and draw predictions against ages."""
    parser = make_parser(__doc__)
    parser.add_argument("--low", type=float, default=40, help="(default: %(default)s)")
    parser.add_argument("--high", type=float, default=69, help="(default: %(default)s)")
    parser.add_argument("--chart", type=Path, default=Path("dsna_unseen.png"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = FGNETAAM(protocol="group_exclusive", folds=5)
    data.setup()
    assert data.values is not None
    hidden = (data.values >= options.low) & (data.values <= options.high)
    predicted = {name: np.full(data.size, np.nan) for name in ("leaf averages", *WEIGHTS)}
    for fold in range(data.num_folds):
        data.select_fold(fold)
        train, test = (part[hidden[part] == seen] for part, seen in ((data.split.train, 0), (data.split.test, 1)))
        features = inputs_of(data)
        head = fit_rows(DSNA(**SETTINGS), data, features, train)
        for name, found in predicted.items():
            for option, value in WEIGHTS.get(name, {}).items():
                setattr(head, option, value)
            estimate = DSNA.point_estimate if name in WEIGHTS else CostSensitiveForest.point_estimate
            values = estimate(head, features[test])
            assert values is not None
            found[test] = values.numpy()
    figure = Figure(figsize=(5.4, 4.4), layout="constrained")
    axis = figure.subplots()
    axis.plot([options.low, options.high], [options.low, options.high], color="0.5", linewidth=1)
    for name, found in predicted.items():
        error = float(np.abs(found - data.values)[hidden].mean())
        print(f"{name:16} MAE {error:6.2f}   largest estimate {found[hidden].max():5.1f}")
        axis.scatter(data.values[hidden], found[hidden], s=12, label=f"{name}, MAE {error:.1f}")
    axis.set(xlabel="true age in years", ylabel="predicted", title=f"ages {options.low:g} to {options.high:g} unseen")
    axis.legend(fontsize=8)
    print(save(figure, options.chart))


if __name__ == "__main__":
    launch(main)
