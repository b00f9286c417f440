"""Figure 6 of Huang, Loy & Tang 2016: error over the number of trees, their depth and the least rows of a node.

    python benchmarks/dsna/figure6.py [--data fgnet_aam pointing04 --heads CostSensitiveForest DSNA --folds 5]

One parameter is swept, the others stay as in configs/runs (20 trees, depth 10 and 5 rows where those do not say). MAE
over all test rows: FG-NET's AAM features in folds of whole persons; Pointing'04's HOG features (where its pictures are)
in the paper's random folds, which leak, as the mean of both angles. It shows how much the parameters matter and is not
for choosing them: these are test folds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import ldl.heads
from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import fit_rows
from benchmarks.common.runs import run_config
from ldl.backbones.base import Backbone, Identity
from ldl.backbones.hog import HOG
from ldl.charts.drawing import save
from ldl.data import FGNETAAM, LDLDataModule, Pointing04
from ldl.head import FittedHead

PAPER: dict[str, Any] = {"trees": 20, "depth": 10, "min_samples": 5}
SWEEPS = {"trees": (1, 5, 10, 20, 50), "depth": (2, 4, 6, 8, 10, 12), "min_samples": (2, 5, 10, 20, 40)}
NAMES = {"trees": "trees", "depth": "greatest depth", "min_samples": "least rows of a node that splits"}
DATA = {"fgnet_aam": "FG-NET, AAM features", "pointing04": "Pointing'04, HOG features"}


def main() -> None:
    """Measure, print the figures and write the chart."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", nargs="+", choices=DATA, default=["fgnet_aam"], help="(default: fgnet_aam)")
    parser.add_argument("--heads", nargs="+", default=["CostSensitiveForest", "DSNA"], help="(default: both)")
    parser.add_argument("--folds", type=int, default=5, help="how many of five (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("figure6.png"), help="(default: %(default)s)")
    options = parser.parse_args()
    figure = Figure(figsize=(5 * len(options.data), 9), layout="constrained")
    grid = figure.subplots(len(SWEEPS), len(options.data), squeeze=False)
    for column, name in enumerate(options.data):
        data, features = load(name)
        heads = {head: settings(name, head) for head in options.heads}
        for row, swept in enumerate(SWEEPS):
            draw(grid[row, column], data, features, swept, heads, range(options.folds))
        grid[0, column].set_title(f"{DATA[name]}, {data.protocol}")
    print(save(figure, options.out))


def load(name: str) -> tuple[LDLDataModule, torch.Tensor]:
    """A data module with five folds, and the features (N, F) of all its instances."""
    data: LDLDataModule
    backbone: Backbone
    if name == "fgnet_aam":
        data, backbone = FGNETAAM(protocol="group_exclusive", folds=5, val_fraction=0), Identity()
    else:
        data, backbone = Pointing04(protocol="random_5fold", val_fraction=0), HOG()
    data.setup()
    backbone.build(data.input_shape)
    return data, torch.cat([backbone(batch["input"]) for batch in data.whole_dataloader()])


def settings(data_name: str, head: str) -> dict[str, Any]:
    """Arguments of a head: those of its run in ``configs``, over the paper's."""
    file = run_config(data_name, head.lower())
    given = yaml.safe_load(file.read_text())["model"]["head"].get("init_args", {}) if file.is_file() else {}
    return {**PAPER, **given}


def draw(
    axis: Axes,
    data: LDLDataModule,
    features: torch.Tensor,
    swept: str,
    heads: dict[str, dict[str, Any]],
    folds: Sequence[int],
) -> None:
    """One panel: the error of each head over the values of ``swept``; dotted, the value it has in its run."""
    print(f"{swept:>24}" + "".join(f"{value:>8}" for value in SWEEPS[swept]))
    for head, arguments in heads.items():
        errors = [error(head, {**arguments, swept: value}, data, features, folds) for value in SWEEPS[swept]]
        print(f"{head:>24}" + "".join(f"{value:8.3f}" for value in errors), flush=True)
        (line,) = axis.plot(SWEEPS[swept], errors, marker="o", label=head)
        axis.axvline(arguments[swept], color=line.get_color(), linewidth=1, linestyle=":")
    axis.set(xlabel=NAMES[swept], ylabel=f"MAE in {data.labels.unit}")
    axis.legend(fontsize=8)


def error(
    head_name: str, arguments: dict[str, Any], data: LDLDataModule, features: torch.Tensor, folds: Sequence[int]
) -> float:
    """MAE over the test rows of the folds together."""
    value = data.columns["value"]
    errors = []
    for fold in folds:
        data.select_fold(fold)
        head = getattr(ldl.heads, head_name)(**arguments, seed=fold)
        assert isinstance(head, FittedHead)
        fit_rows(head, data, features, data.split.train)
        test = torch.from_numpy(data.split.test)
        predicted = head.point_estimate(features[test])
        if predicted is None:
            predicted = data.labels.decode(head(features[test]))
        errors.append((predicted - value[test]).abs().flatten())
    return float(torch.cat(errors).mean())


if __name__ == "__main__":
    launch(main)
