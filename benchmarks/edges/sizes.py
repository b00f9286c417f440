"""Networks at one size of image and at all that their configuration names: figures, parameters, time.

    python benchmarks/edges/sizes.py --configs softmax_blended --seeds 0 1 2            # trains on train, tests on val
    python benchmarks/edges/sizes.py --configs softmax_blended --data.protocol=final    # the figure to report

Every run is ``configs/runs/bsds/CONFIG.yaml`` with the rest of the command line; its network is then tested once more,
on images as they are, not mirrored. What ``--out`` has already is not repeated: other options want another folder.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from benchmarks.common.command import launch, make_parser
from benchmarks.common.runs import run_config, tested
from benchmarks.common.tables import show, write_block
from ldl.comparison.figures import spread
from ldl.reports.edges import FIGURES
from ldl.reports.files import markdown
from ldl.task import Task

ONE_SIZE = ["--model.backbone.scales=[1.0]", "--model.backbone.mirror=false"]
SHAPE = (321, 481)
"""Of the images of BSDS500."""


def main() -> None:
    """Train and test what is missing, and print two rows for every configuration."""
    parser = make_parser(__doc__, block="of --block")
    # What is not known here goes to train.py, and is no abbreviation.
    parser.allow_abbrev = False
    parser.add_argument("--configs", nargs="+", default=["softmax", "ldlf"], help="(default: %(default)s)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="(default: %(default)s)")
    parser.add_argument("--block", default="edges_sizes", help="block of the page (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/edge_sizes"), help="(default: %(default)s)")
    options, more = parser.parse_known_args()
    rows = []
    for config, one in itertools.product(options.configs, (True, False)):
        folders = [options.out / f"{config}_{seed}" for seed in options.seeds]
        runs = [
            measured(folder, run_config("bsds", config), [f"--seed_everything={seed}", *more], one)
            for folder, seed in zip(folders, options.seeds)
        ]
        parameters, seconds = cost(checkpoint(folders[0]), one)
        figures = [spread(run[name] for run in runs) for name in FIGURES]
        rows.append([config, "1" if one else "all", *figures, f"{parameters / 1e6:.2f}", f"{1000 * seconds:.0f}"])
    header = ["configuration", "sizes", *(name.upper() for name in FIGURES), "million parameters", "ms an image"]
    title = ": ".join([f"seeds {options.seeds}", *([" ".join(more)] if more else [])])
    show(f"BSDS500, {title}", header, rows)
    if options.page:
        write_block(options.page, options.block, f"Mean ± standard deviation over {title}\n\n{markdown(header, rows)}")


def measured(folder: Path, config: Path, arguments: list[str], one_size: bool) -> dict[str, float]:
    """Test metrics of a run at all sizes, or of its network at one."""
    whole = tested(folder, config, arguments)
    if not one_size:
        return whole
    return tested(
        folder / "one_size", config, [*arguments, "--stage=test", f"--ckpt_path={checkpoint(folder)}", *ONE_SIZE]
    )


def checkpoint(folder: Path) -> Path:
    """What a run leaves."""
    return folder / "checkpoints" / "last.ckpt"


@torch.inference_mode()
def cost(file: Path, one_size: bool) -> tuple[int, float]:
    """Number of parameters of a network, and seconds of one thread for an image; the least of five tries."""
    task = Task.load_from_checkpoint(file).eval()
    if one_size:
        backbone: Any = task.backbone
        backbone.scales, backbone.mirror = (1.0,), False
    image = torch.randint(0, 256, (1, 3, *SHAPE), dtype=torch.uint8)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    times = []
    for _ in range(5):
        start = time.process_time()
        task(image)
        times.append(time.process_time() - start)
    torch.set_num_threads(threads)
    return sum(part.numel() for part in task.parameters()), min(times)


if __name__ == "__main__":
    launch(main)
