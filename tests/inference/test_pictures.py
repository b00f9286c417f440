"""Images, faces and maps as users have them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from fakes.face_releases import picture, utkface
from PIL import Image

from ldl.backbones.base import Identity
from ldl.data.pictures import read_picture
from ldl.edges.pixel_features import PixelFeatures
from ldl.errors import LDLError
from ldl.faces import UTKFace
from ldl.heads import Softmax
from ldl.inference import Predictor
from ldl.labels import LabelSpace
from ldl.task import Task


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> tuple[Predictor, UTKFace]:
    folder = tmp_path_factory.mktemp("faces")
    data = UTKFace(root=str(utkface(folder)), crop_size=16, cache_dir=str(folder / "cache"))
    data.setup()
    torch.manual_seed(0)
    task = Task(Softmax(), Identity(flatten=True))
    task.build(data.labels, data.input_shape)
    task.preprocessing = data.preprocessing
    return Predictor(task, batch_size=3), data


def test_pictures(faces: tuple[Predictor, UTKFace], tmp_path: Path) -> None:
    predictor, data = faces
    files = data.records.paths()[:5]
    rows = np.arange(5)
    with torch.no_grad():
        wanted = predictor.task(data.inputs(rows, rows, train=False)).numpy()
    arrays = [read_picture(file) for file in files]
    for number, file in enumerate(files):
        (tmp_path / f"{number}{file.suffix}").write_bytes(file.read_bytes())
    forms: list[Any] = [files, [str(file) for file in files], arrays, np.stack(arrays), [*map(Image.open, files)]]
    forms += [torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2), tmp_path, str(tmp_path)]
    for given in forms:
        found = predictor(given)
        np.testing.assert_allclose(found.distribution, wanted, atol=1e-6)
        np.testing.assert_allclose(found.value, wanted @ data.labels.points.numpy()[:, 0], rtol=1e-5)
    assert found.names == [f"{number}{file.suffix}" for number, file in enumerate(files)]
    # A list names its images relative to its folder.
    (tmp_path / "lists").mkdir()
    listed = pd.DataFrame({"path": [f"../{name}" for name in found.names], "label:a": 1.0})
    for kind, write in (("csv", pd.DataFrame.to_csv), ("parquet", pd.DataFrame.to_parquet)):
        write(listed, tmp_path / "lists" / f"list.{kind}", index=False)
        of_list = predictor(str(tmp_path / "lists" / f"list.{kind}"))
        np.testing.assert_allclose(of_list.distribution, wanted, atol=1e-6)
        assert of_list.names == [f"../{name}" for name in found.names]
    listed.rename(columns={"path": "picture"}).to_csv(tmp_path / "lists" / "other.csv", index=False)
    with pytest.raises(LDLError, match="other.csv: no image files under path, image, "):
        predictor(tmp_path / "lists" / "other.csv")
    for one in (files[0], arrays[0], Image.open(files[0]), torch.from_numpy(arrays[0]).permute(2, 0, 1)):
        np.testing.assert_allclose(predictor(one).distribution, wanted[:1], atol=1e-6)


def test_the_place_of_a_face(faces: tuple[Predictor, UTKFace]) -> None:
    pixels = np.zeros((60, 60, 3), np.uint8)
    pixels[20:40, 10:30] = 170
    corners = np.array([[10, 20], [30, 20], [30, 40], [10, 40]]) - 0.5
    boxed = faces[0].predict([pixels, pixels], faces=[corners, None])
    alone = faces[0]([pixels[20:40, 10:30], pixels])
    np.testing.assert_allclose(boxed.distribution, alone.distribution, atol=1e-6)
    assert np.abs(boxed.distribution[0] - boxed.distribution[1]).max() > 1e-3
    with pytest.raises(LDLError, match="1 images but places of 2 faces"):
        faces[0].predict([pixels], faces=[corners, None])
    with pytest.raises(LDLError, match=r"image 0: a face is placed by 5 landmarks or 4 corners"):
        faces[0].predict([pixels], faces=[corners[:2]])


def test_faces_that_were_placed_are_not_taken_whole_silently(faces: tuple[Predictor, UTKFace]) -> None:
    task = faces[0].task
    placed = Predictor(task)
    placed._preprocessing = {**faces[1].preprocessing, "alignment": "landmarks"}
    pixels = np.zeros((20, 20, 3), np.uint8)
    with pytest.warns(UserWarning, match="faces placed by their landmarks, and these images are used whole"):
        placed(pixels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        placed.predict(pixels, faces=[np.array([[0, 0], [20, 0], [20, 20], [0, 20]])])
        faces[0](pixels)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.zeros((2, 3, 9, 9), np.uint8), r"image 0: an image is an array \(H, W, 3\), not \(3, 9, 9\)"),
        (np.zeros((2, 9, 9, 3)), "image 0: an image is uint8, 0 to 255, not float64; convert it"),
        (torch.zeros(2, 9, 9, 3), r"a tensor of images is \(N, 3, H, W\), not \(2, 9, 9, 3\)"),
        ([], "no images in a list"),
        ("nowhere.jpg", "nowhere.jpg: no image at nowhere.jpg"),
    ],
)  # fmt: skip
def test_other_pictures_are_refused(faces: tuple[Predictor, Any], given: Any, words: str) -> None:
    with pytest.raises(LDLError, match=words):
        faces[0](given)


def test_damaged_pictures_are_named(faces: tuple[Predictor, Any], tmp_path: Path) -> None:
    picture(tmp_path / "a.jpg", 20)
    (tmp_path / "b.jpg").write_bytes(b"?")
    with pytest.raises(LDLError, match="b.jpg cannot be read as an image"):
        faces[0](tmp_path)


def test_maps(tmp_path: Path) -> None:
    torch.manual_seed(0)
    task = Task(Softmax(), PixelFeatures("mobilenetv2_050", pretrained=False))
    task.build(LabelSpace.ordinal([0, 1, 2]), (3, 32, 32))
    shapes = [(32, 48), (32, 48), (48, 32)]
    pictures = [np.random.default_rng(0).integers(256, size=(*shape, 3)).astype(np.uint8) for shape in shapes]
    predictor = Predictor(task, batch_size=2)
    found = predictor(pictures[:2])
    tensor = torch.from_numpy(np.stack(pictures[:2])).permute(0, 3, 1, 2)
    np.testing.assert_allclose(found.distribution, task(tensor).detach(), atol=1e-6)
    assert found.value is not None and found.value.shape == (2, 32, 48) and found.interval().shape == (2, 32, 48, 2)
    Image.fromarray(pictures[2]).save(tmp_path / "c.png")
    assert predictor(tmp_path / "c.png").distribution.shape == (1, 48, 32, 3)
    with pytest.raises(LDLError, match="32x48 and 48x32, do not fit into one array; predict them one by one"):
        Predictor(task, batch_size=1)(pictures[1:])
