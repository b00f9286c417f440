"""What each step of a recipe for UTKFace gives, and what it costs.

    python benchmarks/faces/steps.py --out runs/steps --page docs/results/faces.md

A step changes one thing of ``configs/runs/utkface/pretrain.yaml``, beside what those before it changed that are kept.
Of the nine tenths of UTKFace that pretraining has, a tenth is left out and measured: the tenth on which pretraining is
tested is never seen. One seed; MAE in years, decoded by the expectation; minutes of one processor, with those of
making the views where no step before has made the same.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split

import ldl.data
import ldl.heads  # noqa: F401  (their names become known to the parser)
from benchmarks.common.command import launch, make_parser
from benchmarks.common.runs import be_quiet, quiet_trainer, run_config
from benchmarks.common.tables import show, write_block
from ldl.callbacks import MovingAverage
from ldl.cli.training import parse_anew
from ldl.data import UTKFace
from ldl.data.faces.records import FaceRecords
from ldl.options import options
from ldl.protocols import random_split
from ldl.reports.files import markdown
from ldl.running.crossval import crossvalidate


@dataclass(frozen=True)
class Step:
    """A step of the recipe.

    Attributes:
        name: What it changes.
        options: The same for the command line.
        kept: Whether the steps after it have it too.
        averaged: Whether it adds the callback MovingAverage.
    """

    name: str
    options: tuple[str, ...]
    kept: bool
    averaged: bool = False


FOREST = (
    "model.head=LDLF", "model.head.trees=10", "model.head.depth=5", "model.head.outputs=null",
    "model.head.hidden=[256]", "model.head.dropout=0.2", "model.head.feature_dropout=0.2", "model.head.batches=10",
    "model.optimizer.lr=3e-3",
)  # fmt: skip
"""That of configs/runs/utkface/ldlf.yaml, with the objective of the paper."""
STEPS = (
    Step("six epochs", ("trainer.max_epochs=6",), True),
    Step(
        "four groups of layers fixed, eight kept views",
        ("model.backbone.freeze_groups=4", "model.backbone.views=8"), True,
    ),
    Step("averaged weights", (), True, averaged=True),
    Step("seven groups fixed", ("model.backbone.freeze_groups=7",), False),
    Step("efficientnet_lite0", ("model.backbone.name=tf_efficientnet_lite0",), False),
    Step("strong augmentation", ("data.augmentation=strong",), False),
    Step("rare ages more often", ("data.balance=0.5",), False),
    Step("LDLF in place of softmax", FOREST, False),
    Step("twelve epochs", ("trainer.max_epochs=12",), True),
)  # fmt: skip
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
    parser.add_argument("--root", help="Folder of the data; default LDL_DATA.")
    options = parser.parse_args()
    be_quiet(options.threads)
    rows = []
    for number in options.steps:
        step, file = STEPS[number], options.out / f"{STEPS[number].name.replace(' ', '_')}.json"
        if not file.is_file():
            options.out.mkdir(parents=True, exist_ok=True)
            taken = [*(before for before in STEPS[:number] if before.kept), step]
            file.write_text(json.dumps(measure(taken, options.root)), encoding="utf-8")
        found = json.loads(file.read_text(encoding="utf-8"))
        cells = [f"{found[name]:.3f}" for name in MEASURES.values()]
        rows.append([step.name, *cells, f"{found['minutes']:.0f}", "yes" if step.kept else "no"])
        print(rows[-1], flush=True)
    header = ["step", *MEASURES, "minutes", "kept"]
    show("UTKFace, a tenth of the training part", header, rows)
    if options.page:
        write_block(options.page, "age_steps", markdown(header, rows))


def measure(taken: list[Step], root: str | None) -> dict[str, float]:
    """Measures over the part left out, and minutes of one processor."""
    args = ["-c", str(run_config("utkface", "pretrain"))]
    args += [f"--{option}" for step in taken for option in step.options]
    args += ["--data.root", root] if root else []
    cli = parse_anew(args)
    data = KnownOfUTKFace(**cli.config.data.init_args.as_dict())
    trainer = quiet_trainer(cli.config.trainer.max_epochs)
    trainer |= {"callbacks": [MovingAverage()]} if any(step.averaged for step in taken) else {}
    begin = time.process_time()
    found = crossvalidate(lambda: cli.make_task(cli.config), data, seed=0, trainer=trainer)["pooled"]
    return {**found, "minutes": (time.process_time() - begin) / 60}


if __name__ == "__main__":
    launch(main)
