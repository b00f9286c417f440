"""What a training step of a network on pixels costs: options of the backbone, and memory that is kept.

    python benchmarks/edges/step.py

Four crops of 192 pixels, forwards and backwards, on one thread; milliseconds of processor time, the least of eight.
Every case is a process of its own, since glibc reads how it keeps memory when a process starts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from ldl.backbones.pixel_features import PixelFeatures
from ldl.batch import learned_pixels
from ldl.heads import Softmax
from ldl.labels import LabelSpace
from ldl.reports.files import markdown

KEPT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "10000000000", "MALLOC_TOP_PAD_": "268435456"}
"""Memory that is freed stays with the process: giving it back costs a fault for every page of every map."""
CASES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "mobilenetv2_100": ({}, {}),
    "memory kept": ({}, KEPT),
    "fold": ({"fold": True}, {}),
    "fold, memory kept": ({"fold": True}, KEPT),
    "the same, side_outputs: 3": ({"fold": True, "side_outputs": 3}, KEPT),
}


def main() -> None:
    """Time all cases, each in a process of its own, and print a row for each."""
    parser = make_parser(__doc__, block="edges_step")
    parser.add_argument("--one", type=json.loads, help="time these options of the backbone alone, as JSON")
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(timed(options.one)))
        return
    rows = []
    for name, (chosen, kept) in CASES.items():
        command = [sys.executable, __file__, "--one", json.dumps(chosen)]
        environment = {key: value for key, value in os.environ.items() if key not in KEPT} | kept
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        parameters, *seconds = json.loads(said.splitlines()[-1])
        rows.append([name, f"{parameters / 1e6:.2f}", *(f"{1000 * part:.0f}" for part in (*seconds, sum(seconds)))])
    header = ["backbone", "million parameters", "forwards, ms", "backwards, ms", "both, ms"]
    show("A step of training, four crops of 192 pixels", header, rows)
    if options.page:
        write_block(options.page, "edges_step", markdown(header, rows))


def timed(options: dict[str, Any]) -> tuple[int, float, float]:
    """Parameters of a backbone with these options, and the seconds of a step's two halves."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    backbone, head = PixelFeatures(**{"name": "mobilenetv2_100", "pretrained": False, **options}), Softmax()
    head.build(backbone.build((3, 192, 192)), LabelSpace.nominal(["no edge", "edge"]))
    images, share = torch.randint(0, 256, (4, 3, 192, 192), dtype=torch.uint8), torch.rand(4, 192, 192)
    keep = torch.rand(share.shape) < 0.4
    batch = {"target": torch.stack([1 - share, share], -1), "keep": keep, "kept": keep.flatten().nonzero().flatten()}
    halves = []
    for _ in range(9):
        start = time.process_time()
        loss = head.loss(*learned_pixels(backbone.train()(images), batch["target"], batch))["loss"]
        middle = time.process_time()
        loss.backward()
        halves.append((middle - start, time.process_time() - middle))
    forwards, backwards = min(halves[1:], key=sum)
    return sum(part.numel() for part in backbone.parameters()), forwards, backwards


if __name__ == "__main__":
    launch(main)
