"""Pictures per second of the loader against the training step it feeds, side by side in one run.

    python benchmarks/speed/loader.py --threads 2

The loader is measured as training uses it: from the crop cache, with the default augmentation, collated batches,
in the training process itself (no loader processes). Loader and step alternate in blocks; medians over the blocks.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch
from PIL import Image

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show
from benchmarks.common.timing import seconds, take_turns
from ldl.backbones.timm import Timm
from ldl.data import UTKFace
from ldl.errors import LDLError
from ldl.heads import Softmax
from ldl.task import Task


def main() -> None:
    parser = make_parser(__doc__, threads=2)
    parser.add_argument(
        "--root", help="Folder of the data; default LDL_DATA. Made-up pictures where it has no UTKFace."
    )
    parser.add_argument("--backbone", default="mobilenetv2_100")
    parser.add_argument("--size", type=int, default=112)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6, help="Training steps a block.")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        cropping, data = open_data(options, Path(folder))
        batches = endless(data)
        step = make_step(data, options, next(batches))
        step()
        works = {
            "training step": lambda: rate(step, options.steps, options.batch, options.device),
            "loader: cached crops, augmented": lambda: rate(
                lambda: next(batches), 4 * options.steps, options.batch, "cpu"
            ),
        }
        measured = take_turns(works, options.blocks, lambda name, _: works[name]())
    rates = {name: statistics.median(column) for name, column in measured.items()}
    rates["first time: read, align, cache"] = cropping
    rows = [[name, f"{median:.0f}", f"{median / rates['training step']:.1f}"] for name, median in rates.items()]
    title = f"{options.backbone}, {options.size} px, batch {options.batch}, {options.threads} threads"
    show(title, ["what", "pictures per second", "against the step"], rows)


def open_data(options: argparse.Namespace, folder: Path) -> tuple[float, UTKFace]:
    """How many pictures a second were cropped, and the data module."""

    def make(root: str | None) -> UTKFace:
        return UTKFace(
            root=root, crop_size=options.size, batch_size=options.batch, val_fraction=0, cache_dir=str(folder / "cache")
        )

    data = make(options.root)
    try:
        took = seconds(data.setup)
    except LDLError:
        data = make(str(make_pictures(folder / "pictures")))
        took = seconds(data.setup)
    return data.size / took.clock, data


def make_pictures(folder: Path, count: int = 1000) -> Path:
    """A folder of pictures of noise, named as UTKFace names them."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        pixels = rng.integers(0, 256, (112, 112, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number % 100}_0_0_{number}.jpg")
    return folder


def endless(data: UTKFace) -> Iterator[dict[str, torch.Tensor]]:
    """Training batches, epoch after epoch."""
    while True:
        yield from data.train_dataloader()


def make_step(data: UTKFace, options: argparse.Namespace, batch: dict[str, torch.Tensor]) -> Callable[[], None]:
    """A function that takes one training step on ``batch``."""
    task = Task(Softmax(), Timm(options.backbone))
    task.build(data.labels, data.input_shape)
    task.to(options.device).train()
    optimizer = torch.optim.AdamW(task.parameters(), 1e-3)
    inputs, target = batch["input"].to(options.device), batch["target"].to(options.device)

    def step() -> None:
        loss = task.head.loss(task.backbone(inputs), target)["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def rate(function: Callable[[], object], times: int, batch: int, device: str) -> float:
    """Pictures per second of ``times`` calls."""

    def repeat() -> None:
        for _ in range(times):
            function()
        if device != "cpu":
            torch.cuda.synchronize()

    return times * batch / seconds(repeat).clock


if __name__ == "__main__":
    launch(main)
