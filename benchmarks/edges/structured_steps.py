"""What each step towards the published structured edges gains, and steps beyond, on validation images.

    python benchmarks/edges/structured_steps.py --seeds 0 1 --every 2 --page docs/results/edges.md

Trains on the part ``train``, detects on every n-th image of ``val``: the test part is not looked at, but with
``--protocol final``, which trains on ``train`` and ``val``. ``--out`` keeps the forests, and a cell for every step and
seed; the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common.command import launch, make_parser

# isort: split
import torch
from safetensors.torch import load_file, save

from benchmarks.common.tables import show, write_block
from benchmarks.edges.structured import built, measure, read_scenes
from ldl.cells.store import Row, Store, name_of
from ldl.checkpoint import replacing
from ldl.collective import Collective
from ldl.comparison.figures import spread
from ldl.data.edges.bsds500 import BSDS500, Protocol
from ldl.edges.structured.channels import PATCH
from ldl.reports.files import markdown

FIGURES = ("ods", "ois", "ap")


class Step(NamedTuple):
    """A row of the table.

    Attributes:
        name: What it is called.
        grown: Options by which the forest grows.
        applied: Options by which it is applied; they need no other forest.
    """

    name: str
    grown: dict[str, Any]
    applied: dict[str, Any]


def main() -> None:
    """Measure what is missing, and print a row for every step."""
    parser = make_parser(__doc__, block="of --block")
    parser.add_argument("--path", help="folder with images and groundTruth (default: that below LDL_DATA)")
    parser.add_argument("--protocol", choices=get_args(Protocol), default="development", help="(default: %(default)s)")
    parser.add_argument("--patches", type=int, default=100_000, help="of a tree (default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of patches and trees (default: %(default)s)")
    parser.add_argument("--every", type=int, default=4, help="step through the images of val (default: %(default)s)")
    parser.add_argument("--levels", type=int, default=24, help="thresholds (default: %(default)s)")
    parser.add_argument("--images", type=int, help="train on so many (default: all)")
    parser.add_argument("--block", default="structured_steps", help="block of the page (default: %(default)s)")
    parser.add_argument("--only", nargs="+", help="only steps whose name begins so")
    parser.add_argument("--out", type=Path, default=Path("runs/structured_steps"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    store = Store(options.out / "cells")
    rows = []
    for step in STEPS.values():
        if options.only and not step.name.startswith(tuple(options.only)):
            continue
        found = []
        for seed in options.seeds:
            found.append(cell_of(store.cell, step, seed, options))
            print(f"{step.name}, seed {seed}: {' '.join(f'{found[-1][name]:.4f}' for name in FIGURES)}", flush=True)
        rows.append([step.name, *(spread(cell[name] for cell in found) for name in (*FIGURES, "seconds"))])
    header = ["", *(name.upper() for name in FIGURES), "seconds an image"]
    part = "test" if options.protocol == "final" else "val"
    title = f"Every {options.every}th image of {part}" if options.every > 1 else f"All images of {part}"
    title += f", {options.levels} thresholds, {options.patches} patches a tree, mean ± standard deviation over "
    title += f"seeds {options.seeds}; seconds of one processor"
    show(title, header, rows)
    if options.page:
        write_block(options.page, options.block, f"{title}.\n\n{markdown(header, rows)}")


def cell_of(cell: Callable[[Row, Callable[[], Row]], Row], step: Step, seed: int, options: argparse.Namespace) -> Row:
    """What a store's ``cell`` has of a step, or measures now; ``options`` are those of the command line."""
    grown = {"patches": options.patches, "seed": seed, **step.grown}
    key = {"protocol": options.protocol, "every": options.every, "levels": options.levels}
    if options.images:
        key["images"] = options.images
    return cell({**grown, **step.applied, **key}, partial(tried, grown, step.applied, options))


def tried(grown: Row, applied: Row, options: argparse.Namespace) -> Row:
    """ODS, OIS and AP of a forest that is applied in some way, and processor seconds an image."""
    data = BSDS500(path=options.path, crop=PATCH, protocol=options.protocol)
    data.setup()
    trained = {"protocol": options.protocol} | ({"images": options.images} if options.images else {})
    file = options.out / f"{name_of({**grown, **trained})}.safetensors"
    if not file.exists():
        # Gone before another head holds the forest: with what leaves keep it is gigabytes.
        grow(data, grown, options.images, file)
    head = built(data, **grown, **applied, threads=1)
    head.load_state_dict(load_file(file))
    # The first image waits for rings and codes of all leaves.
    head(torch.zeros(1, 3, PATCH, PATCH, dtype=torch.uint8))
    figures, seconds = measure(
        head, {str(row): data.read(row) for row in data.split.test[:: options.every]}, options.levels
    )
    return dict(zip(FIGURES, figures), seconds=seconds)


def grow(data: BSDS500, grown: Row, images: int | None, file: Path) -> None:
    """Write the state of a forest of these options, grown on so many training images or all."""
    fitted = built(data, **grown, threads=1)
    started = time.process_time()
    fitted.fit_scenes(read_scenes(data, fitted.floor, images), Collective())
    print(f"grown in {time.process_time() - started:.0f} s of processor time", flush=True)
    with replacing(file) as whole:
        whole.write(save(fitted.state_dict()))


SCALES = (0.5, 1.0, 1.5)
COARSER = (0.33, *SCALES)
ALL = {"votes": 8, "scales": SCALES}
DSNA = {"kept": 10}

_STEPS = [
    Step("as before: 8 trees, one scale", {}, {}),
    Step("contrast floor as published", {"floor": 0.027}, {}),
    Step("and early leaves as published", {"floor": 0.027, "early": True}, {}),
    Step("all 8 trees vote everywhere", {}, {"votes": 8}),
    Step("mirror image too", {}, {"mirror": True}),
    Step("scales 1/2, 1, 2, as published", {}, {"scales": (0.5, 1.0, 2.0)}),
    Step("scales 1/2, 1, 3/2", {}, {"scales": SCALES}),
    Step("and all 8 trees vote", {}, ALL),
    Step("the same, sharpened by 1 pixel, not 2", {}, {**ALL, "sharpen": 1}),
    Step("the same, sharpened by 3 pixels", {}, {**ALL, "sharpen": 3}),
    Step("the same, mirror image too", {}, {**ALL, "mirror": True}),
    Step("the same, scale 3/4 too", {}, {**ALL, "scales": (0.5, 0.75, 1.0, 1.5)}),
    Step("the same, scale 5/4 too", {}, {**ALL, "scales": (0.5, 1.0, 1.25, 1.5)}),
    Step("the same, scale 1/3 too", {}, {**ALL, "scales": COARSER}),
    Step("the same, 16 trees of which 8 vote", {"trees": 16}, ALL),
    Step("the same, 16 trees, which all vote", {"trees": 16}, {**ALL, "votes": 16}),
    Step("the same, 4 classes by k-means", {"classes": 4}, ALL),
    Step("the same, 4 classes of the same weight", {"classes": 4, "balance": 1.0}, ALL),
    Step("the same, 2 classes by k-means, of the same weight", {"balance": 1.0}, ALL),
    Step("10 patches of a leaf vote, equally", DSNA, {"dsna": True, "blend": 0.0}),
    Step("they vote by DSNA", DSNA, {"dsna": True}),
    Step("half by DSNA, half equally", DSNA, {"dsna": True, "blend": 0.5}),
    Step("at three sizes, 10 patches of a leaf vote, equally", DSNA, {**ALL, "dsna": True, "blend": 0.0}),
    Step("at three sizes, half by DSNA, half equally", DSNA, {**ALL, "dsna": True, "blend": 0.5}),
    Step("at three sizes, three quarters by DSNA", DSNA, {**ALL, "dsna": True, "blend": 0.75}),
    Step("at three sizes, all by DSNA", DSNA, {**ALL, "dsna": True}),
    Step("chosen: 4 trees, which all vote, scales 1/2, 1, 3/2", {"trees": 4}, {"votes": 4, "scales": SCALES}),
    Step("chosen with 8 trees", {}, ALL),
    Step(
        "chosen with DSNA for half of the votes",
        {"trees": 4, **DSNA},
        {"votes": 4, "scales": SCALES, "dsna": True, "blend": 0.5},
    ),
    Step("chosen with 8 trees, scale 1/3 too", {}, {**ALL, "scales": COARSER}),
    Step(
        "chosen with 8 trees, scale 1/3 too, and DSNA for half of the votes",
        DSNA,
        {**ALL, "scales": COARSER, "dsna": True, "blend": 0.5},
    ),
]
STEPS = {step.name: step for step in _STEPS}


if __name__ == "__main__":
    launch(main)
