"""Figure 4 of Shen et al. 2017 on tables: KL over the number of trees and over depth, joint against alternating.

    python benchmarks/ldlf/figure4.py [--sets Movie SJAFFE --folds 3 --out ldlf_figure4.png]

Left: trees of depth 7; ``joint`` trains all trees on every batch, their split nodes drawn from 64 shared units;
``alternating`` (dNDF) trains one random tree a batch. Right: depth, split nodes drawn from 2^(depth - 1) units; one
tree, as in the paper, and five trees both ways. Everything else is the paper's: linear splits, leaves updated every 100
batches of 64 rows, Adam 1e-3 with a cosine schedule. Means over the first folds of
``KFold(10, shuffle=True, random_state=0)``, one seed; the same command goes on where it was stopped.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
from matplotlib.figure import Figure

from benchmarks.common.command import launch, make_parser
from benchmarks.tables.methods import Method, predict
from ldl.cells.store import Row, Store
from ldl.charts.drawing import save
from ldl.data import TabularLDL
from ldl.metrics import functional
from ldl.reports.files import markdown
from ldl.running.quiet import silence

TREES = (1, 2, 5, 10, 20, 50)
DEPTHS = (3, 4, 5, 6, 7, 8, 9)
BATCH = 64


def panels() -> dict[str, dict[str, list[tuple[int, dict[str, Any]]]]]:
    """Horizontal axis -> name of the curve -> its points: the value, and the arguments of LDLF."""
    alternating: dict[str, Any] = {"ensemble": "alternating", "outputs": None}
    return {
        "trees": {
            "joint": [(trees, {"trees": trees}) for trees in TREES],
            "alternating": [(trees, {"trees": trees, **alternating}) for trees in TREES],
        },
        "depth": {
            "one tree": [(depth, {"trees": 1, "depth": depth, "outputs": 2 ** (depth - 1)}) for depth in DEPTHS],
            "five, joint": [(depth, {"trees": 5, "depth": depth, "outputs": 2 ** (depth - 1)}) for depth in DEPTHS],
            "five, alternating": [(depth, {"trees": 5, "depth": depth, **alternating}) for depth in DEPTHS],
        },
    }


def measure(name: str, arguments: dict[str, Any], fold: int, iterations: int) -> dict[str, float]:
    """``kl`` on the test part of a fold."""
    data = TabularLDL(path=f"ldl/{name}.mat", fold=fold, val_fraction=0, protocol="shuffled")
    data.setup()
    epochs = round(iterations / -(-len(data.split.train) // BATCH))
    training = {"epochs": epochs, "batch_size": BATCH, "lr": 1e-3, "weight_decay": 0.0}
    predicted = predict(Method("LDLF", "LDLF", training=training), arguments, data, data.split.test, seed=0)
    kl = functional.kl(predicted.double(), data.columns["target"][data.split.test].double()).mean()
    return {"kl": float(kl)}


def main() -> None:
    """Measure, print the table and draw the chart."""
    parser = make_parser(__doc__, threads=1)
    parser.add_argument("--sets", nargs="+", default=["Movie", "SJAFFE"])
    parser.add_argument("--folds", type=int, default=3, help="how many of the ten (default: %(default)s)")
    parser.add_argument("--iterations", type=int, default=2500, help="of a training (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("ldlf_figure4.png"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    silence()
    store = Store(options.out.with_name(f"{options.out.stem}_cells"))

    def mean(name: str, arguments: dict[str, Any]) -> float:
        kl = []
        for fold in range(options.folds):
            key: Row = {"name": name, "arguments": arguments, "fold": fold, "iterations": options.iterations}
            kl.append(store.cell(key, partial(measure, **key))["kl"])
        return float(np.mean(kl))

    figure = Figure(figsize=(10, 4 * len(options.sets)), layout="constrained")
    for name, row in zip(options.sets, figure.subplots(len(options.sets), 2, squeeze=False)):
        for axis, (horizontal, curves) in zip(row, panels().items()):
            values = [value for value, _ in next(iter(curves.values()))]
            print(f"\n{markdown([f'{name}, {horizontal}', *map(str, values)], [])}")
            for curve, points in curves.items():
                means = [mean(name, arguments) for _, arguments in points]
                print(f"| {curve} | {' | '.join(f'{kl:.4f}' for kl in means)} |", flush=True)
                axis.plot([value for value, _ in points], means, marker="o", label=curve)
            if horizontal == "trees":
                axis.set_xscale("log")
            axis.set_xticks(values, [str(value) for value in values])
            axis.minorticks_off()
            axis.set_xlabel(horizontal)
            axis.set_ylabel("KL")
            axis.set_title(name)
            axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
    print(save(figure, options.out))


if __name__ == "__main__":
    launch(main)
