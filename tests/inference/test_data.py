"""Tables and images reach the loader processes of a prediction."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from ldl.data.loader import Guarded
from ldl.data.sampler import Draw
from ldl.inference.data import TableFile, WholePictures
from ldl.labels import LabelSpace


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
