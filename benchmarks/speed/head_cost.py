"""What LDLF costs over Softmax on the same backbone: training step time and the share of the leaf updates.

    python benchmarks/speed/head_cost.py [--backbone resnet18 --size 64 --batch 64 --precision 32 --compile none]

Both heads are measured in one process, in alternating blocks, on random images; LDLF has the paper's settings.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import torch

from benchmarks.common.command import launch, make_parser
from benchmarks.common.timing import seconds, take_turns
from ldl.backbones.timm import Timm
from ldl.collective import Collective
from ldl.head import AlternatingHead, Head
from ldl.heads import LDLF, Softmax
from ldl.labels import LabelSpace

EPOCH_STEPS = 100


class Trainer:
    """One head on its own copy of the backbone, trained on one batch as ``Task`` does it."""

    def __init__(self, head: Head, options: argparse.Namespace) -> None:
        torch.manual_seed(0)
        self.device = torch.device(options.device)
        self.autocast = options.precision == "bf16"
        labels = LabelSpace.ordinal(list(range(options.labels)), "years")
        shape = (3, options.size, options.size)
        self.backbone = Timm(options.backbone)
        head.build(self.backbone.build(shape), labels)
        self.head = head
        model = torch.nn.ModuleList([self.backbone, head]).to(self.device).train()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        self.images = torch.rand(options.batch, *shape, device=self.device)
        ages = torch.randint(options.labels, (options.batch,)).float()
        self.target = labels.encode(ages, 2.0).to(self.device)
        self.forward = torch.compile(self.backbone, dynamic=False) if options.compile == "all" else self.backbone
        self.loss = head.loss if options.compile == "none" else torch.compile(head.loss, dynamic=False)

    def step(self) -> None:
        """One training step, with what an alternating head keeps of it."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
            features = self.forward(self.images)
            losses = self.loss(features, self.target)
        self.optimizer.zero_grad()
        losses["loss"].backward()
        self.optimizer.step()
        if isinstance(self.head, AlternatingHead):
            self.head.observe(losses.get("memory", features.detach()), self.target)

    def seconds(self, work: Callable[[], None], times: int = 1) -> float:
        """Mean duration of ``work`` over ``times`` calls."""

        def repeat() -> None:
            for _ in range(times):
                work()
            self._wait()

        self._wait()
        return seconds(repeat, times).clock

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


class Cost(NamedTuple):
    """Seconds of every block's mean step, by head, and of every leaf update."""

    steps: dict[str, list[float]]
    updates: list[float]

    @property
    def ratio(self) -> float:
        """LDLF's step over softmax's. Neighbouring blocks saw the machine in the same state: a median of ratios."""
        return median(b / a for a, b in zip(self.steps["Softmax"], self.steps["LDLF"]))

    @property
    def share(self) -> float:
        """Of the leaf updates in an epoch."""
        update = median(self.updates)
        return update / (EPOCH_STEPS * median(self.steps["LDLF"]) + update)


def measure(options: argparse.Namespace) -> Cost:
    """Both heads in turns."""
    torch.set_float32_matmul_precision("high" if options.precision == "tf32" else "highest")
    head = LDLF(trees=5, depth=7, outputs=64, iterations=20, batches=EPOCH_STEPS)
    softmax, forest = Trainer(Softmax(), options), Trainer(head, options)
    for trainer in (softmax, forest):
        trainer.seconds(trainer.step, 3)
    # Uniform leaves give no gradient at all; measure the steps of a forest that learns.
    head.update(Collective())
    trainers = {"Softmax": softmax, "LDLF": forest}
    blocks = take_turns(
        trainers, options.blocks, lambda name, _: trainers[name].seconds(trainers[name].step, options.steps)
    )
    while len(head.memory_state(Collective())["rows"]) < EPOCH_STEPS:
        forest.step()
    return Cost(blocks, [forest.seconds(lambda: head.update(Collective())) for _ in range(options.updates)])


def add_options(parser: argparse.ArgumentParser) -> None:
    """What is measured, and how often."""
    parser.add_argument("--backbone", default="resnet18", help="any timm model (default: %(default)s)")
    parser.add_argument("--size", type=int, default=64, help="height and width of the images (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="rows of a batch (default: %(default)s)")
    parser.add_argument("--labels", type=int, default=101, help="labels of the distribution (default: %(default)s)")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", default=device, help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=None, help="threads of the CPU (default: torch's)")
    parser.add_argument("--blocks", type=int, default=10, help="blocks of steps of each head (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=10, help="steps of one block (default: %(default)s)")
    parser.add_argument("--updates", type=int, default=5, help="leaf updates that are timed (default: %(default)s)")


def main() -> None:
    """Measure and print the table."""
    parser = make_parser(__doc__)
    add_options(parser)
    parser.add_argument("--precision", choices=["32", "tf32", "bf16"], default="32", help="(default: %(default)s)")
    parser.add_argument("--compile", choices=["none", "head", "all"], default="none", help="(default: %(default)s)")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    cost = measure(options)
    bar = 1.05 if options.device.startswith("cuda") else 1.10
    print(
        f"{options.backbone}, {options.size} px, batch {options.batch}, {options.labels} labels, precision "
        f"{options.precision}, compile {options.compile}, {options.device}, {torch.get_num_threads()} threads, torch "
        f"{torch.__version__}; {options.blocks} blocks of {options.steps} steps each"
    )
    print(f"{'':28}{'median':>12}{'min':>12}{'max':>12}")
    rows = {f"{name} step, ms": times for name, times in cost.steps.items()} | {"leaf update, ms": cost.updates}
    for what, times in rows.items():
        print(f"{what:28}{1e3 * median(times):12.2f}{1e3 * min(times):12.2f}{1e3 * max(times):12.2f}")
    met = "met" if cost.ratio <= bar else "MISSED"
    print(f"{'LDLF step / Softmax step':28}{cost.ratio:12.3f}  bar {bar:.2f}: {met}")
    print(f"{'update, share of an epoch':28}{cost.share:12.2%}  bar 2%: {'met' if cost.share <= 0.02 else 'MISSED'}")


if __name__ == "__main__":
    launch(main)
