"""A predictor gives from a checkpoint alone what the model gave when it was saved."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints.make import FOLDER, Problem

from ldl.backbones.base import Identity
from ldl.data import RotatedDigits
from ldl.deploy.export import Deployed, export
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import BoostedTrees, MeanPredictor, Softmax, StructRF
from ldl.inference import Predictor
from ldl.labels import LabelSpace
from ldl.task import Task

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


def test_inputs_of_training() -> None:
    data = RotatedDigits(turns=1)
    data.setup()
    task = Task(Softmax(), Identity(flatten=True))
    task.build(data.labels, data.input_shape)
    task.preprocessing = data.preprocessing
    assert data.preprocessing == {"dtype": "float32"}
    images = data.images[:9]
    for given in (images, images.double().numpy()):
        found = Predictor(task, batch_size=4)(given)
        np.testing.assert_allclose(found.distribution, task(images).detach(), atol=1e-6)
    for wrong, words in (
        ((images * 255).byte(), "inputs are uint8, but the model was trained on float32; scale them as in training"),
        (images[0], r"inputs have shape \(1, 12, 12\), but the model takes \(N, 1, 12, 12\)"),
        (images.double() + 1e300, "inputs hold NaN or infinity; every entry must be a finite float32 number"),
    ):
        with pytest.raises(LDLError, match=words):
            Predictor(task)(wrong)
    with pytest.raises(LDLError, match="not trained on crops of images; leave faces and detector out"):
        Predictor(task).predict(images, faces=[None] * 9)
    task.preprocessing = {"dtype": "uint8"}
    with pytest.raises(LDLError, match=r"inputs: 0\.\d+ in float32, but the model takes whole numbers of 0 to 255"):
        Predictor(task)(images)
    bytes_ = (images * 255).byte()
    np.testing.assert_array_equal(Predictor(task)(bytes_.long()).distribution, task(bytes_).detach())


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64], ids=str)
def test_rows_of_whole_numbers(dtype: torch.dtype, tmp_path: Path) -> None:
    """Backbones may take 200 for something else than 200.0."""
    torch.manual_seed(0)
    task = Task(Softmax(), Typed())
    task.eval().build(LabelSpace.nominal("abc"), (4,))
    task.preprocessing = {"dtype": str(dtype).removeprefix("torch.")}
    given = torch.randint(0, 120, (9, 4))
    wanted = task(given.to(dtype)).detach()
    for rows in (given, given.to(dtype), given.double().numpy()):
        np.testing.assert_allclose(Predictor(task)(rows).distribution, wanted, atol=1e-6)
    with pytest.raises(LDLError, match=r"inputs: .*\.5 in float64, but the model takes whole numbers of .* in u?int"):
        Predictor(task)(given + 0.5)
    model = Deployed(task)
    np.testing.assert_allclose(model(given.double())[0].detach(), wanted, atol=1e-6)
    assert model(given + 0.5)[0].isnan().all()
    done = export(task, tmp_path / "model.onnx").parity
    assert done is not None and done.apart == 0


class Typed(Identity):
    """Tells bytes from other whole numbers, and these from floats."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs.float() / {torch.uint8: 255, torch.int64: 100}[inputs.dtype]


@pytest.mark.parametrize(
    ("head", "shape", "most"),
    [
        (MeanPredictor(), (3,), 256),
        (BoostedTrees(), (3,), 4096),
        (StructRF(), (3,), 4096),
        (StructRF(), (1, 1, 3), 256),
    ],
)
def test_forests_take_more_rows_of_a_table_at_once(head: Head, shape: tuple[int, ...], most: int) -> None:
    task = Task(head, Identity(flatten=True))
    task.build(LabelSpace.nominal(["a", "b"]), shape)
    task.preprocessing = {"dtype": "float32"}
    counts: list[int] = []
    head.register_forward_pre_hook(lambda module, inputs: counts.append(len(inputs[0])))
    inputs = torch.rand(5000, *shape)
    predictions = Predictor(task)(inputs).distribution
    assert max(counts) == most and sum(counts) == 5000
    np.testing.assert_array_equal(predictions, Predictor(task, batch_size=100)(inputs).distribution)
