"""How much faster a training step is on kept views of the fixed layers: seconds an epoch, side by side in one run.

    python benchmarks/faces/views.py --page docs/results/faces.md

Pictures of FG-NET, batches of 32, augmentation, forward and backward pass and the optimiser's step; medians of several
turns, in each of which both ways have theirs.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import torch
from torch import nn

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from ldl.backbones import Timm
from ldl.backbones.views import keep_views
from ldl.data import FGNET
from ldl.data.base import LDLDataModule
from ldl.reports.files import markdown

BATCH = 32


def main() -> None:
    """Time both ways, print the table."""
    parser = make_parser(__doc__, threads=1, block="views")
    parser.add_argument("--name", default="mobilenetv2_100", help="Network of timm.")
    parser.add_argument("--groups", nargs="+", type=int, default=[11, 14], help="Frozen groups of layers.")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--batches", type=int, default=10, help="Of each turn.")
    parser.add_argument("--size", type=int, default=112, help="Side of the pictures.")
    parser.add_argument("--root", help="Folder of the data; default LDL_DATA.")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    data = FGNET(root=options.root, crop_size=options.size, batch_size=BATCH, val_fraction=0)
    data.setup()
    rows = []
    for groups in options.groups:
        backbone = Timm(options.name, freeze_groups=groups, views=2)
        backbone.build((3, options.size, options.size))
        views = keep_views(backbone, data, torch.device("cpu"))
        seconds: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(options.turns):
            for kept in (False, True):
                data.views = views if kept else None
                seconds[kept].append(steps(backbone.train(), data, options.batches))
        whole, upper = (1000 * median(seconds[kept]) / options.batches for kept in (False, True))
        rows.append([str(groups), f"{whole:.0f}", f"{upper:.0f}", f"{whole / upper:.1f}"])
    header = ["frozen groups", "whole network, ms a step", "kept views, ms a step", "times as fast"]
    show(f"{options.name}, {options.size} px, batches of {BATCH}, {options.threads} thread", header, rows)
    if options.page:
        write_block(options.page, "views", markdown(header, rows))


def steps(backbone: Timm, data: LDLDataModule, count: int) -> float:
    """Seconds of so many steps of training, with their batches."""
    learned = [parameter for parameter in backbone.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=1e-6, fused=True)
    batches = iter(data.train_dataloader())
    begin = time.perf_counter()
    for _ in range(count):
        batch = next(batches)
        features = backbone.from_kept(batch["maps"]) if "maps" in batch else backbone(batch["input"])
        nn.functional.mse_loss(features, torch.zeros_like(features)).backward()
        optimizer.step()
        optimizer.zero_grad()
    return time.perf_counter() - begin


if __name__ == "__main__":
    launch(main)
