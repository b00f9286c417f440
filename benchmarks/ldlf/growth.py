"""Section 4.3 of Shen et al. 2017: what a step costs, over trees, split nodes, labels and rows of a batch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

import numpy as np
import torch

from benchmarks.common.claims import Claim, Statement
from benchmarks.common.folds import numbered
from benchmarks.common.items import Work
from benchmarks.ldlf.training import steps
from ldl.cells.store import Row
from ldl.heads import LDLF

START = {"trees": 10, "depth": 6, "labels": 10, "rows": 128}
GROWN = {"trees": (10, 20, 40), "depth": (6, 7, 8), "labels": (10, 20, 40), "rows": (128, 256, 512)}
TIMES = 5
"""The twenty steps are timed, of which the median counts."""
STEPS = 20
"""Of which the last brings a leaf update."""

PROTOCOL = (
    "Random rows of 64 features, one thread, seconds of the processor for twenty steps with a leaf update at the "
    "end, the median of five times; one of trees, split nodes, labels and rows grows at a time. The printed seconds "
    "are of AlexNet on MORPH, which is not at hand; `python benchmarks/speed/head_cost.py` has a step of LDLF on a "
    "network beside softmax."
)


def cost(work: Work, **sizes: int) -> Row:
    """Seconds of twenty steps."""

    def measure() -> Row:
        torch.manual_seed(0)
        features = torch.randn(sizes["rows"], 64)
        target = torch.softmax(torch.randn(sizes["rows"], sizes["labels"]), -1)
        head = LDLF(trees=sizes["trees"], depth=sizes["depth"], outputs=2 ** (sizes["depth"] - 1), batches=STEPS)
        head.build(64, numbered(sizes["labels"]))
        optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
        spent = []
        # The first time loads what the others need.
        for _ in range(2 if work.quick else 1 + TIMES):
            before = time.process_time()
            for _ in steps(head, optimizer, features, target, 2 if work.quick else STEPS, batch=sizes["rows"]):
                pass
            spent.append(time.process_time() - before)
        return {"seconds": median(spent[1:])}

    return work.cell(dict(sizes), measure)


def growth(work: Work) -> Iterator[Claim]:
    """O(D C K n_B s_B): at most in proportion to each."""
    for name, values in GROWN.items():
        spent = [cost(work, **{**START, name: value})["seconds"] for value in values]
        sizes = [2 ** (value - 1) - 1 if name == "depth" else value for value in values]
        slope = np.polyfit(np.log(sizes), np.log(spent), 1)[0]
        what = {"depth": "split nodes D", "trees": "trees K", "labels": "labels C", "rows": "rows of a batch s_B"}[name]
        words = ", ".join(f"{size}: {1e3 * seconds / STEPS:.1f} ms" for size, seconds in zip(sizes, spent))
        yield Statement(
            f"a step grows at most in proportion to {what}", bool(slope < 1.15),
            f"{words} a step; to the power {slope:.2f}", "O(D C K n_B s_B) an epoch", exact=False,
        )  # fmt: skip
