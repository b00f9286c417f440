"""Figure 6 of Huang, Loy & Tang 2016: error over the number of trees, their depth and the least rows of a node.

    python benchmarks/dsna/figure6.py --data pointing04 [--folds 5]

The column of age is an item of ``benchmarks/papers.py``; this command draws that of pose, where Pointing'04's pictures
are: HOG features, the paper's random folds, which leak, the mean of both angles. One parameter is swept, the others are
the paper's, and all else is as in configs/runs. It shows how much the parameters matter and is not for choosing them:
these are test folds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch
import yaml
from matplotlib.figure import Figure

import ldl.heads
from benchmarks.common.claims import Claim, Statement
from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import fit_rows
from benchmarks.common.items import Work
from benchmarks.common.runs import run_config
from ldl.backbones.base import Backbone, Identity
from ldl.backbones.hog import HOG
from ldl.cells.store import Row
from ldl.charts.drawing import save
from ldl.data import FGNETAAM, LDLDataModule, Pointing04
from ldl.head import FittedHead

PAPER: dict[str, Any] = {"trees": 20, "depth": 10, "min_samples": 5}
SWEEPS = {"trees": (1, 5, 10, 20, 50), "depth": (2, 4, 6, 8, 10, 12), "min_samples": (2, 5, 10, 20, 40)}
NAMES = {"trees": "trees", "depth": "greatest depth", "min_samples": "least rows of a node that splits"}
ROBUST = 0.03
"""The paper's value is as good as the best where its error is larger by at most this share."""
FOLDS = 2

Errors = dict[str, dict[int, float]]
"""By parameter and value."""


def figure6(work: Work) -> Iterator[Claim]:
    """The column of age."""
    data, features = load("fgnet_aam")
    sweeps = {name: values[:2] for name, values in SWEEPS.items()} if work.quick else SWEEPS
    given = {**settings("fgnet_aam", "DSNA"), **({"trees": 2} if work.quick else {})}

    def measured(arguments: dict[str, Any]) -> float:
        def measure(fold: int) -> Row:
            rows = errors("DSNA", arguments, data, features, fold)
            return {"sum": float(rows.sum()), "count": len(rows)}

        cells = [
            work.cell({**arguments, "fold": fold}, partial(measure, fold)) for fold in range(1 if work.quick else FOLDS)
        ]
        return float(sum(cell["sum"] for cell in cells) / sum(cell["count"] for cell in cells))

    found = swept(given, measured, sweeps)
    draw({"DSNA": found}, "FG-NET, AAM features", work.folder / "sweeps.png")
    for name, by_value in found.items():
        own, best = PAPER[name], min(by_value.values())
        shown = ", ".join(f"{value}: {error:.2f}" for value, error in by_value.items())
        holds = by_value.get(own, best) <= (1 + ROBUST) * best
        yield Statement(f"age, {NAMES[name]}: {own} is within {ROBUST:.0%} of the best", holds, shown, f"chosen: {own}")
    few, chosen = min(found["trees"]), found["trees"].get(PAPER["trees"], 0.0)
    yield Statement("age, one tree is worse than the chosen number", found["trees"][few] > (1 + ROBUST) * chosen,
                    f"{found['trees'][few]:.2f}, {chosen:.2f}")  # fmt: skip


def main() -> None:
    """Measure, print the figures and write the chart."""
    parser = make_parser(__doc__, threads=1)
    parser.add_argument("--data", choices=["fgnet_aam", "pointing04"], default="pointing04", help="(%(default)s)")
    parser.add_argument("--heads", nargs="+", default=["CostSensitiveForest", "DSNA"], help="(default: both)")
    parser.add_argument("--folds", type=int, default=5, help="how many of five (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("figure6.png"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    data, features = load(options.data)

    def measured(head: str, arguments: dict[str, Any]) -> float:
        return float(torch.cat([errors(head, arguments, data, features, fold) for fold in range(options.folds)]).mean())

    found = {head: swept(settings(options.data, head), partial(measured, head)) for head in options.heads}
    for head, sweeps in found.items():
        for name, by_value in sweeps.items():
            print(f"{head}, {NAMES[name]}: " + ", ".join(f"{value}: {error:.3f}" for value, error in by_value.items()))
    print(draw(found, f"{options.data}, {data.protocol}", options.out))


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
    """Arguments of a head: those of its run in ``configs``, and the paper's over them."""
    file = run_config(data_name, head.lower())
    given = (
        yaml.safe_load(file.read_text(encoding="utf-8"))["model"]["head"].get("init_args", {}) if file.is_file() else {}
    )
    return {**given, **PAPER}


def swept(
    arguments: dict[str, Any], measured: Callable[[dict[str, Any]], float], sweeps: dict[str, Any] = SWEEPS
) -> Errors:
    """The error over the values of each parameter, while the others stay."""
    return {name: {value: measured({**arguments, name: value}) for value in values} for name, values in sweeps.items()}


def draw(found: dict[str, Errors], title: str, path: Path) -> Path:
    """A panel a parameter; dotted, the paper's value."""
    figure = Figure(figsize=(5, 9), layout="constrained")
    figure.suptitle(title)
    for axis, name in zip(figure.subplots(len(SWEEPS)), SWEEPS):
        for head, sweeps in found.items():
            axis.plot(list(sweeps[name]), list(sweeps[name].values()), marker="o", label=head)
        axis.axvline(PAPER[name], color="0.5", linewidth=1, linestyle=":")
        axis.set(xlabel=NAMES[name], ylabel="MAE")
        axis.legend(fontsize=8)
    return save(figure, path)


def errors(
    head_name: str, arguments: dict[str, Any], data: LDLDataModule, features: torch.Tensor, fold: int
) -> torch.Tensor:
    """Absolute errors of the test rows of a fold."""
    data.select_fold(fold)
    head = getattr(ldl.heads, head_name)(**arguments, seed=fold)
    assert isinstance(head, FittedHead)
    fit_rows(head, data, features, data.split.train)
    test = torch.from_numpy(data.split.test)
    predicted = head.point_estimate(features[test])
    if predicted is None:
        predicted = data.labels.decode(head(features[test]))
    return (predicted - data.columns["value"][test]).abs().flatten()


if __name__ == "__main__":
    launch(main)
