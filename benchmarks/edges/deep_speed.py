"""Networks that find edges, by torch and by onnxruntime: seconds an image."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import torch
import yaml

from benchmarks.common.runs import run_config
from benchmarks.common.timing import seconds, take_turns
from ldl.backbones.pixel_features import PixelFeatures
from ldl.export import Deployed, export
from ldl.export.formats import load_onnx
from ldl.head import Head
from ldl.heads import LDLF, Softmax
from ldl.labels import LabelSpace
from ldl.task import Task

HEADER = ("network", "looks at", "parameters", "by", "processor ms", "images/s, 1 thread", "2 threads")
HEADS: dict[str, type[Head]] = {"softmax": Softmax, "ldlf": LDLF}


def network(name: str, single: bool) -> Task:
    """The network of ``configs/runs/bsds/NAME.yaml``, with the weights that are at hand; ``single``: at one size."""
    model = yaml.safe_load(run_config("bsds", name).read_text(encoding="utf-8"))["model"]
    looks = {"scales": [1.0], "mirror": False} if single else {}
    task = Task(
        HEADS[name](**model["head"].get("init_args", {})), PixelFeatures(**{**model["backbone"]["init_args"], **looks})
    )
    task.build(LabelSpace.nominal(["no edge", "edge"]), (3, 192, 192))
    task.preprocessing = {"dtype": "uint8"}
    return task.eval()


def measure_deep(turns: int, size: tuple[int, int]) -> list[list[str]]:
    """Rows of the table, of one image of ``size``."""
    image, rows = np.random.default_rng(0).integers(0, 256, (1, *size, 3), dtype=np.uint8), []
    for name in HEADS:
        for single in (True, False):
            task = network(name, single)
            weights = sum(part.numel() for part in task.parameters())
            with tempfile.TemporaryDirectory() as folder:
                data = export(task, Path(folder, "model.onnx")).file.read_bytes()
            works = {("torch", n): _by_torch(task, n) for n in (1, 2)}
            works |= {("onnxruntime", n): load_onnx(data, threads=n) for n in (1, 2)}
            for work in works.values():
                work(image)
            told = take_turns(works, turns, lambda key, _: seconds(lambda: works[key](image)))  # noqa: B023
            for runtime in ("torch", "onnxruntime"):
                clock = [median(turn.clock for turn in told[runtime, n]) for n in (1, 2)]
                processor = median(turn.processor for turn in told[runtime, 1])
                looks = "one size" if single else "as tested"
                figures = [f"{1000 * processor:.0f}", *(f"{1 / part:.1f}" for part in clock)]
                rows.append([name, looks, f"{weights / 1e6:.2f} M", runtime, *figures])
    torch.set_num_threads(1)
    return rows


def _by_torch(task: Task, threads: int) -> Callable[[np.ndarray], object]:
    model = Deployed(task).eval()

    def run(image: np.ndarray) -> object:
        torch.set_num_threads(threads)
        with torch.inference_mode():
            return model(torch.from_numpy(image))

    return run
