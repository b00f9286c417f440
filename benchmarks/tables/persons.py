"""The evidence that the rows of SJAFFE and SBU_3DFE stand person by person, and what it costs to keep persons apart.

    python benchmarks/tables/persons.py [--quick] [--page docs/data/persons.md] [--out docs/pictures/persons.png]

Identification: the share of rows whose nearest other row, in standardised features, belongs to the same person by our
borders; by chance as the counts have it. Steps: the distance of two rows in a row, at a border and within a person. For
SJAFFE the borders are found anew: of all cuts into ten blocks of at least five rows, the one with the least squared
distance to the means of the blocks. ``--quick`` measures no heads.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
from matplotlib.figure import Figure

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import FOLDS
from benchmarks.common.tables import write_block
from benchmarks.tables.choice import OnSet, open_fold
from benchmarks.tables.columns import Column
from benchmarks.tables.methods import Method
from ldl.charts.drawing import save
from ldl.data import TabularLDL
from ldl.data.order import nearest, standardised
from ldl.data.tables.grouped import GroupProtocol
from ldl.reports.files import markdown

SETS = ("SJAFFE", "SBU_3DFE")
LEAST = 5
METHODS = (
    Method("constant", "MeanPredictor"),
    Method("AA-kNN", "AAKNN", {"neighbours": 20}),
    Method(
        "StructRF",
        "StructRF",
        {"trees": 50, "depth": 40, "features": 0.33, "min_leaf": 2, "sampling": 1.0, "replace": False}
        | {"out_of_bag": False},
        scaling="none",
    ),
)
"""As in ``configs/runs``, with a tenth of the trees."""


def best_blocks(rows: np.ndarray, count: int, least: int = LEAST) -> list[int]:
    """Lengths of ``count`` blocks of consecutive rows (N, F) with the least squared distance to the blocks' means."""
    size = len(rows)
    sums = np.vstack([np.zeros(rows.shape[1]), rows.cumsum(0)])
    squares = np.concatenate([[0.0], (rows**2).sum(1).cumsum()])
    cost = np.full((size + 1, size + 1), np.inf)
    for start in range(size):
        ends = np.arange(start + least, size + 1)
        between = ((sums[ends] - sums[start]) ** 2).sum(1) / (ends - start)
        cost[start, ends] = squares[ends] - squares[start] - between
    best, before = np.where(np.arange(size + 1) == 0, 0.0, np.inf), []
    for _ in range(count):
        total = best[:, None] + cost
        before.append(total.argmin(0))
        best = total.min(0)
    borders = [size]
    for step in reversed(before):
        borders.append(int(step[borders[-1]]))
    return np.diff(borders[::-1]).tolist()


def evidence(data: TabularLDL) -> dict[str, float]:
    """Identification, its chance, and the median steps at borders and within persons."""
    assert data.groups is not None
    size, groups = data.size, data.groups
    rng = np.random.default_rng(0)
    same = groups[nearest(np.asarray(data.features), np.arange(size), rng.permutation(size))] == groups
    counts = np.bincount(groups)
    steps = np.linalg.norm(np.diff(standardised(np.asarray(data.features)), axis=0), axis=1)
    border = np.diff(groups) != 0
    return {
        "same person": float(same.mean()),
        "chance": float((counts * (counts - 1)).sum() / (size * (size - 1))),
        "step at a border": float(np.median(steps[border])),
        "step within": float(np.median(steps[~border])),
    }


def draw(sets: dict[str, TabularLDL], path: Path) -> Path:
    """How far apart in the file nearest rows stand, and the steps from row to row with the borders."""
    figure = Figure(figsize=(11, 6), layout="constrained")
    for (gaps, steps), (name, data) in zip(figure.subplots(2, 2), sets.items()):
        size, groups = data.size, data.groups
        order = np.random.default_rng(0).permutation(size)
        found = nearest(np.asarray(data.features), np.arange(size), order)
        gaps.hist(np.abs(found - np.arange(size)), np.arange(0, 61) + 0.5, label="measured")
        chance = 2 * (size - np.arange(1, 61)) / (size - 1)
        gaps.plot(np.arange(1, 61), chance, color="C1", label="in a random order")
        gaps.set(title=name, xlabel="rows between a row and its nearest", ylabel="rows")
        gaps.legend()
        shown = min(size, 250)
        distances = np.linalg.norm(np.diff(standardised(np.asarray(data.features))[:shown], axis=0), axis=1)
        steps.plot(distances, linewidth=0.8)
        for place in np.flatnonzero(np.diff(groups[:shown])):  # type: ignore[index]
            steps.axvline(place, color="C1", linewidth=0.6)
        steps.set(title="borders between persons", xlabel="row", ylabel="distance to the next row")
    return save(figure, path)


def cost(name: str, protocol: GroupProtocol, method: Method) -> float:
    """Mean KL over the ten folds."""
    candidate = OnSet(column(name, protocol), method, seed=0)
    return float(np.mean([candidate.score({}, candidate.open({}, fold))["kl"] for fold in range(FOLDS)]))


def column(name: str, protocol: GroupProtocol) -> Column:
    """A set under a protocol, as the tabular benchmark reads it."""
    return Column(name, f"ldl/{name}.mat", protocol, name)


def main() -> None:
    """Print the tables, draw the chart, and write the page's block."""
    parser = make_parser(__doc__, threads=2, block="persons")
    parser.add_argument("--quick", action="store_true", help="measure no heads")
    parser.add_argument("--out", type=Path, default=Path("persons.png"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    sets = {name: open_fold(column(name, "persons"), "standard", 0) for name in SETS}
    found = {name: evidence(data) for name, data in sets.items()}
    names = list(next(iter(found.values())))
    rows = [
        [name, *(f"{figures[what]:.{1 if 'step' in what else 3}f}" for what in names)]
        for name, figures in found.items()
    ]
    text = [markdown(["", *names], rows), ""]
    jaffe = sets["SJAFFE"]
    features = np.asarray(jaffe.features)
    scaled = {"standardised features": standardised(features), "their square roots": np.sqrt(features)}
    for what, values in scaled.items():
        text += [f"Best ten blocks of SJAFFE by {what}: {' '.join(map(str, best_blocks(values, 10)))}.", ""]
    print(draw(sets, options.out))
    if not options.quick:
        columns: list[tuple[str, GroupProtocol]] = [(name, rule) for name in SETS for rule in ("persons", "shuffled")]
        rows = [[m.name, *(f"{cost(name, rule, m):.4f}" for name, rule in columns)] for m in METHODS]
        text += [markdown(["KL, ten folds", *(f"{name}, {rule}" for name, rule in columns)], rows)]
    print("\n".join(text))
    if options.page:
        write_block(options.page, "persons", "\n".join(text))


if __name__ == "__main__":
    launch(main)
