"""Heads side by side on the features of one frozen backbone, under one protocol of age, with ridge as the foil.

    python benchmarks/ldlf/age.py                                   # FG-NET, leave one person out, ImageNet features
    python benchmarks/ldlf/age.py --weights RUN/checkpoints/last.ckpt --seeds 0 1 2

Every head is trained as its ``configs/runs/DATA/HEAD.yaml`` says, on the same folds; figures are over all test
pictures of all folds together, mean and standard deviation over the seeds. Ridge sees the same features,
standardised, and chooses its penalty by leave-one-out error on the training pictures of each fold.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import pytorch_lightning as pl
import torch
from rich.progress import track
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ldl.data
import ldl.heads  # noqa: F401  (their names become known to the parser)
from benchmarks.common.command import launch, make_parser
from benchmarks.common.runs import be_quiet, quiet_trainer, run_config
from benchmarks.common.tables import show, write_block
from ldl.backbones.reuse import reuse_features
from ldl.cli.training import parse_anew
from ldl.comparison.figures import spread
from ldl.data.base import LDLDataModule
from ldl.reports.files import markdown
from ldl.running.crossval import crossvalidate
from ldl.task import Task

PRINTED = ("mae", "mae_few", "cs5", "balanced_mae", "kl", "crps", "calibration_error")


def main() -> None:
    """Train, test, print the table."""
    parser = make_parser(__doc__, threads=1, block="age")
    parser.add_argument("--block", default="age", help="Another block of the page, such as that of other weights.")
    parser.add_argument("--data", default="fgnet", help="First part of the names of the configurations.")
    parser.add_argument("--heads", nargs="+", default=["softmax", "dldl_v2", "ldlf"])
    parser.add_argument("--weights", help="Checkpoint or weights of the backbone; default ImageNet's.")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--root", help="Folder of the data; default LDL_DATA.")
    parser.add_argument("--out", type=Path, help="JSON file for all figures.")
    options = parser.parse_args()
    be_quiet(options.threads)
    figures: dict[str, Any] = {}
    for head in options.heads:
        start = time.perf_counter()
        runs = [evaluate(head, seed, options) for seed in options.seeds]
        figures[head] = {"runs": runs, "seconds": (time.perf_counter() - start) / len(runs)}
    _, data, _ = instantiate(options.heads[0], 0, options)
    figures["ridge"] = {"runs": [ridge(data)], "seconds": 0.0}
    title = f"{type(data).__name__}, {data.protocol}, {data.num_folds} folds, seeds {options.seeds}"
    header, rows = ["head", *PRINTED, "seconds"], tabulate(figures)
    show(title, header, rows)
    if options.out:
        options.out.write_text(
            json.dumps({"title": title, "weights": options.weights, "figures": figures}, indent=2), encoding="utf-8"
        )
    if options.page:
        network = f"backbone {Path(options.weights).name}" if options.weights else "ImageNet's backbone"
        protocol = f"{title}, {network}; mean ± standard deviation over the seeds."
        write_block(options.page, options.block, f"{protocol}\n\n{markdown(header, rows)}")


def instantiate(head: str, seed: int, options: argparse.Namespace) -> tuple[Task, LDLDataModule, int]:
    """Task, data module and epochs of the head's configuration; the data serve the backbone's features."""
    args = ["-c", str(run_config(options.data, head)), "--seed_everything", str(seed)]
    args += ["--model.backbone.weights", options.weights] if options.weights else []
    args += ["--data.root", options.root] if options.root else []
    cli = parse_anew(args)
    pl.seed_everything(seed, workers=True, verbose=False)
    task, data = cli.make_task(cli.config), cli.make_data(cli.config)
    data.setup()
    task.build(data.labels, data.input_shape)
    reuse_features(task.backbone, data, torch.device("cpu"))
    return task, data, cli.config.trainer.max_epochs


def evaluate(head: str, seed: int, options: argparse.Namespace) -> dict[str, float]:
    """Metrics of one head over the test pictures of all folds together."""
    blank, data, epochs = instantiate(head, seed, options)
    trainer = quiet_trainer(epochs)
    # A copy of one task: its weights are drawn once, and a fold begins with the seed's first number.
    return crossvalidate(lambda: copy.deepcopy(blank), data, seed=seed, trainer=trainer)["pooled"]


def ridge(data: LDLDataModule) -> dict[str, float]:
    """Metrics of ridge regression over the test pictures of all folds together."""
    assert data.backbone_features is not None and data.values is not None
    features, errors = data.backbone_features.numpy(), []
    for fold in track(range(data.num_folds), description="ridge"):
        data.select_fold(fold)
        train = np.concatenate([data.split.train, data.split.val])
        model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(1, 5, 17)))
        model.fit(features[train], data.values[train])
        errors.append(model.predict(features[data.split.test]) - data.values[data.split.test])
    error = np.abs(np.concatenate(errors))
    return {"mae": float(error.mean()), "cs5": float((error <= 5).mean())}


def tabulate(figures: dict[str, Any]) -> list[list[str]]:
    """A row a head: mean and standard deviation over the seeds."""
    return [
        [
            head,
            *(spread(run[name] for run in figure["runs"] if name in run) or "-" for name in PRINTED),
            f"{figure['seconds']:.0f}" if figure["seconds"] else "-",
        ]
        for head, figure in figures.items()
    ]


if __name__ == "__main__":
    launch(main)
