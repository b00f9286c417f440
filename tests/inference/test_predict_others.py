"""Bags, pictures, maps and whatever else a model takes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from fake_faces import picture, utkface
from PIL import Image
from some_bags import LABELS as SIDES
from some_bags import fitted, some_bags

from ldl.backbones.base import Identity
from ldl.bags import MILBoost
from ldl.data import RotatedDigits
from ldl.data.pictures import read_picture
from ldl.data.tables.scaling import FeatureScaler
from ldl.deploy.export import Deployed, export
from ldl.edges.pixel_features import PixelFeatures
from ldl.errors import LDLError
from ldl.faces import UTKFace
from ldl.heads import Softmax
from ldl.inference import Predictor
from ldl.inference.inputs import read_instances
from ldl.labels import LabelSpace
from ldl.task import Task


@pytest.fixture(scope="module")
def bags() -> tuple[Predictor, np.ndarray, np.ndarray]:
    """A predictor of bags, raw bags with NaN for what is missing, and what the bare network gives for them."""
    padded, target = some_bags(0, bags=12)
    raw = 3 * padded.double().numpy() + 5
    scaler = FeatureScaler("standard", None)
    scaler.fit(raw.reshape(-1, 4)[~np.isnan(raw.reshape(-1, 4)).any(1)])
    scaled = torch.stack([scaler.apply(bag, "") for bag in raw])
    head = fitted(MILBoost(rounds=5), scaled, target)
    task = Task(MILBoost(rounds=5), Identity())
    task.build(SIDES, (-1, 4))
    task.head.load_state_dict(head.state_dict())
    task.preprocessing = {"features": list("wxyz"), "key": None, "scaling": scaler.state_dict()}
    return Predictor(task, batch_size=5), raw, head(scaled).detach().numpy()


def long(raw: np.ndarray) -> pd.DataFrame:
    """A row an instance, bags in turns."""
    rows = [[f"bag {bag}", *instance] for instances in raw.transpose(1, 0, 2) for bag, instance in enumerate(instances)]
    return pd.DataFrame(rows, columns=["bag", *"wxyz"]).dropna()


def test_bags(bags: tuple[Predictor, np.ndarray, np.ndarray], tmp_path: Path) -> None:
    predictor, raw, wanted = bags
    ragged = [bag[~np.isnan(bag).any(1)] for bag in raw]
    table = long(raw)
    names = list(dict.fromkeys(table["bag"]))
    files = {"headed.csv": table[["z", "bag", "y", "x", "w"]].assign(label=1), "bare.csv": table}
    for name, frame in files.items():
        frame.to_csv(tmp_path / name, index=False, header=name == "headed.csv")
    table.assign(label=0)[["label", "bag", *"wxyz"]].to_csv(tmp_path / "labelled.csv", index=False, header=False)
    table.to_parquet(tmp_path / "bags.parquet")
    for given in (raw, torch.from_numpy(raw), ragged, table, *sorted(tmp_path.iterdir())):
        found = predictor(given)
        np.testing.assert_allclose(found.distribution, wanted, atol=1e-6)
        assert found.names == (names if isinstance(given, pd.DataFrame | Path) else None)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "there is no bag to predict"),
        ([np.ones((2, 3))], "bag 0: 3 features a row, but the model takes 4"),
        ([np.ones((2, 4)), np.ones(4)], r"bag 1: features have shape \(4,\)"),
        (pd.DataFrame(np.ones((2, 4)), columns=list("wxyz")), "no column 'bag', the bag of each row"),
    ],
)
def test_other_bags_are_refused(bags: tuple[Predictor, Any, Any], given: Any, words: str) -> None:
    with pytest.raises(LDLError, match=words):
        bags[0](given)


@pytest.mark.parametrize("nameless", [None, " "], ids=repr)
def test_rows_of_no_bag_are_refused(nameless: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame(np.ones((4, 2)), columns=["x", "y"]).assign(bag=["a", "b", nameless, nameless])
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for given in (frame, *tmp_path.iterdir()):
        said = "(the (bag|group, column 'bag',) of row 2 is missing|line 4, column 'bag' is '.*', which is) .*; give"
        with pytest.raises(LDLError, match=said):
            read_instances(given, (-1, 2), {"features": ["x", "y"]})


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
