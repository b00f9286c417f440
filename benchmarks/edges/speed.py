"""How fast edges are found: structured ones beside those of another checkout, and networks by torch and onnxruntime.

    python benchmarks/edges/speed.py --against CHECKOUT --page docs/results/speed.md

Structured edges: 8 trees, of which 4 vote, sharpened, one scale; grown on the part ``train`` and kept in ``--forest``,
found in images of ``val``. Each checkout has a process of its own, and they take turns. Networks: those of
``configs/runs/bsds/{softmax,ldlf}.yaml``, at one size and as they are tested. Medians over the turns. Other work on the
machine lengthens the clock; the processor's seconds hardly.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from benchmarks.common.timing import take_turns
from benchmarks.edges.deep_speed import HEADER as DEEP
from benchmarks.edges.deep_speed import measure_deep
from ldl.collective import Collective
from ldl.data.edges.bsds500 import BSDS500
from ldl.edges.structured.channels import PATCH
from ldl.edges.structured.patches import make_scene
from ldl.errors import LDLError
from ldl.heads import StructuredEdges
from ldl.reports.files import markdown

ROOT = Path(__file__).resolve().parents[2]
MODES = {"1 thread": (1, 1), "2 threads": (2, 1), "2 images at once": (1, 2)}
HEADER = ("structured edges", "checkout", "images/s", "with suppression", "processor ms", "with suppression")


def grow(data: BSDS500, file: Path, patches: int) -> None:
    """Grow the forest on the part ``train``, and keep its state."""
    read = (data.read(row) for row in data.split.train)
    scenes = [
        make_scene(image, truth.boundaries, truth.segments) for image, truth in read if truth.segments is not None
    ]
    head = StructuredEdges(patches=patches, seed=0)
    head.build(3, data.labels)
    head.fit_scenes(scenes, Collective())
    torch.save(head.state_dict(), file)


def start(checkout: Path, forest: Path, images: Path, maps: Path) -> subprocess.Popen[str]:
    """The process of a checkout."""
    command = [sys.executable, str(ROOT / "benchmarks/edges/detecting.py"), *map(str, (forest.resolve(), images, maps))]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=checkout
    )


def ask(process: subprocess.Popen[str], threads: int, at_once: int) -> list[float]:
    """Seconds an image: clock and processor of detection, and of detection with suppression. Raises LDLError."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{threads} {at_once}\n")
    process.stdin.flush()
    if not (line := process.stdout.readline()):
        raise LDLError("a checkout's detector ended early; its own message is above")
    return [float(part) for part in line.split()]


def measure_structured(options: argparse.Namespace, data: BSDS500) -> tuple[list[list[str]], str]:
    """Rows of the table, and how far the maps of both checkouts are from each other."""
    checkouts = {"before": options.against, "now": ROOT} if options.against else {"now": ROOT}
    rows = data.split.test[:: max(1, len(data.split.test) // options.images)][: options.images]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        images = Path(folder, "images.npz")
        np.savez(images, *(data.read(row)[0] for row in rows))
        files = {name: Path(folder, f"{name}.npz") for name in checkouts}
        processes = {
            name: stack.enter_context(start(checkout.resolve(), options.forest, images, files[name]))
            for name, checkout in checkouts.items()
        }
        works = [(mode, name) for mode in MODES for name in processes]
        for mode, name in works:
            ask(processes[name], *MODES[mode])
        told = take_turns(works, options.turns, lambda work, _: ask(processes[work[1]], *MODES[work[0]]))
        for process in processes.values():
            process.communicate()
        maps = [dict(np.load(file)) for file in files.values()]
    table = []
    for mode, name in works:
        clock, processor, clock_thinned, processor_thinned = (median(part) for part in zip(*told[mode, name]))
        figures = [f"{1 / clock:.1f}", f"{1 / clock_thinned:.1f}"]
        table.append([mode, name, *figures, f"{1000 * processor:.0f}", f"{1000 * processor_thinned:.0f}"])
    apart = np.concatenate([np.abs(maps[0][key] - maps[-1][key]).ravel() for key in maps[0]])
    share = (apart > 1e-6).mean()
    said = f"Maps of both differ by {apart.max():.2g} at most, and by more than 1e-6 at {share:.2%} of pixels."
    return table, said if len(maps) > 1 else ""


def main() -> None:
    """Measure, print, and write the block of a page."""
    options = parse()
    torch.set_num_threads(1)
    data = BSDS500(path=options.path, crop=PATCH)
    data.setup()
    if not options.forest.is_file():
        grow(data, options.forest, options.patches)
    structured, said = measure_structured(options, data)
    show("structured edges", HEADER, structured)
    print(said)
    turns = f"medians of {options.turns} turns on {os.cpu_count()} processors"
    if options.page:
        text = f"{options.images} images of `val`, {turns}. {said}\n\n{markdown(HEADER, structured)}"
        write_block(options.page, "edges_speed", text)
    if not options.networks:
        return
    deep = measure_deep(options.turns, options.size)
    show("networks", DEEP, deep)
    if options.page:
        height, width = options.size
        text = f"One image of {width} x {height}, {turns}.\n\n{markdown(DEEP, deep)}"
        write_block(options.page, "deep_edges_speed", text)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, block="edges_speed, and deep_edges_speed")
    parser.add_argument("--path", help="folder with images and groundTruth (default: that below LDL_DATA)")
    parser.add_argument("--against", type=Path, help="another checkout of ldl")
    parser.add_argument("--forest", type=Path, default=Path("runs/edges_speed.pt"), help="(default: %(default)s)")
    parser.add_argument("--patches", type=int, default=100_000, help="of a tree that is grown (default: %(default)s)")
    parser.add_argument("--images", type=int, default=10, help="(default: %(default)s)")
    parser.add_argument("--size", type=int, nargs=2, default=(321, 481), help="of a network's image (default: 321 481)")
    parser.add_argument("--networks", action=argparse.BooleanOptionalAction, default=True, help="measure them too")
    parser.add_argument("--turns", type=int, default=5, help="(default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    launch(main)
