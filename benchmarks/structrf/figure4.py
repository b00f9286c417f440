"""Figure 4 of Chen et al. 2018: Chebyshev distance on SBU_3DFE over depth, sampling ratio and number of trees.

    python benchmarks/structrf/figure4.py [--out figure4.png --folds 10]

Left: 20 trees, several sampling ratios. Right: ratio 0.8, several numbers of trees. Means over the folds of
``KFold(10, shuffle=True, random_state=0)``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from matplotlib.figure import Figure

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import read_set, score_folds
from ldl.charts.drawing import save
from ldl.heads import StructRF

DEPTHS = (5, 10, 15, 20, 25)
PANELS: tuple[tuple[str, str, tuple[float, ...], dict[str, Any]], ...] = (
    ("sampling ratio", "sampling", (0.2, 0.4, 0.6, 0.8, 1.0), {"trees": 20}),
    ("trees", "trees", (10, 20, 50, 100), {"sampling": 0.8}),
)


def main() -> None:
    """Measure, print the figures and write the chart."""
    parser = make_parser(__doc__)
    parser.add_argument("--out", type=Path, default=Path("figure4.png"), help="(default: %(default)s)")
    parser.add_argument("--set", default="SBU_3DFE", help="(default: %(default)s)")
    parser.add_argument("--folds", type=int, default=10, help="how many of the ten (default: %(default)s)")
    options = parser.parse_args()
    features, target = read_set(options.set)
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (title, name, values, fixed) in zip(axes, PANELS):
        print(f"{title:>16}" + "".join(f"{f'depth {depth}':>10}" for depth in DEPTHS))
        for value in values:
            curve = []
            for depth in DEPTHS:
                head = StructRF(**{**fixed, name: value}, depth=depth, out_of_bag=False, seed=0)
                curve.append(score_folds(head, features, target, ("chebyshev",), options.folds).mean())
            print(f"{value:>16}" + "".join(f"{distance:10.4f}" for distance in curve), flush=True)
            axis.plot(DEPTHS, curve, marker="o", label=f"{title} {value}")
        axis.set_xlabel("maximal depth")
        axis.set_xticks(DEPTHS)
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize=8)
    axes[0].set_ylabel("Chebyshev distance")
    figure.suptitle(f"StructRF on {options.set}, {options.folds} folds")
    print(save(figure, options.out))


if __name__ == "__main__":
    launch(main)
