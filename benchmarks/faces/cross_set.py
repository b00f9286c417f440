"""Heads that were trained on one set of faces and are tested on the other, without any fold.

    python benchmarks/faces/cross_set.py --weights runs/backbone/checkpoints/last.ckpt

All see the features of one frozen network, that of ``configs/runs/utkface/pretrain_long.yaml``, and are made as
``configs/runs/fgnet/HEAD.yaml`` says. UTKFace to FG-NET: the nine tenths of UTKFace that the network was trained on,
tested on all of FG-NET. FG-NET to UTKFace: all of FG-NET, tested on the tenth of UTKFace that the network has not seen.
Settings are those that serve FG-NET's own folds. The last row is the head that the network was trained with, as it is.
MAE in years, decoded by the expectation, mean ± standard deviation over the seeds.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch

import ldl.heads  # noqa: F401  (their names become known to the parser)
from benchmarks.common.command import launch, make_parser
from benchmarks.common.runs import be_quiet, quiet_trainer, run_config
from benchmarks.common.tables import show, write_block
from ldl.cli.training import parse_anew
from ldl.comparison.figures import spread
from ldl.data import FGNET, UTKFace
from ldl.data.faces.ages import FaceAges
from ldl.data.faces.protocols import PARTS
from ldl.data.faces.records import FaceRecords
from ldl.metrics.rows import row_metrics
from ldl.options import options
from ldl.protocols import random_split
from ldl.reports.files import markdown
from ldl.running.crossval import crossvalidate
from ldl.task import Task

HEADS = ("meanpredictor", "aaknn", "softmax", "dldl_v2", "ldlf", "structrf", "mslp", "dsna", "maxent")
MEASURES = {"MAE": "mae", "years too much": "bias", "balanced MAE": "balanced_mae", "within 5 years": "cs5"}
Tested = Literal["FGNET", "UTKFace"]
WAYS: dict[Tested, str] = {"FGNET": "UTKFace to FG-NET", "UTKFace": "FG-NET to UTKFace"}


@options
class CrossSet(FaceAges):
    """UTKFace and FG-NET in one list, one for training and the other for the test.

    Args:
        tested: The set that is tested.
    """

    protocols = {"parts": PARTS}
    age_range = (0, 116)

    tested: Tested = "FGNET"

    def read(self) -> FaceRecords:
        """Both sets, with the part that each picture belongs to."""
        of_utkface, of_fgnet = UTKFace(root=self.root).read(), FGNET(root=self.root).read()
        seen, unseen = random_split(len(of_utkface), 0.1, self.fold_seed)
        part = np.full(len(of_utkface) + len(of_fgnet), "none", dtype="<U5")
        fgnet = np.arange(len(of_utkface), len(part))
        train, test = (seen, fgnet) if self.tested == "FGNET" else (fgnet, unseen)
        part[train], part[test] = "train", "test"
        return FaceRecords(
            Path(self.data_root),
            [str(path.relative_to(self.data_root)) for records in (of_utkface, of_fgnet) for path in records.paths()],
            np.concatenate([of_utkface.values, of_fgnet.values]),
            None,  # nobody knows those of UTKFace
            [None] * len(of_utkface) + list(of_fgnet.anchors or []),
            facts={"part": part},
        )


def main() -> None:
    """Train and test every head both ways, print the table."""
    parser = make_parser(__doc__, threads=1, block="age_cross_set")
    parser.add_argument("--weights", required=True, help="Checkpoint of the backbone.")
    parser.add_argument("--heads", nargs="+", default=list(HEADS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--root", help="Folder of the data; default LDL_DATA.")
    parsed = parser.parse_args()
    be_quiet(parsed.threads)
    modules = {tested: CrossSet(root=parsed.root, tested=tested, batch_size=256, val_fraction=0) for tested in WAYS}
    rows = []
    for head in parsed.heads:
        begin = time.perf_counter()
        cells = []
        for data in modules.values():
            runs = [measure(head, seed, data, parsed) for seed in parsed.seeds]
            cells += [spread(run[name] for run in runs) or "-" for name in MEASURES.values()]
        rows.append([head, *cells, f"{time.perf_counter() - begin:.0f}"])
        print(rows[-1], flush=True)
    own = [own_head(data, parsed.weights) for data in modules.values()]
    rows.append(["the network's own", *(f"{found[name]:.3f}" for found in own for name in MEASURES.values()), "-"])
    header = ["head", *(f"{name}, {way}" for way in WAYS.values() for name in MEASURES), "seconds"]
    show(f"trained on one set, tested on the other, seeds {parsed.seeds}", header, rows)
    if parsed.page:
        write_block(parsed.page, "age_cross_set", markdown(header, rows))


def measure(head: str, seed: int, data: CrossSet, parsed: argparse.Namespace) -> dict[str, float]:
    """Measures of one head over the test pictures."""
    config = run_config("fgnet", head)
    cli = parse_anew(["-c", str(config), "--seed_everything", str(seed), "--model.backbone.weights", parsed.weights])
    trainer = quiet_trainer(cli.config.trainer.max_epochs)
    tested: list[dict[str, np.ndarray]] = []
    found = crossvalidate(lambda: cli.make_task(cli.config), data, seed=seed, trainer=trainer, rows=tested)["pooled"]
    return {**found, "bias": float((tested[0]["predicted_value"] - tested[0]["value"]).mean())}


def own_head(data: CrossSet, checkpoint: str) -> dict[str, float]:
    """Measures of the checkpoint's head on the features that were computed for the others."""
    task = Task.load_from_checkpoint(checkpoint)
    assert data.backbone_features is not None and data.values is not None
    rows = torch.from_numpy(data.split.test)
    with torch.no_grad():
        prediction, _ = task.head.predict(data.backbone_features[rows])
    value = np.asarray(data.values)[data.split.test]
    decoded = data.labels.decode(prediction).double().numpy()
    target = data.columns["target"][rows].double().numpy()
    columns = {"prediction": prediction.double().numpy(), "target": target, "value": value, "predicted_value": decoded}
    return {**row_metrics(columns, data.labels), "bias": float((decoded - value).mean())}


if __name__ == "__main__":
    launch(main)
