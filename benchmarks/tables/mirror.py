"""The evidence that features of SJAFFE and SBU_3DFE are histograms of local binary patterns, and what it is worth.

    python benchmarks/tables/mirror.py [--quick] [--page docs/data/persons.md]

243 features of sum 1 are as many as a histogram of uniform patterns of 16 neighbours has. If that is what they are, a
picture that is mirrored or turned has the same numbers in other places, and faces, which look alike on both sides, have
about the same numbers in these. Of each change: how far the logarithms of the mean histogram are apart between places
that change, and the mean correlation of features that do. Then heads with and without ``Mirrored``, ten folds with
persons apart; ``--quick`` measures two.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import FOLDS, data_file
from benchmarks.common.tables import write_block
from benchmarks.tables.choice import OnSet
from benchmarks.tables.columns import Column
from benchmarks.tables.methods import Method
from ldl.data.tables.distributions import read_table
from ldl.methods.lbp import moved_bins, neighbours_of
from ldl.reports.files import markdown

SETS = ("SJAFFE", "SBU_3DFE")
FOREST = {"trees": 100, "depth": 40, "features": 0.33, "min_leaf": 2, "search": "random", "sampling": 1.0}
HEADS = {
    "MaxEnt": {"class_path": "MaxEnt"},
    "MSLP": {"class_path": "MSLP", "init_args": {"kernel": "rbf", "ratio": 3.0, "metric": "commute", "ridge": 0.1}},
    "StructRF": {"class_path": "StructRF", "init_args": {**FOREST, "replace": False, "out_of_bag": False}},
}


def changes(neighbours: int) -> dict[str, list[list[int]]]:
    """What becomes of the neighbours of a pixel where the picture is mirrored or turned."""
    every = range(neighbours)
    mirrored = {turn: [(turn - bit) % neighbours for bit in every] for turn in every}
    turned = [[(bit + turn) % neighbours for bit in every] for turn in range(1, neighbours)]
    across, upright = neighbours // 2, 0
    return {
        "mirrored left to right": [mirrored.pop(across)],
        "mirrored top to bottom": [mirrored.pop(upright)],
        "mirrored along other lines, mean": list(mirrored.values()),
        "turned, mean": turned,
    }


def alike(features: np.ndarray, places: np.ndarray) -> tuple[float, float]:
    """How far the mean histogram's logarithms are apart between bins that change places, and the bins' correlation."""
    moved = places != np.arange(len(places))
    means = np.log(features.mean(0))
    roots = np.sqrt(features) - np.sqrt(features).mean(0)
    roots /= np.linalg.norm(roots, axis=0)
    return float(np.abs(means - means[places])[moved].mean()), float((roots * roots[:, places]).sum(0)[moved].mean())


def evidence(name: str) -> dict[str, tuple[float, float]]:
    """Both, means over the changes of a kind, by kind."""
    features = np.asarray(read_table(data_file(f"ldl/{name}.mat")).features, np.float64)
    kinds = changes(neighbours_of(features.shape[1]))
    measured = {kind: [alike(features, moved_bins(moved)) for moved in every] for kind, every in kinds.items()}
    return {
        kind: (float(np.mean([a for a, _ in found])), float(np.mean([b for _, b in found])))
        for kind, found in measured.items()
    }


def loss(name: str, head: str, mirror: str | None, folds: int) -> np.ndarray:
    """KL of each fold."""
    scaled = {"class_path": "Scaled", "init_args": {"scaling": "hellinger", "head": HEADS[head]}}
    method = Method(head, "Mirrored", {"mirror": mirror, "head": scaled}, scaling="none")
    candidate = OnSet(Column(name, f"ldl/{name}.mat", "persons", name), method, seed=0)
    return np.array([candidate.score({}, candidate.open({}, fold))["kl"] for fold in range(folds)])


def main() -> None:
    """Print both tables, and write them into a page."""
    parser = make_parser(__doc__, threads=2, block="mirror")
    parser.add_argument("--quick", action="store_true", help="two folds")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    found = {name: evidence(name) for name in SETS}
    rows = [
        [kind, *(f"{number:.3f}" for name in SETS for number in found[name][kind])]
        for kind in next(iter(found.values()))
    ]
    header = ["what happens to the picture", *(f"{name}, {what}" for name in SETS for what in ("apart", "correlation"))]
    folds = 2 if options.quick else FOLDS
    losses = []
    for head in HEADS:
        for words, mirror in ((head, None), (f"{head}, mirrored", "lbp")):
            each = [loss(name, head, mirror, folds) for name in SETS]
            losses.append([words, *(f"{one.mean():.4f} ± {one.std(ddof=1):.4f}" for one in each)])
            print(*losses[-1], flush=True)
    text = f"{markdown(header, rows)}\n\n{markdown([f'KL, {folds} folds, persons apart', *SETS], losses)}"
    print(text)
    if options.page:
        write_block(options.page, "mirror", text)


if __name__ == "__main__":
    launch(main)
