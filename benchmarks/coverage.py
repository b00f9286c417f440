"""How often intervals and label sets hold the truth, as predicted and calibrated, over random splits.

    python benchmarks/coverage.py [--sets UTKFace] [--page docs/results/uncertainty.md]

A split is 60% of the rows for training, 20% for calibration and 20% for the test, of whole groups if there are groups
(subjects of FG-NET, SJAFFE and SBU_3DFE, digits that are rotated). Images are features of a frozen ImageNet network. On
sets with groups and values several ways to calibrate are compared, cross-conformal ones on the 80% in five folds. Every
result is stored, and the same command resumes where it was stopped.
"""

from __future__ import annotations

import json
import sys
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
from rich.progress import track
from sklearn.datasets import load_diabetes
from torch import Tensor

from benchmarks.common.data import inputs_of
from benchmarks.common.script import launch, make_parser, show, write_block
from ldl.backbones.frozen import cache_features
from ldl.backbones.timm import Timm
from ldl.collective import Collective
from ldl.data import LDLDataModule, RotatedDigits, TabularLDL
from ldl.data.tables.scaling import Scaling
from ldl.faces import FGNET, FGNETAAM, UTKFace
from ldl.head import FittedHead
from ldl.heads import MaxEnt, Scaled, StructRF
from ldl.jobs.store import JOBS_FOLDER, Result, Store
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal, CrossConformal, predicted_set
from ldl.methods.conformal.scores import line_intervals
from ldl.methods.rows import Rows
from ldl.protocols import kfold
from ldl.reports.files import markdown
from ldl.spec import to_spec

LEVELS = (50, 80, 90)
"""Levels in percent."""
FOLDS = 5
HEADS: dict[str, Callable[[], FittedHead]] = {
    "StructRF": partial(StructRF, trees=50, features=0.1, search="random", min_leaf=2, out_of_bag=False),
    "MaxEnt": partial(MaxEnt, l2=0.01, iterations=60),
}
WAYS = {
    "plain": "nothing",
    "split": "rows of the calibration set",
    "split, groups": "groups of it",
    "split, a row a group": "one row of each of its groups, at random",
    "cross, one model": "rows, out of fold, with the model of all",
    "cross, one model, groups": "groups, out of fold, with the model of all",
    "cross, groups": "CV+, groups: the models of all folds",
}
"""Ways to calibrate. The first two are for all sets, the others for sets with groups and values."""


@dataclass(frozen=True)
class DataSet:
    """Rows of a set.

    Attributes:
        features: (N, F).
        target: (N, C) distributions.
        truth: (N,) true values; for nominal labels the distributions (N, C).
        labels: Label space.
        groups: (N,) groups that a split keeps together, or None.
        scaling: Scaling of the features, learned from the training rows of every split.
    """

    features: Tensor
    target: Tensor
    truth: np.ndarray
    labels: LabelSpace
    groups: np.ndarray | None = None
    scaling: Scaling = "none"


def _faces(data: LDLDataModule) -> DataSet:
    data.setup()
    backbone = Timm(name="mobilenetv2_100", pretrained="auto", freeze=True, mirror=True)
    backbone.build(data.input_shape)
    cache_features(backbone, data, torch.device("cpu"))
    assert data.backbone_features is not None and data.values is not None
    return DataSet(data.backbone_features, data.columns["target"], data.values, data.labels, data.groups)


def _inputs(data: LDLDataModule) -> DataSet:
    data.setup()
    assert data.values is not None
    return DataSet(inputs_of(data).flatten(1), data.columns["target"], data.values, data.labels, data.groups)


def _table(name: str, values: bool) -> DataSet:
    """Read a public table. With ``values`` the mean of its five ratings is the true value."""
    data = TabularLDL(path=f"ldl/{name}.mat", label_values=range(1, 6) if values else None, scaling="none")
    data.setup()
    target = data.columns["target"]
    truth = data.labels.decode(target.double()) if values else target.double()
    return DataSet(inputs_of(data), target, truth.numpy(), data.labels, data.groups, "standard")


def _diabetes() -> DataSet:
    table = load_diabetes()
    labels = LabelSpace.ordinal([float(value) for value in range(20, 351, 10)])
    target = labels.encode(torch.tensor(table.target, dtype=torch.float32), 20.0)
    # Columns have unit length: entries of 442 rows are about 1/20.
    features = torch.tensor(table.data * len(target) ** 0.5, dtype=torch.float32)
    return DataSet(features, target, table.target, labels)


VALUED: dict[str, Callable[[], DataSet]] = {
    "UTKFace": lambda: _faces(UTKFace(crop_size=80)),
    "FG-NET, images": lambda: _faces(FGNET()),
    "FG-NET, appearance": lambda: _inputs(FGNETAAM()),
    "rotated digits": lambda: _inputs(RotatedDigits(turns=2)),
    **{name: partial(_table, name, True) for name in ("Movie", "SCUT_FBP", "M2B")},
    "diabetes": _diabetes,
}
"""Sets with values, and so with intervals."""
NOMINAL = {name: partial(_table, name, False) for name in ("SJAFFE", "SBU_3DFE", "Natural_Scene", "Yeast_alpha")}
"""Sets with nominal labels, and so with label sets."""


def main() -> None:
    """Measure what is missing, and print the tables."""
    parser = make_parser(__doc__, threads=1, block="coverage")
    known = [*VALUED, *NOMINAL]
    parser.add_argument("--sets", nargs="+", choices=known, default=known, help="(default: all)")
    parser.add_argument("--splits", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/coverage"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.filterwarnings("ignore", message="level .* needs")
    store = Store(options.out / JOBS_FOLDER)
    for name in options.sets:
        rows = (VALUED | NOMINAL)[name]()
        jobs = [(head, split) for head in HEADS for split in range(options.splits)]
        for head, split in track(jobs, description=name):
            key = {"set": name, "head": head, "split": split, "spec": digest(head)}
            store.get(key, partial(evaluate, rows, head, split))
    blocks = {
        block: tabulate(store.rows, [name for name in sets if name in options.sets], options.splits)
        for block, sets in (("coverage", VALUED), ("label_sets", NOMINAL))
    }
    blocks["coverage_groups"] = compare_ways(store.rows, options.splits)
    for block, (header, lines) in blocks.items():
        show(block, header, lines)
        if options.page and lines:
            spread = f"Mean ± standard deviation over {options.splits} splits."
            write_block(options.page, block, f"{spread}\n\n{markdown(header, lines)}")


def digest(head: str) -> int:
    """Return a number that changes with the hyperparameters on which a result depends."""
    return zlib.crc32(f"{json.dumps(to_spec(HEADS[head]()), sort_keys=True)} {FOLDS} {LEVELS}".encode())


def evaluate(rows: DataSet, head: str, split: int) -> Result:
    """Return coverage and width of every way at every level."""
    rng = np.random.default_rng(split)
    unit = np.arange(len(rows.target)) if rows.groups is None else np.unique(rows.groups, return_inverse=True)[1]
    order = rng.permutation(unit.max() + 1)
    cuts = np.split(order, [round(0.6 * len(order)), round(0.8 * len(order))])
    train, held, test = (np.flatnonzero(np.isin(unit, part)) for part in cuts)
    model = predictor(rows, head, train)
    prediction = model(test)
    ways: dict[str, tuple[Conformal | CrossConformal | None, np.ndarray]] = {
        "plain": (None, prediction),
        "split": (Conformal.fit(rows.labels, model(held), rows.truth[held]), prediction),
    }
    if rows.groups is not None and rows.truth.ndim == 1:
        ways |= grouped_ways(rows, head, unit, (train, held, test), model, rng)
    groups = None if rows.groups is None else unit[test]
    return {
        "found": {
            f"{way} {level}": measure(predicted_at(rows.labels, *given, level / 100), rows.truth[test], groups)
            for way, given in ways.items()
            for level in LEVELS
        }
    }


def grouped_ways(
    rows: DataSet, head: str, groups: np.ndarray, parts: tuple[np.ndarray, ...], model: Any, rng: np.random.Generator
) -> dict[str, tuple[Conformal | CrossConformal, np.ndarray]]:
    """Return the calibration and the predictions of the test rows that it takes, for the ways for groups."""
    train, held, test = parts
    labels, prediction, held_prediction = rows.labels, model(test), model(held)
    one = np.array([rng.choice(np.flatnonzero(groups[held] == name)) for name in np.unique(groups[held])])
    known = np.sort(np.concatenate([train, held]))
    fold, out = np.zeros(len(known), dtype=int), np.zeros((len(known), len(labels)))
    by_fold = []
    for number in range(FOLDS):
        cut = kfold(len(known), FOLDS, number, 0, groups=groups[known])
        part = predictor(rows, head, known[cut.train])
        fold[cut.test], out[cut.test] = number, part(known[cut.test])
        by_fold.append(part(test))
    again, truth, subjects = predictor(rows, head, known)(test), rows.truth[known], groups[known]
    return {
        "split, groups": (Conformal.fit(labels, held_prediction, rows.truth[held], groups[held]), prediction),
        "split, a row a group": (Conformal.fit(labels, held_prediction[one], rows.truth[held][one]), prediction),
        "cross, one model": (Conformal.fit(labels, out, truth), again),
        "cross, one model, groups": (Conformal.fit(labels, out, truth, subjects), again),
        "cross, groups": (CrossConformal.fit(labels, out, truth, fold, subjects), np.stack(by_fold)),
    }


def predictor(rows: DataSet, name: str, train: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Fit a head on some rows, and return it as a function of rows."""
    head = Scaled(HEADS[name](), rows.scaling)
    head.build(rows.features.shape[1], rows.labels)
    torch.manual_seed(0)
    head.fit(Rows(rows.features, rows.target)[torch.from_numpy(train)], Collective())

    def predict(chosen: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return head.eval()(rows.features[torch.from_numpy(chosen)]).double().numpy()

    return predict


def predicted_at(
    labels: LabelSpace, calibration: Conformal | CrossConformal | None, prediction: np.ndarray, level: float
) -> np.ndarray:
    """Return intervals (N, 2) or label sets (N, C); without calibration those with ``level`` of the predicted mass."""
    if calibration is not None:
        return (
            calibration.interval(prediction, level) if labels.has_values else calibration.label_set(prediction, level)
        )
    if labels.has_values:
        return line_intervals(prediction, np.array(labels.axes[0]), level)
    return predicted_set(labels, prediction, level)


def measure(found: np.ndarray, truth: np.ndarray, groups: np.ndarray | None) -> dict[str, float]:
    """Return ``coverage``, the share of true values or of true mass that is held, and the mean ``width``.

    With groups also ``by_group``, the coverage that gives every group the same weight.
    """
    if found.dtype == bool:
        held, width = (truth * found).sum(1), found.sum(1)
    else:
        held = ((found[:, 0] <= truth) & (truth <= found[:, 1])).astype(float)
        width = found[:, 1] - found[:, 0]
    results = {"coverage": float(held.mean()), "width": float(width.mean())}
    if groups is not None:
        results["by_group"] = float(np.mean([held[groups == name].mean() for name in np.unique(groups)]))
    return results


def means(stored: list[Result], name: str, head: str, splits: int) -> Callable[[str, str], tuple[float, float]] | None:
    """Return mean and standard deviation over the splits as a function of way and metric; None if any is missing."""
    key = {"set": name, "head": head, "spec": digest(head)}
    rows = [row["found"] for row in stored if key.items() <= row.items() and row["split"] < splits]

    def over(way: str, metric: str) -> tuple[float, float]:
        values = [row[way][metric] for row in rows]
        return float(np.mean(values)), float(np.std(values, ddof=min(1, splits - 1)))

    return over if len(rows) == splits else None


def tabulate(stored: list[Result], sets: list[str], splits: int) -> tuple[list[str], list[list[str]]]:
    """Return a row per set and head: coverage in percent and mean width at every level, predicted and calibrated."""
    header = ["set", "head"]
    for level in LEVELS:
        header += [f"{level}%: predicted", "width", "calibrated", "width"]
    lines = []
    for name, head, over in found_in(stored, sets, splits):
        line = [name, head]
        for way in (f"{way} {level}" for level in LEVELS for way in ("plain", "split")):
            line += [in_percent(over(way, "coverage")), f"{over(way, 'width')[0]:.3g}"]
        lines.append(line)
    return header, lines


def compare_ways(stored: list[Result], splits: int) -> tuple[list[str], list[list[str]]]:
    """Return a row per way at 90% for sets with groups: coverage of rows and of groups, and mean width."""
    header = ["set", "head", "calibrated by", "rows held", "groups held", "width"]
    lines = []
    for name, head, over in found_in(stored, ["FG-NET, images", "FG-NET, appearance", "rotated digits"], splits):
        for way, words in WAYS.items():
            shares = [in_percent(over(f"{way} 90", metric)) for metric in ("coverage", "by_group")]
            lines.append([name, head, words, *shares, f"{over(f'{way} 90', 'width')[0]:.3g}"])
    return header, lines


def found_in(stored: list[Result], sets: list[str], splits: int) -> list[tuple[str, str, Any]]:
    """Return sets and heads that have all splits, with the function of :func:`means`."""
    every = [(name, head, means(stored, name, head, splits)) for name in sets for head in HEADS]
    return [(name, head, over) for name, head, over in every if over is not None]


def in_percent(pair: tuple[float, float]) -> str:
    """Return a mean and a standard deviation in percent."""
    return f"{100 * pair[0]:.1f} ± {100 * pair[1]:.1f}"


if __name__ == "__main__":
    launch(main)
