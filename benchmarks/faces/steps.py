"""What each step of a recipe for UTKFace gives, and what it costs.

    python benchmarks/faces/steps.py --out runs/steps --page docs/results/faces.md

A step changes one thing of ``configs/runs/utkface/pretrain.yaml`` and leaves what the steps before it changed. Of the
nine tenths of UTKFace that pretraining has, a tenth is left out and measured: the tenth on which pretraining is tested
is never seen. One seed; MAE in years, decoded by the expectation; minutes are of one processor.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import torch

import ldl.data
import ldl.heads  # noqa: F401  (their names become known to the parser)
from benchmarks.common.command import launch, make_parser
from benchmarks.common.runs import quiet_trainer, run_config
from benchmarks.common.tables import show, write_block
from ldl.callbacks import MovingAverage
from ldl.data import UTKFace
from ldl.data.faces.records import FaceRecords
from ldl.options import options
from ldl.protocols import random_split
from ldl.reports.files import markdown
from ldl.running.crossval import crossvalidate
from ldl.running.parser import LDLCLI
from ldl.running.quiet import silence

AVERAGED = "averaged weights"
STEPS: dict[str, list[str]] = {
    "six epochs": ["trainer.max_epochs=6"],
    "four groups of layers fixed, eight kept views": ["model.backbone.freeze_groups=4", "model.backbone.views=8"],
    AVERAGED: [],
    "strong augmentation": ["data.augmentation=strong"],
    "rare ages more often": ["data.balance=0.5"],
    "sixteen epochs": ["trainer.max_epochs=16"],
    "efficientnet_lite0": ["model.backbone.name=tf_efficientnet_lite0"],
}
MEASURES = {"MAE": "mae", "balanced MAE": "balanced_mae", "MAE of rare ages": "mae_few", "within 5 years": "cs5"}


@options
class KnownOfUTKFace(UTKFace):
    """The nine tenths that pretraining sees, of which ``holdout`` leaves out a tenth again."""

    def read(self) -> FaceRecords:
        """Their pictures."""
        records = super().read()
        return records.take(random_split(len(records), 0.1, self.fold_seed)[0])


def main() -> None:
    """Measure what is missing, print the table."""
    parser = make_parser(__doc__, threads=1, block="age_steps")
    parser.add_argument("--out", type=Path, required=True, help="Folder of the figures, which are measured but once.")
    parser.add_argument("--steps", nargs="+", type=int, default=list(range(len(STEPS))), help="(default: all)")
    parser.add_argument("--without", nargs="*", type=int, default=[], help="Steps that the later ones do not take.")
    parser.add_argument("--options", nargs="*", default=[], help="NAME=VALUE for all of them.")
    parser.add_argument("--root", help="Folder of the data; default LDL_DATA.")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    silence()
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    names, rows = list(STEPS), []
    for number in given.steps:
        taken = [name for step, name in enumerate(names[: number + 1]) if step == number or step not in given.without]
        chosen = [*(option for name in taken for option in STEPS[name]), *given.options]
        file = given.out / f"{number}.json"
        if not file.is_file():
            given.out.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(measure(chosen, AVERAGED in taken, given.root)), encoding="utf-8")
        found = json.loads(file.read_text(encoding="utf-8"))
        rows.append([names[number], *(f"{found[name]:.3f}" for name in MEASURES.values()), f"{found['minutes']:.0f}"])
        print(rows[-1], flush=True)
    header = ["step", *MEASURES, "minutes"]
    show("UTKFace, a tenth of the training part", header, rows)
    if given.page:
        write_block(given.page, "age_steps", markdown(header, rows))


def measure(chosen: list[str], averaged: bool, root: str | None) -> dict[str, float]:
    """Measures over the part left out, and minutes of one processor."""
    args = ["-c", str(run_config("utkface", "pretrain")), *(f"--{option}" for option in chosen)]
    args += ["--data.root", root] if root else []
    cli = LDLCLI(args)
    data = KnownOfUTKFace(**cli.config.data.init_args.as_dict())
    trainer = quiet_trainer(cli.config.trainer.max_epochs)
    begin = time.process_time()
    callbacks = {"callbacks": [MovingAverage()]} if averaged else {}
    found = crossvalidate(lambda: cli.make_task(cli.config), data, seed=0, trainer={**trainer, **callbacks})["pooled"]
    return {**found, "minutes": (time.process_time() - begin) / 60}


if __name__ == "__main__":
    launch(main)
