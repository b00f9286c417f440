"""What LDLF costs over Softmax on the same backbone: training step time and the share of the leaf updates.

    python benchmarks/speed/head_cost.py [--backbone resnet18 --size 64 --batch 64 --precision 32 --device cpu]

Both heads are measured in one process, in alternating blocks, on random images; LDLF has the paper's settings.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

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

    def step(self) -> None:
        """One training step, with what an alternating head keeps of it."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
            features = self.backbone(self.images)
            losses = self.head.loss(features, self.target)
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


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--backbone", default="resnet18", help="any timm model (default: %(default)s)")
    parser.add_argument("--size", type=int, default=64, help="height and width of the images (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="rows of a batch (default: %(default)s)")
    parser.add_argument("--labels", type=int, default=101, help="labels of the distribution (default: %(default)s)")
    parser.add_argument("--precision", choices=["32", "bf16"], default="32", help="(default: %(default)s)")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", default=device, help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=None, help="threads of the CPU (default: torch's)")
    parser.add_argument("--blocks", type=int, default=10, help="blocks of steps of each head (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=10, help="steps of one block (default: %(default)s)")
    parser.add_argument("--updates", type=int, default=5, help="leaf updates that are timed (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    """Measure and print the table."""
    options = parse()
    if options.threads:
        torch.set_num_threads(options.threads)
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
    updates = [forest.seconds(lambda: head.update(Collective())) for _ in range(options.updates)]

    step, update = {name: median(times) for name, times in blocks.items()}, median(updates)
    # Neighbouring blocks saw the machine in the same state, so their ratio is steadier than that of the medians.
    ratio = median(b / a for a, b in zip(blocks["Softmax"], blocks["LDLF"]))
    share = update / (EPOCH_STEPS * step["LDLF"] + update)
    bar = 1.05 if forest.device.type == "cuda" else 1.10
    print(
        f"{options.backbone}, {options.size} px, batch {options.batch}, {options.labels} labels, precision "
        f"{options.precision}, {options.device}, {torch.get_num_threads()} threads, torch {torch.__version__}; "
        f"{options.blocks} blocks of {options.steps} steps each"
    )
    print(f"{'':28}{'median':>12}{'min':>12}{'max':>12}")
    rows = {f"{name} step, ms": times for name, times in blocks.items()} | {"leaf update, ms": updates}
    for what, times in rows.items():
        print(f"{what:28}{1e3 * median(times):12.2f}{1e3 * min(times):12.2f}{1e3 * max(times):12.2f}")
    print(f"{'LDLF step / Softmax step':28}{ratio:12.3f}  bar {bar:.2f}: {'met' if ratio <= bar else 'MISSED'}")
    print(f"{'update, share of an epoch':28}{share:12.2%}  bar 2%: {'met' if share <= 0.02 else 'MISSED'}")


if __name__ == "__main__":
    launch(main)
