"""Chooses StructRF's settings on validation parts of the training folds; the test folds are not looked at.

    python benchmarks/structrf/tuning.py SJAFFE [--folds 10 --trees 100]

In each of the folds of ``KFold(10, shuffle=True, random_state=0)`` a tenth of the training part is set aside; the table
is the mean KL divergence there. One setting is to serve all folds, so a row that helps to choose it in one fold is a
test row of another.
"""

from __future__ import annotations

import itertools
import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import read_set, score_folds
from ldl.heads import StructRF

GRID: dict[str, list[Any]] = {
    "search": ["exact", "random"],
    "features": [1.0, 0.33, 0.1],
    "min_leaf": [1, 2, 4],
    "rows": ["bootstrap .8", "all"],
}
ROWS = {"bootstrap .8": {"sampling": 0.8, "replace": True}, "all": {"sampling": 1.0, "replace": False}}


def forest(trees: int, arguments: dict[str, Any], fold: int) -> StructRF:
    """The forest of a fold."""
    return StructRF(trees=trees, depth=40, out_of_bag=False, seed=fold, **arguments)


def main() -> None:
    """Print every setting's divergence, the best last."""
    parser = make_parser(__doc__)
    parser.add_argument("name", help="a .mat file under LDL_DATA/ldl, such as SJAFFE")
    parser.add_argument("--folds", type=int, default=10, help="how many of the ten folds (default: %(default)s)")
    parser.add_argument("--trees", type=int, default=100, help="(default: %(default)s)")
    options = parser.parse_args()
    features, target = read_set(options.name)
    results = []
    for values in itertools.product(*GRID.values()):
        setting = dict(zip(GRID, values))
        arguments = {name: value for name, value in setting.items() if name != "rows"} | ROWS[setting["rows"]]
        make = partial(forest, options.trees, arguments)
        divergences = score_folds(make, features, target, ("kl",), options.folds, 0.1)
        results.append((float(np.mean(divergences)), setting))
    for divergence, setting in sorted(results, key=lambda result: -result[0]):
        print(f"{divergence:.5f}  " + ", ".join(f"{name} {value}" for name, value in setting.items()))


if __name__ == "__main__":
    launch(main)
