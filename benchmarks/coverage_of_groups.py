"""How often intervals hold a row of a new group, by the rule for groups, for errors that share more or less in a group.

    python benchmarks/coverage_of_groups.py [--tables 2000] [--page docs/results/uncertainty.md]

Scores of calibration rows are drawn from a law, and a rule chooses the threshold of a level of 90%. Coverage is the
probability of the law that a row of a new group has at most this score, so that no model is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from rich.progress import track

from benchmarks.common.script import launch, make_parser, show, write_block
from ldl.methods.conformal.scores import Scores
from ldl.reports.files import markdown

LEVEL = 0.9
GROUPS = (9, 29)
FRESH = 200_000
"""Groups that determine the coverage of a threshold."""

Rng = np.random.Generator


def sharing(share: float, rows: int = 8) -> Callable[[int, Rng], np.ndarray]:
    """Return the law of normal errors of which a group shares a part of the variance: scores (groups, rows)."""

    def law(groups: int, rng: Rng) -> np.ndarray:
        common, own = rng.normal(size=(groups, 1)), rng.normal(size=(groups, rows))
        return np.abs(np.sqrt(share) * common + np.sqrt(1 - share) * own)

    return law


LAWS: dict[str, Callable[[int, Rng], np.ndarray]] = {
    "unrelated": sharing(0),
    "a tenth of the variance shared": sharing(0.1),
    "half of it": sharing(0.5),
    "half of it, 2 rows a group": sharing(0.5, 2),
    "half of it, 50 rows a group": sharing(0.5, 50),
    "nine tenths of it": sharing(0.9),
    "groups of different scale": lambda n, rng: np.abs(rng.normal(size=(n, 8))) * np.exp(rng.normal(size=(n, 1))),
    "a tenth of the groups far off": lambda n, rng: np.abs(rng.normal(size=(n, 8))) + 5 * (rng.random((n, 1)) < 0.1),
}


def pooled(score: np.ndarray) -> float:
    """Return the threshold that counts rows."""
    return Scores.of(score.ravel()).threshold(LEVEL)


def hierarchical(score: np.ndarray) -> float:
    """Return that of hierarchical conformal prediction, with a weight of 1 a group (Lee, Barber & Willett 2023)."""
    groups, rows = score.shape
    return Scores(np.sort(score.ravel()), np.full(score.size, 1 / rows), groups).threshold(LEVEL)


def one_row(score: np.ndarray) -> float:
    """Return that of the first row of each group, since the rows of a group have one law."""
    return Scores.of(score[:, 0]).threshold(LEVEL)


def of_ldl(score: np.ndarray) -> float:
    """Return that of ldl."""
    return Scores.of(score.ravel(), groups=np.arange(len(score)).repeat(score.shape[1])).threshold(LEVEL)


RULES = {
    "rows": pooled,
    "weight of 1 a group, hierarchical": hierarchical,
    "one row a group": one_row,
    "ldl: mean rank over one row a group": of_ldl,
}


def main() -> None:
    """Simulate, and print the table."""
    parser = make_parser(__doc__, threads=1, block="calibration_groups")
    parser.add_argument("--tables", type=int, default=2000, help="simulated tables of a law (default: %(default)s)")
    options = parser.parse_args()
    lines = [
        [law, str(groups), *coverage(law, groups, options.tables)]
        for law in track(LAWS, description="laws")
        for groups in GROUPS
    ]
    header = ["errors within a group", "groups", *RULES]
    show("calibration_groups", header, lines)
    if options.page:
        write_block(options.page, "calibration_groups", markdown(header, lines))


def coverage(law: str, groups: int, tables: int) -> list[str]:
    """Return mean and standard deviation of the coverage over the tables, in per cent, of every rule."""
    rng = np.random.default_rng(0)
    fresh = np.sort(LAWS[law](FRESH, rng)[:, 0])
    drawn = [LAWS[law](groups, rng) for _ in range(tables)]
    cells = []
    for rule in RULES.values():
        thresholds = [rule(score) for score in drawn]
        held = 100 * np.searchsorted(fresh, thresholds, side="right") / len(fresh)
        cells.append(f"{held.mean():.1f} ± {held.std(ddof=1):.1f}")
    return cells


if __name__ == "__main__":
    launch(main)
