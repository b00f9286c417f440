"""Models of every pixel as a file: pictures of any size."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from fakes.tasks import NO_YES

from ldl.deploy.export import export, predict
from ldl.deploy.export_onnx import load_onnx
from ldl.edges.pixel_features import PixelFeatures
from ldl.heads import LDLF
from ldl.task import Task


@pytest.mark.slow
def test_every_pixel_of_pictures_of_any_size(tmp_path: Path) -> None:
    torch.manual_seed(0)
    head = LDLF(trees=2, depth=3, outputs=8)
    task = Task(head, PixelFeatures(name="test_resnet", pretrained=False, width=4)).eval()
    task.build(NO_YES, (3, 64, 64))
    task.preprocessing = {"dtype": "uint8"}
    # Leaves that were never solved are all alike.
    head.leaves.copy_(torch.softmax(3 * torch.randn_like(head.leaves), -1))
    done = export(task, tmp_path / "model.onnx")
    assert done.parity is not None and done.parity.largest <= 1e-5 and done.parity.apart == 0
    facts = {entry.key: entry.value for entry in onnx.load(done.file).metadata_props}
    assert json.loads(facts["input"]) == {"type": "uint8", "shape": [-1, -1, -1, 3]}
    run = load_onnx(done.file.read_bytes(), threads=1)
    for size in ((61, 83), (97, 34), (1, 5)):
        pictures = np.random.default_rng(size[0]).integers(0, 256, (2, *size, 3), dtype=np.uint8)
        np.testing.assert_allclose(run(pictures)[0], predict(task, pictures).distribution, atol=1e-5)
