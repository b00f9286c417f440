"""Every head and backbone of before, from its checkpoint alone; and what loader processes are sent."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoints.make import FOLDER, Problem
from PIL import Image

from ldl.data.loader import Guarded
from ldl.data.sampler import Draw
from ldl.inference import Predictor
from ldl.inference.data import TableFile, WholePictures
from ldl.labels import LabelSpace

KINDS = {
    "bags": ("milboost", "mplboost", "bagged"),
    "pictures": ("timm", "pixel_features", "haar", "haar_windows", "hog"),
    "picture_bags": ("each_instance",),
}


@pytest.mark.parametrize("name", sorted(file.stem for file in FOLDER.glob("*.ckpt")))
def test_it_predicts_what_it_did(name: str) -> None:
    data = Problem(next((kind for kind, names in KINDS.items() if name in names), "rows"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows nobody wrote down the scaling
        found = Predictor.from_checkpoint(FOLDER / f"{name}.ckpt", batch_size=3)(data.inputs[:8])
    then = np.load(FOLDER / f"{name}.npz")
    distribution = found.distribution[:, ::4, ::4] if found.distribution.ndim == 4 else found.distribution
    np.testing.assert_allclose(distribution, then["distribution"], rtol=0, atol=1e-6)
    if "value" in then:
        np.testing.assert_allclose(found.value, then["value"], rtol=0, atol=1e-4)


def sent(data: Any) -> Any:
    """A batch from a data set that went to another process and back."""
    rows = np.arange(data.size)
    back = pickle.loads(pickle.dumps(Guarded(data.dataset(rows, train=False))))
    return back.__getitems__([Draw(0, 1.0, 0)])["input"]


@pytest.mark.parametrize("shape", [(2,), (-1, 2)])
def test_tables_reach_loader_processes(shape: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("bag,a,b\n1,2,3\n2,5,6\n")
    data = TableFile(path=str(tmp_path / "t.csv"))
    known = {"features": ["b", "a"], "key": None, "scaling": {"kind": "none", "clip": None}}
    data.follow(LabelSpace.nominal("ab"), shape, known)
    data.setup()
    assert sent(data).flatten().tolist() == [3, 2]


def test_pictures_reach_loader_processes(tmp_path: Path) -> None:
    Image.fromarray(np.full((4, 5, 3), 9, np.uint8)).save(tmp_path / "a.png")
    data = WholePictures(path=str(tmp_path))
    data.follow(LabelSpace.nominal("ab"), (3, 32, 32), None)
    data.setup()
    assert torch.equal(sent(data), torch.full((1, 3, 4, 5), 9, dtype=torch.uint8))
