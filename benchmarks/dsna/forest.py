"""Fit time and error of the cost-sensitive forest beside scikit-learn's random forest.

    python benchmarks/dsna/forest.py [--data fgnet_aam made_up --trees 20]

Both grow trees of depth 10 with 5 rows to split, on one thread: on 1,002 x 251 appearance features of FG-NET (a tenth
of the persons tested), and on 12,000 x 1,280 made-up ones (a tenth of the rows tested) from a seed: normal features of
falling spread, and a value that rises in a bend along one direction.
``sqrt`` and ``all`` are the features that a node sees; with all of them the settings are those of the configurations.
Seconds are of the clock and of the processor.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
from sklearn.ensemble import RandomForestRegressor
from torch import Tensor

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import inputs_of
from benchmarks.common.timing import Seconds, seconds
from ldl.collective import Collective
from ldl.data import FGNETAAM
from ldl.heads import CostSensitiveForest
from ldl.labels import LabelSpace

TREES: dict[str, Any] = {"depth": 10, "min_samples": 5, "seed": 0}
FORESTS: dict[str, dict[str, Any]] = {
    "cost-sensitive, sqrt": {"sets": 5},
    "cost-sensitive, all": {"features": 1.0, "log_offset": 2.0, "min_samples": 20},
}


class Table(NamedTuple):
    """features (N, F), values (N,), and the rows of both parts."""

    features: Tensor
    values: Tensor
    labels: LabelSpace
    train: np.ndarray
    test: np.ndarray


def main() -> None:
    """Print a line a forest."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", nargs="+", choices=["fgnet_aam", "made_up"], default=["fgnet_aam", "made_up"])
    parser.add_argument("--trees", type=int, default=20, help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.data:
        data = fgnet() if name == "fgnet_aam" else made_up()
        print(f"{name}: {len(data.train)} x {data.features.shape[1]}, {len(data.test)} tested, {options.trees} trees")
        for forest, arguments in FORESTS.items():
            report(forest, data, *oblique(data, {**arguments, "trees": options.trees}))
        for share in ("sqrt", None):
            report(f"random forest, {share or 'all'}", data, *axis_aligned(data, share, options.trees))


def fgnet() -> Table:
    """FG-NET's appearance features."""
    data = FGNETAAM(protocol="group_exclusive", folds=10)
    data.setup()
    assert data.values is not None
    return Table(inputs_of(data), torch.from_numpy(data.values), data.labels, data.split.train, data.split.test)


def made_up(rows: int = 12000, width: int = 1280) -> Table:
    """Numbers from a seed."""
    random = np.random.default_rng(0)
    features = random.normal(size=(rows, width)) * np.geomspace(1, 0.05, width)
    along = features @ random.normal(size=width)
    values = np.round(30 + 25 * np.tanh(along / along.std()) + 3 * random.normal(size=rows)).clip(0, 69)
    order = random.permutation(rows)
    labels = LabelSpace.ordinal(range(70), "years")
    cut = rows // 10
    return Table(torch.from_numpy(features).float(), torch.from_numpy(values), labels, order[cut:], order[:cut])


def report(name: str, data: Table, took: Seconds, predicted: np.ndarray) -> None:
    """One line."""
    error = np.abs(predicted - data.values[data.test].numpy()).mean()
    print(f"  {name:24} MAE {error:6.3f}   fit {took.clock:7.1f} s   processor {took.processor:7.1f} s", flush=True)


def oblique(data: Table, arguments: dict[str, Any]) -> tuple[Seconds, np.ndarray]:
    """Seconds of the fit, and predictions of the tested rows."""
    head = CostSensitiveForest(**{**TREES, **arguments})
    head.build(data.features.shape[1], data.labels)
    values = data.values[data.train]
    target = data.labels.encode(values, 2.0)
    took = seconds(lambda: head.fit(data.features[data.train], target, Collective(), values))
    predicted = head.point_estimate(data.features[data.test])
    assert predicted is not None
    return took, predicted.numpy()


def axis_aligned(data: Table, share: str | None, trees: int) -> tuple[Seconds, np.ndarray]:
    """As :func:`oblique`, of scikit-learn's forest."""
    rows, values = data.features.numpy(), data.values.numpy()
    model = RandomForestRegressor(trees, max_depth=10, min_samples_split=5, max_features=share, random_state=0)
    return seconds(lambda: model.fit(rows[data.train], values[data.train])), model.predict(rows[data.test])


if __name__ == "__main__":
    launch(main)
