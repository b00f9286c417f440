"""Time and memory of fitting MSLP, and how they grow with the number of instances.

    python benchmarks/mslp/scale.py [--sizes 3750 7500 15000 30000 --kernel linear]

Random numbers from a seed, 36 features and 68 labels as Human_Gene has. Each size runs in a process of its own; memory
is what fitting adds to its peak. ``growth`` is the exponent between a size and the one before.
"""

from __future__ import annotations

import math
import os
import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common.command import launch, make_parser
from benchmarks.common.timing import seconds


def measure(size: int, kernel: str, threads: int) -> tuple[float, float]:
    """Seconds and MB of one fit."""
    import torch

    from benchmarks.common.folds import numbered
    from ldl.collective import Collective
    from ldl.heads import MSLP

    torch.set_num_threads(threads)
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(size, 36, generator=generator)
    target = (features @ torch.randn(36, 68, generator=generator)).softmax(1)
    head = MSLP(kernel=kernel)  # type: ignore[arg-type]
    head.build(36, numbered(68))
    head.fit(features[:100], target[:100], Collective())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fit = seconds(lambda: head.fit(features, target, Collective())).clock
    return fit, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> None:
    """Print a line a size."""
    parser = make_parser(__doc__, threads=os.cpu_count())
    parser.add_argument("--sizes", type=int, nargs="+", default=[3750, 7500, 15000, 30000])
    parser.add_argument("--kernel", choices=["linear", "rbf"], default="linear")
    options = parser.parse_args()
    print(f"{'instances':>10}{'seconds':>10}{'MB':>8}{'growth':>9}")
    last: tuple[int, float] | None = None
    for size in options.sizes:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            fit, memory = pool.submit(measure, size, options.kernel, options.threads).result()
        growth = math.log(fit / last[1]) / math.log(size / last[0]) if last else math.nan
        print(f"{size:10}{fit:10.2f}{memory:8.0f}{growth:9.2f}", flush=True)
        last = (size, fit)


if __name__ == "__main__":
    launch(main)
