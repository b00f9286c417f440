"""The evidence for the subjects of SJAFFE and SBU_3DFE, and that their features are local binary patterns.

    python benchmarks/tables/persons.py [--page docs/concepts/splits-and-leakage.md]
        [--picture docs/pictures/persons.png]

Block ``persons``: the share of rows whose nearest other row, in standardised features, is of the same subject, beside
chance; the median distance between consecutive rows, at borders between subjects and elsewhere; and the ten blocks of
rows of SJAFFE that are closest to their means.

Block ``mirror``: of features that change places in a mirror image, if they are local binary patterns, the mean distance
between logarithms of their means, and the mean correlation of their square roots; beside the same of random pairs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
from matplotlib.figure import Figure

from benchmarks.common.script import launch, make_parser, write_block
from ldl.charts.drawing import save
from ldl.data import TabularLDL
from ldl.data.row_order import nearest, standardised
from ldl.methods.lbp import mirrored_bins
from ldl.reports.files import markdown

SETS = ("SJAFFE", "SBU_3DFE")
SUBJECTS_OF_SJAFFE = 10
SMALLEST_BLOCK = 5
RANDOM_PAIRINGS = 20


def best_blocks(rows: np.ndarray, count: int) -> list[int]:
    """Return lengths of ``count`` blocks of consecutive rows (N, F) with the least squared distance to their means."""
    size = len(rows)
    sums = np.vstack([np.zeros(rows.shape[1]), rows.cumsum(0)])
    squares = np.concatenate([[0.0], (rows**2).sum(1).cumsum()])
    cost = np.full((size + 1, size + 1), np.inf)
    for start in range(size):
        ends = np.arange(start + SMALLEST_BLOCK, size + 1)
        between = ((sums[ends] - sums[start]) ** 2).sum(1) / (ends - start)
        cost[start, ends] = squares[ends] - squares[start] - between
    least = np.where(np.arange(size + 1) == 0, 0.0, np.inf)
    starts = []
    for _ in range(count):
        total = least[:, None] + cost
        starts.append(total.argmin(0))
        least = total.min(0)
    borders = [size]
    for start in reversed(starts):
        borders.append(int(start[borders[-1]]))
    return np.diff(borders[::-1]).tolist()


def neighbours_of(features: np.ndarray) -> np.ndarray:
    """Return the nearest other row of every row, (N,); ties are broken at random."""
    order = np.random.default_rng(0).permutation(len(features))
    return nearest(features, np.arange(len(features)), order)


def subject_evidence(features: np.ndarray, groups: np.ndarray) -> list[str]:
    """Return the cells of a set in the block ``persons``."""
    counts = np.bincount(groups)
    same = (groups[neighbours_of(features)] == groups).mean()
    chance = (counts * (counts - 1)).sum() / (len(groups) * (len(groups) - 1))
    steps = np.linalg.norm(np.diff(standardised(features), axis=0), axis=1)
    is_border = np.diff(groups) != 0
    return [
        f"{same:.3f}", f"{chance:.3f}", f"{np.median(steps[is_border]):.1f}", f"{np.median(steps[~is_border]):.1f}"
    ]  # fmt: skip


def mirror_evidence(features: np.ndarray, places: np.ndarray) -> tuple[float, float]:
    """Return the distance and the correlation between features (N, F) and those at other places (F,)."""
    moved = places != np.arange(len(places))
    logarithms = np.log(features.mean(0))
    roots = np.sqrt(features) - np.sqrt(features).mean(0)
    roots /= np.linalg.norm(roots, axis=0)
    apart = np.abs(logarithms - logarithms[places])[moved].mean()
    return float(apart), float((roots * roots[:, places]).sum(0)[moved].mean())


def draw(sets: dict[str, TabularLDL], path: Path) -> None:
    """Draw how many rows lie between a row and its nearest, and the distances of consecutive rows with the borders."""
    figure = Figure(figsize=(11, 6), layout="constrained")
    for (gaps, steps), (name, data) in zip(figure.subplots(2, 2), sets.items()):
        features, size, shown = np.asarray(data.features, np.float64), data.size, 250
        gaps.hist(np.abs(neighbours_of(features) - np.arange(size)), np.arange(61) + 0.5, label="measured")
        gaps.plot(np.arange(1, 61), 2 * (size - np.arange(1, 61)) / (size - 1), color="C1", label="in a random order")
        gaps.set(title=name, xlabel="rows between a row and its nearest", ylabel="rows")
        gaps.legend()
        steps.plot(np.linalg.norm(np.diff(standardised(features)[:shown], axis=0), axis=1), linewidth=0.8)
        for border in np.flatnonzero(np.diff(data.groups[:shown])):  # type: ignore[index]
            steps.axvline(border, color="C1", linewidth=0.6)
        steps.set(title="borders between subjects", xlabel="row", ylabel="distance to the next row")
    save(figure, path)


def main() -> None:
    """Print both blocks, and write them into a page."""
    parser = make_parser(__doc__, block="persons and mirror")
    parser.add_argument("--picture", type=Path, help="PNG file in which to draw the nearest rows")
    options = parser.parse_args()
    sets = {name: TabularLDL(path=f"ldl/{name}.mat", protocol="persons") for name in SETS}
    subjects, mirrored = [], []
    for name, data in sets.items():
        data.setup()
        features = np.asarray(data.features, np.float64)
        subjects.append([name, *subject_evidence(features, np.asarray(data.groups))])
        rng = np.random.default_rng(0)
        chance = [mirror_evidence(features, rng.permutation(features.shape[1])) for _ in range(RANDOM_PAIRINGS)]
        both = *mirror_evidence(features, mirrored_bins(features.shape[1])), *np.mean(chance, axis=0)
        mirrored.append([name, *(f"{number:.3f}" for number in both)])
    features = np.asarray(sets["SJAFFE"].features, np.float64)
    blocks = {"standardised features": standardised(features), "their square roots": np.sqrt(features)}
    lines = [
        f"Best ten blocks of SJAFFE by {scaling}: {' '.join(map(str, best_blocks(rows, SUBJECTS_OF_SJAFFE)))}."
        for scaling, rows in blocks.items()
    ]
    header = ["", "same subject", "chance", "step at a border", "step within"]
    persons = "\n\n".join([markdown(header, subjects), *lines])
    header = ["", "mirrored: apart", "correlation", "random pairs: apart", "correlation"]
    mirror = markdown(header, mirrored)
    print(persons, mirror, sep="\n\n")
    if options.picture:
        draw(sets, options.picture)
    if options.page:
        write_block(options.page, "persons", persons)
        write_block(options.page, "mirror", mirror)


if __name__ == "__main__":
    launch(main)
