"""What LDLF costs over softmax on the same backbone, and how busy loading keeps the device, by one command.

    python benchmarks/gpu.py --page docs/results/engineering.md     # minutes on one GPU
    python benchmarks/gpu.py --costs --backbone resnet18 --size 64 --batch 64 --device cpu
    python benchmarks/gpu.py --quick --device cpu              # whether it runs, anywhere

Both heads train in one process in alternating blocks on random images; LDLF has the paper's hyperparameters. It needs
neither jsonargparse nor albumentations nor wandb; without albumentations images are not augmented.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Generator
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor

from benchmarks.common.script import launch, make_parser, seconds, take_turns, write_block
from ldl.backbones.timm import Timm
from ldl.collective import Collective
from ldl.data.base import LDLDataModule, Loaded
from ldl.head import AlternatingHead, Head
from ldl.heads import LDLF, Softmax
from ldl.labels import LabelSpace
from ldl.options import option, options
from ldl.reports.files import markdown
from ldl.task import Task

PRECISIONS = (("32", "none"), ("tf32", "none"), ("bf16", "none"), ("bf16", "head"), ("bf16", "all"))
"""Precision, and what is compiled."""
EPOCH_STEPS = 100
QUICK = {"backbone": "resnet18", "size": 32, "batch": 4, "blocks": 2, "steps": 1, "updates": 1, "workers": 1}
WARMUP, MEASURED = 10, 40
"""Steps of a run before the measured ones, and measured steps."""
BANK = 256
"""Number of different images."""
AUGMENTS = find_spec("albumentations") is not None
LABELS = LabelSpace.ordinal(range(101), "years")


class Steps:
    """A head on its own copy of the backbone, trained on one batch as ``Task`` does it."""

    def __init__(self, head: Head, options: argparse.Namespace, precision: str, compiled: str) -> None:
        torch.manual_seed(0)
        self.device = torch.device(options.device)
        self.autocast = precision == "bf16"
        shape = (3, options.size, options.size)
        self.backbone = Timm(options.backbone)
        head.build(self.backbone.build(shape), LABELS)
        self.head = head
        model = torch.nn.ModuleList([self.backbone, head]).to(self.device).train()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        self.images = torch.rand(options.batch, *shape, device=self.device)
        ages = torch.randint(len(LABELS), (options.batch,)).float()
        self.target = LABELS.encode(ages, 2.0).to(self.device)
        self.forward = torch.compile(self.backbone, dynamic=False) if compiled == "all" else self.backbone
        self.loss = head.loss if compiled == "none" else torch.compile(head.loss, dynamic=False)

    def step(self) -> None:
        """Take a training step, with the replay buffer of an alternating head."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
            features = self.forward(self.images)
            losses = self.loss(features, self.target)
        self.optimizer.zero_grad()
        losses["loss"].backward()
        self.optimizer.step()
        if isinstance(self.head, AlternatingHead):
            self.head.observe(losses.get("memory", features.detach()), self.target)

    def seconds(self, work: Callable[[], None], times: int = 1) -> float:
        """Return the mean seconds of ``work`` over ``times`` calls."""

        def repeat() -> None:
            for _ in range(times):
                work()
            wait_for(self.device)

        wait_for(self.device)
        return seconds(repeat, times).clock


def wait_for(device: torch.device) -> None:
    """Wait until a GPU has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def cost(options: argparse.Namespace, precision: str, compiled: str) -> list[str]:
    """Return a row: the steps of both heads, their ratio, and the share of the leaf updates in an epoch.

    Neighbouring blocks find the machine in the same state, so that the ratio is a median of ratios.
    """
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    head = LDLF(trees=5, depth=7, outputs=64, iterations=20, batches=EPOCH_STEPS)
    heads = {"softmax": Softmax(), "LDLF": head}
    trained = {name: Steps(each, options, precision, compiled) for name, each in heads.items()}
    for each in trained.values():
        each.seconds(each.step, 3)
    # Uniform leaves give no gradient; time a forest that learns.
    head.update(Collective())
    blocks = take_turns(
        trained, options.blocks, lambda name, _: trained[name].seconds(trained[name].step, options.steps)
    )
    forest = trained["LDLF"]
    while len(head.memory_state(Collective())["rows"]) < EPOCH_STEPS:
        forest.step()
    update = median(forest.seconds(lambda: head.update(Collective())) for _ in range(options.updates))
    softmax, ldlf = (median(times) for times in blocks.values())
    ratio = median(b / a for a, b in zip(blocks["softmax"], blocks["LDLF"]))
    share = update / (EPOCH_STEPS * ldlf + update)
    return [precision, compiled, f"{1e3 * softmax:.2f}", f"{1e3 * ldlf:.2f}", f"{ratio:.3f}", f"{share:.2%}"]


@options
class Noise(LDLDataModule):
    """Images of noise in memory, each with an age, augmented as faces are if albumentations is installed.

    Args:
        count: Number of images.
        side: Height and width of an image.
    """

    count: int = option(default=2048, least=1)
    side: int = option(default=224, least=8)
    val_fraction: float = 0.0

    def load(self) -> Loaded:
        """Draw images and ages."""
        rng = np.random.default_rng(0)
        self.images = rng.integers(0, 256, (min(self.count, BANK), self.side, self.side, 3), dtype=np.uint8)
        ages = rng.integers(len(LABELS), size=self.count).astype(float)
        return Loaded(LABELS, {"target": LABELS.encode(torch.tensor(ages, dtype=torch.float32), 2.0)}, ages)

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """Return the images ``rows``, uint8, from a bank of a few."""
        pixels = self.images[rows % len(self.images)]
        if train and AUGMENTS:
            from ldl.data.images.transforms import Pipeline, default_train_transforms

            return Pipeline(default_train_transforms()).batch(list(pixels), seeds)
        return torch.from_numpy(pixels).permute(0, 3, 1, 2)


class StepTimer(pl.Callback):
    """Seconds of the measured steps of a run, and on CUDA how often they waited for the device."""

    def __init__(self, device: torch.device, warmup: int) -> None:
        self.device, self.warmup = device, warmup
        self.waits: int | None = None

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
        if trainer.global_step == self.warmup:
            wait_for(self.device)
            self.start = time.perf_counter()
            if self.device.type == "cuda":
                self.caught = warnings.catch_warnings(record=True)
                self.warned = self.caught.__enter__()
                warnings.simplefilter("always")
                torch.cuda.set_sync_debug_mode("warn")
        elif trainer.global_step == trainer.max_steps:
            if self.device.type == "cuda":
                torch.cuda.set_sync_debug_mode("default")
                self.caught.__exit__(None, None, None)
                self.waits = sum("synchronizing" in str(warning.message) for warning in self.warned)
            wait_for(self.device)
            self.seconds = time.perf_counter() - self.start


def runs(options: argparse.Namespace) -> str:
    """Return a table of images per second: of the loader alone, and of whole runs of ``Task`` under ``Trainer``."""
    warmup, measured = (1, 2) if options.quick else (WARMUP, MEASURED)
    count = options.batch * (warmup + measured)
    batches = _endless(_data(options, count))
    for _ in range(warmup):
        next(batches)
    start = time.perf_counter()
    for _ in range(measured):
        next(batches)
    loader = measured * options.batch / (time.perf_counter() - start)
    batches.close()
    rows = []
    for head in (Softmax(), LDLF(batches=20)):
        timer = _run(head, options, count, warmup)
        rate = measured * options.batch / timer.seconds
        waits = "only with CUDA" if timer.waits is None else f"{timer.waits / measured:.2f}"
        rows.append([type(head).__name__, f"{loader:.0f}", f"{rate:.0f}", f"{rate / loader:.0%}", waits])
    return markdown(["head", "loader alone, images/s", "run, images/s", "run, of the loader", "waits a step"], rows)


def _data(options: argparse.Namespace, count: int) -> Noise:
    data = Noise(count=count + 8, folds=count + 8, side=options.size, batch_size=options.batch)
    data.num_workers, data.prefetch = options.workers, 4
    data.setup()
    return data


def _endless(data: Noise) -> Generator[Any, None, None]:
    loader = data.train_dataloader()
    while True:
        yield from loader


def _run(head: Head, options: argparse.Namespace, count: int, warmup: int) -> StepTimer:
    cuda = options.device.startswith("cuda")
    timer = StepTimer(torch.device(options.device), warmup)
    torch.set_float32_matmul_precision("high" if cuda else "highest")
    trainer = pl.Trainer(
        max_steps=count // options.batch, accelerator="gpu" if cuda else "cpu", devices=1, logger=False,
        precision="bf16-mixed" if cuda else "32-true", enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0, callbacks=[timer], use_distributed_sampler=False,
    )  # fmt: skip
    task = Task(head, Timm(options.backbone), optimizer=lambda parameters: torch.optim.AdamW(parameters, 1e-4))
    trainer.fit(task, datamodule=_data(options, count))
    return timer


def main() -> None:
    """Measure, print, and write the tables."""
    parser = make_parser(__doc__, block="gpu")
    parser.add_argument("--backbone", default="resnet50", help="any timm model (default: %(default)s)")
    parser.add_argument("--size", type=int, default=224, help="height and width of images (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=128, help="rows of a batch (default: %(default)s)")
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu", help="(default: %(default)s)"
    )
    parser.add_argument("--threads", type=int, help="threads of the CPU (default: torch's)")
    parser.add_argument("--blocks", type=int, default=10, help="blocks of steps of each head (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=10, help="steps of a block (default: %(default)s)")
    parser.add_argument("--updates", type=int, default=5, help="timed leaf updates (default: %(default)s)")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--workers", type=int, default=cores, help="loader processes (default: the cores)")
    parser.add_argument("--costs", action="store_true", help="only what heads cost, no whole runs")
    parser.add_argument("--quick", action="store_true", help="a small network and few steps")
    options = parser.parse_args()
    if options.quick:
        vars(options).update(QUICK)
    if options.threads:
        torch.set_num_threads(options.threads)
    cuda = options.device.startswith("cuda")
    name = torch.cuda.get_device_name(options.device) if cuda else f"CPU, {torch.get_num_threads()} threads"
    text = (
        f"{name}, {options.workers} loader processes, torch {torch.__version__}: {options.backbone}, {options.size} px,"
        f" batch {options.batch}, {len(LABELS)} labels. Runs in {'bf16' if cuda else 'float32'}, images "
        f"{'augmented' if AUGMENTS else 'not augmented (no albumentations)'}."
    )
    header = ["precision", "compiled", "softmax step, ms", "LDLF step, ms", "ratio", "leaf updates, of an epoch"]
    settings = PRECISIONS if cuda else PRECISIONS[:1]
    text += f"\n\n{markdown(header, [cost(options, *setting) for setting in settings])}"
    if not options.costs:
        text += f"\n\n{runs(options)}"
    print(text)
    if options.page:
        write_block(options.page, "gpu", text)


if __name__ == "__main__":
    launch(main)
