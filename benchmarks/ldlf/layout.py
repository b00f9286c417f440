"""LDLF's numbers with samples last in memory, as ldl has them, and with samples first: what a step and its parts cost.

    python benchmarks/ldlf/layout.py [--rounds 9] [--threads 1] [--page docs/results/speed.md]

Both ways compute the same, in turns, in one process; medians of the processor's milliseconds. The other way's routing,
outputs and leaf update are the equations of Shen et al. 2017 as they are printed, (N, K, L) contiguous.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import torch
from torch import Tensor

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from benchmarks.common.timing import seconds, take_turns
from ldl.methods.forest.soft import mix, route, update_leaves
from ldl.metrics.functional import kl
from ldl.reports.files import markdown

SIZES = {
    "a table": (256, 20, 6, 5, 1280),
    "a table of many labels": (256, 20, 6, 68, 1280),
    "faces": (64, 5, 7, 101, 6400),
    "pixels": (36864, 5, 5, 2, 16384),
}
"""Rows of a batch, trees, depth, labels, and rows of a leaf update."""
WAYS = ("samples first", "samples last")
PARTS = ("forwards", "forwards and backwards", "leaf update")
HEADER = ("", "rows, trees, leaves, labels; rows of an update", "what", *(f"{way}, ms" for way in WAYS), "times faster")


def main() -> None:
    """Measure every size, then print the table."""
    parser = make_parser(__doc__, threads=1, block="ldlf_layout")
    parser.add_argument("--rounds", type=int, default=9, help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="a few rows")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    for name, (batch, trees, depth, labels, kept) in SIZES.items():
        sizes = (min(batch, 8), 2, 3, labels, min(kept, 16)) if options.quick else (batch, trees, depth, labels, kept)
        rows += [[name, words_of(*sizes), *row] for row in compare(*sizes, options.rounds)]
    show(f"LDLF's layouts, {options.threads} thread(s)", HEADER, rows)
    if options.page:
        text = f"{options.threads} thread(s), medians of {options.rounds} rounds.\n\n{markdown(HEADER, rows)}"
        write_block(options.page, "ldlf_layout", text)


def words_of(batch: int, trees: int, depth: int, labels: int, kept: int) -> str:
    """The sizes, as the table has them."""
    return f"{batch:,}, {trees}, {2 ** (depth - 1)}, {labels}; {kept:,}"


def compare(batch: int, trees: int, depth: int, labels: int, kept: int, rounds: int) -> list[list[str]]:
    """A row of the table for each part."""
    work = problem(batch, trees, depth, labels, kept)
    found = take_turns(
        [(part, way) for part in PARTS for way in WAYS], rounds, lambda cell, _: 1e3 * seconds(work[cell]).processor
    )
    times = {cell: median(values) for cell, values in found.items()}
    return [
        [part, *(f"{times[part, way]:.2f}" for way in WAYS), f"{times[part, WAYS[0]] / times[part, WAYS[1]]:.1f}"]
        for part in PARTS
    ]


def problem(batch: int, trees: int, depth: int, labels: int, kept: int) -> dict[tuple[str, str], Callable[[], Tensor]]:
    """What computes each part each way; all give the same."""
    generator = torch.Generator().manual_seed(0)
    nodes = 2 ** (depth - 1) - 1
    leaves = torch.rand(trees, nodes + 1, labels, generator=generator).softmax(-1)
    target = torch.rand(max(batch, kept), labels, generator=generator).softmax(-1)
    scores = torch.randn(batch, trees, nodes, generator=generator)
    decisions = torch.randn(kept, trees, nodes, generator=generator).sigmoid()
    first, last = route_first(decisions), route(decisions)

    def forwards(split: Tensor, through: Callable[[Tensor], Tensor], out: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        return kl(out(through(split.sigmoid()), leaves), target[:batch].unsqueeze(1)).mean()

    def both(split: Tensor, *way: Callable[..., Tensor]) -> Tensor:
        split = split.detach().requires_grad_()
        return torch.autograd.grad(forwards(split, *way), split)[0]

    samples_last = scores.permute(2, 1, 0).contiguous().permute(2, 1, 0)
    ways = {WAYS[0]: (scores, route_first, mix_first), WAYS[1]: (samples_last, route, mix)}
    return {
        **{("forwards", name): partial(forwards, *way) for name, way in ways.items()},
        **{("forwards and backwards", name): partial(both, *way) for name, way in ways.items()},
        ("leaf update", WAYS[0]): lambda: update_first(first, target[:kept], leaves),
        ("leaf update", WAYS[1]): lambda: update_leaves(last, target[:kept], leaves),
    }


def route_first(decisions: Tensor) -> Tensor:
    """Eq. 1, level by level: (N, K, L - 1) to (N, K, L)."""
    reach = torch.ones_like(decisions[..., :1])
    for level in decisions.split([2**d for d in range(decisions.shape[-1].bit_length())], dim=-1):
        reach = torch.stack([reach * level, reach - reach * level], dim=-1).flatten(-2)
    return reach


def mix_first(routing: Tensor, leaves: Tensor) -> Tensor:
    """Eq. 2: (N, K, L) and (K, L, C) to (N, K, C)."""
    return torch.einsum("nkl,klc->nkc", routing, leaves)


def update_first(routing: Tensor, target: Tensor, leaves: Tensor) -> Tensor:
    """Eq. 12, twenty times."""
    by_tree = routing.permute(1, 0, 2).contiguous()
    for _ in range(20):
        output = torch.bmm(by_tree, leaves)
        numerator = leaves * torch.bmm(by_tree.transpose(1, 2), torch.div(target, output, out=output))
        leaves = numerator / numerator.sum(-1, keepdim=True)
    return leaves


if __name__ == "__main__":
    launch(main)
