"""Exported models beside torch: size, parity and speed of every kind of head, and of networks.

    python benchmarks/export/beside_torch.py [--page docs/results/export.md]
    python benchmarks/export/beside_torch.py --quick

Heads are fitted on half of the rows of a public table, SBU_3DFE, with their default options but for fewer rounds of
boosting; networks are mobilenetv2 on pictures of 112 pixels and 101 ages. Both runtimes have one thread and the same
batches, in turns, in one process; times are medians of the processor's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import write_block
from benchmarks.common.timing import seconds, take_turns
from ldl.backbones.timm import Timm
from ldl.backbones.timm_network import local_weights
from ldl.collective import Collective
from ldl.data import TabularLDL
from ldl.export import Deployed, export
from ldl.export.formats import load_onnx
from ldl.export.parity import draw
from ldl.head import FittedHead, Head
from ldl.heads import AAKNN, LDLF, MSLP, BoostedTrees, CostSensitiveForest, MaxEnt, Softmax, StructRF, Trained
from ldl.labels import LabelSpace
from ldl.reports.files import markdown
from ldl.task import Task

HEADER = ("", "MB", "difference", "batch", "torch, ms", "onnxruntime, ms", "torch / onnxruntime")
BATCHES = (1, 64)
HEADS: dict[str, Callable[[], Head]] = {
    "Softmax": Softmax,
    "LDLF": LDLF,
    "StructRF": StructRF,
    "BoostedTrees, 300 rounds": partial(BoostedTrees, rounds=300, patience=None),
    "CostSensitiveForest": CostSensitiveForest,
    "MSLP": MSLP,
    "AAKNN": AAKNN,
    "MaxEnt": MaxEnt,
    "Trained, LDLF": partial(Trained, head=LDLF(), epochs=5),
}
NETWORKS: dict[str, Callable[[], Head]] = {"mobilenetv2, Softmax": Softmax, "mobilenetv2, LDLF": LDLF}


def on_table(make: Callable[[], Head], data: TabularLDL) -> Task:
    """A head on scaled rows, fitted on the training part; one that learns by gradient keeps its first weights."""
    torch.manual_seed(0)
    task = Task(make())
    task.build(data.labels, data.input_shape)
    if isinstance(task.head, FittedHead):
        rows = torch.from_numpy(data.split.train)
        task.head.fit(data.scaled[rows], data.columns["target"][rows], Collective())
    return _spread(task, data.preprocessing)


def on_pictures(make: Callable[[], Head], size: int) -> Task:
    """A head on mobilenetv2 with the weights that are at hand."""
    torch.manual_seed(0)
    task = Task(make(), Timm("mobilenetv2_100", pretrained=local_weights("mobilenetv2_100") is not None))
    task.build(LabelSpace.ordinal(range(101), "years"), (3, size, size))
    return _spread(task, {"dtype": "uint8"})


def _spread(task: Task, preprocessing: dict[str, object]) -> Task:
    if isinstance(task.head, LDLF):
        # Leaves that were never solved are all alike.
        task.head.leaves.copy_(torch.softmax(3 * torch.randn_like(task.head.leaves), -1))
    task.preprocessing = preprocessing
    return task.eval()


def measure(name: str, task: Task, folder: Path, turns: int) -> list[tuple[str, ...]]:
    """A row of the table for each size of batches."""
    done = export(task, folder / "model.onnx", force=True)
    assert done.parity is not None
    run, model = load_onnx(done.file.read_bytes(), threads=1), Deployed(task).eval()
    rows: list[tuple[str, ...]] = []
    for size in BATCHES:
        inputs = draw(task, size, np.random.default_rng(0))
        works: dict[str, Callable[[], object]] = {
            "torch": partial(_by_torch, model, inputs),
            "onnx": partial(run, inputs),
        }
        for work in works.values():
            work()
        repeats = max(1, round(0.2 / max(seconds(works["torch"]).processor, 1e-4)))
        times = take_turns(works, turns, lambda which, _: _one(works[which], repeats))  # noqa: B023
        ours, theirs = (1000 * median(times[which]) for which in ("torch", "onnx"))
        apart = f", {done.parity.apart} of {done.parity.rows} rows apart" if done.parity.apart else ""
        said = (
            (name, f"{done.size / 1e6:.2f}", f"{done.parity.largest:.0e}{apart}") if size == BATCHES[0] else ("",) * 3
        )
        rows.append((*said, str(size), f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.1f}"))
    print("\n".join(" | ".join(row) for row in rows), flush=True)
    return rows


def _one(work: Callable[[], object], repeats: int) -> float:
    return seconds(lambda: [work() for _ in range(repeats)], repeats).processor


@torch.inference_mode()
def _by_torch(model: Deployed, inputs: np.ndarray) -> object:
    return model(torch.from_numpy(inputs))


def main() -> None:
    """Measure, print, and write the block of a page."""
    options = parse()
    torch.set_num_threads(1)
    data = TabularLDL(path="ldl/SBU_3DFE.mat", folds=2, val_fraction=0.0, protocol="random_kfold")
    data.setup()
    names = ["Softmax", "StructRF"] if options.quick else list(HEADS)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            found += measure(name, on_table(HEADS[name], data), Path(folder), options.turns)
        for name in [] if options.quick else NETWORKS:
            found += measure(name, on_pictures(NETWORKS[name], options.size), Path(folder), options.turns)
    text = markdown(HEADER, found)
    print(text)
    if options.page:
        write_block(options.page, "export", text)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, block="export")
    parser.add_argument("--size", type=int, default=112, help="side of the pictures (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="two heads, no network")
    options = parser.parse_args()
    options.turns = 1 if options.quick else options.turns
    return options


if __name__ == "__main__":
    launch(main)
