"""All that is to be measured on a GPU, by one command: what heads cost, and how well loading keeps the device busy.

    python benchmarks/speed/gpu.py --page docs/results/speed.md         # minutes on one GPU
    python benchmarks/speed/gpu.py --quick --device cpu                 # whether it runs, anywhere

It needs neither jsonargparse nor albumentations nor wandb; without the second, pictures are not augmented.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Generator
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import pytorch_lightning as pl
import torch

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import write_block
from benchmarks.speed import head_cost
from benchmarks.speed.noise import AUGMENTS, Noise
from ldl.backbones.timm import Timm
from ldl.head import Head
from ldl.heads import LDLF, Softmax
from ldl.task import Task

SETTINGS = (("32", "none"), ("tf32", "none"), ("bf16", "none"), ("bf16", "head"), ("bf16", "all"))
"""Precision, and what is compiled."""

QUICK = {"backbone": "resnet18", "size": 32, "batch": 4, "blocks": 2, "steps": 1, "updates": 1, "workers": 1}
WARMUP, MEASURED = 10, 40
"""Steps of a run that are not measured, and that are."""


class Watch(pl.Callback):
    """Seconds of the measured steps of a run, and how often they waited for the device; the latter CUDA tells."""

    def __init__(self, device: torch.device, warmup: int) -> None:
        self.device, self.warmup = device, warmup
        self.waits: int | None = None

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
        if trainer.global_step == self.warmup:
            self._begin()
        elif trainer.global_step == trainer.max_steps:
            self._end()

    def _begin(self) -> None:
        self.start = self._now()
        if self.device.type == "cuda":
            self.caught = warnings.catch_warnings(record=True)
            self.told = self.caught.__enter__()
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")

    def _end(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.set_sync_debug_mode("default")
            self.caught.__exit__(None, None, None)
            self.waits = sum("synchronizing" in str(told.message) for told in self.told)
        self.seconds = self._now() - self.start

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()


def costs(options: argparse.Namespace) -> str:
    """A table of LDLF's step over softmax's, by precision and what is compiled."""
    lines = ["| precision | compiled | softmax step, ms | LDLF step, ms | ratio | leaf updates, of an epoch |"]
    lines.append("|---|---|---|---|---|---|")
    for precision, compiled in SETTINGS[:1] if options.quick else SETTINGS:
        cost = head_cost.measure(argparse.Namespace(**{**vars(options), "precision": precision, "compile": compiled}))
        softmax, forest = (1e3 * median(cost.steps[name]) for name in ("Softmax", "LDLF"))
        lines.append(
            f"| {precision} | {compiled} | {softmax:.2f} | {forest:.2f} | {cost.ratio:.3f} | {cost.share:.2%} |"
        )
    return "\n".join(lines)


def runs(options: argparse.Namespace) -> str:
    """A table of pictures a second: of the loader alone, and of whole runs of ``Task`` under ``Trainer``."""
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
    lines = ["| head | loader alone, pictures/s | run, pictures/s | run, of the loader | waits a step |"]
    lines.append("|---|---|---|---|---|")
    for head in (Softmax(), LDLF(batches=20)):
        watch = _run(head, options, count, warmup)
        rate, waits = measured * options.batch / watch.seconds, watch.waits
        told = "CUDA alone tells" if waits is None else f"{waits / measured:.2f}"
        lines.append(f"| {type(head).__name__} | {loader:.0f} | {rate:.0f} | {rate / loader:.0%} | {told} |")
    return "\n".join(lines)


def _data(options: argparse.Namespace, count: int) -> Noise:
    data = Noise(count=count + 8, folds=count + 8, side=options.size, batch_size=options.batch)
    data.num_workers, data.prefetch = options.workers, 4
    data.setup()
    return data


def _endless(data: Noise) -> Generator[Any, None, None]:
    loader = data.train_dataloader()
    while True:
        yield from loader


def _run(head: Head, options: argparse.Namespace, count: int, warmup: int) -> Watch:
    cuda = options.device.startswith("cuda")
    watch = Watch(torch.device(options.device), warmup)
    torch.set_float32_matmul_precision("high" if cuda else "highest")
    trainer = pl.Trainer(
        max_steps=count // options.batch, accelerator="gpu" if cuda else "cpu", devices=1, logger=False,
        precision="bf16-mixed" if cuda else "32-true", enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0, callbacks=[watch], use_distributed_sampler=False,
    )  # fmt: skip
    task = Task(head, Timm(options.backbone), optimizer=lambda parameters: torch.optim.AdamW(parameters, 1e-4))
    trainer.fit(task, datamodule=_data(options, count))
    return watch


def main() -> None:
    """Measure, print, and write the tables."""
    parser = make_parser(__doc__, block="gpu")
    head_cost.add_options(parser)
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--workers", type=int, default=cores, help="loader processes (default: %(default)s, the cores)")
    parser.add_argument("--quick", action="store_true", help="a small network and few steps, to see whether it runs")
    parser.set_defaults(backbone="resnet50", size=224, batch=128)
    options = parser.parse_args()
    if options.quick:
        vars(options).update(QUICK)
    if options.threads:
        torch.set_num_threads(options.threads)
    name = torch.cuda.get_device_name(options.device) if options.device.startswith("cuda") else "CPU"
    augmented = "augmented" if AUGMENTS else "not augmented (no albumentations)"
    title = (
        f"{name}, {options.workers} loader processes, torch {torch.__version__}: {options.backbone}, {options.size} px,"
        f" batch {options.batch}, 101 labels. Runs in {'bf16' if name != 'CPU' else 'float32'}, pictures {augmented}."
    )
    text = f"{title}\n\n{costs(options)}\n\n{runs(options)}"
    print(text)
    if options.page:
        write_block(options.page, "gpu", text)


if __name__ == "__main__":
    launch(main)
