"""Faces of real photographs, found by MTCNN: rows, boxes, crops and charts."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fakes.photographs import FACES, drawn_model, photographs
from PIL import Image
from torchvision.ops import box_iou

from ldl.command import main
from ldl.data.images.crops import crop
from ldl.data.pictures import read_picture
from ldl.errors import LDLError
from ldl.faces import FaceFolder
from ldl.faces.ages import FGNET_POINTS, read_points
from ldl.faces.detectors import find_detector
from ldl.inference import Predictor

pytest.importorskip("facenet_pytorch", reason="pip install 'ldl[faces]'")


QUIET = ["--wandb.mode=disabled", "--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false"]


@pytest.fixture(scope="module")
def pictures(ldl_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    """Their folder, and the boxes of the faces in each."""
    folder = tmp_path_factory.mktemp("real") / "photographs"
    return folder, photographs(ldl_data, folder)


def _predict(checkpoint: Path, folder: Path, out: Path, *options: str) -> list[dict[str, str]]:
    data = ["--data", "PictureFolder", "--data.path", str(folder), *options, "--data.cache_dir", str(out / "cache")]
    main(["--stage", "predict", "--ckpt_path", str(checkpoint), *data, *QUIET, "--run_dir", str(out)])
    with (out / "predictions.csv").open() as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
def test_every_face_is_a_row(
    pictures: tuple[Path, dict[str, np.ndarray]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, boxes = pictures
    rows = _predict(drawn_model(tmp_path / "a.ckpt"), folder, tmp_path, "--data.detector=mtcnn")
    assert [(row["name"], row["face"]) for row in rows] == [
        ("three.jpg", "1"), ("three.jpg", "2"), ("three.jpg", "3"), ("turned.jpg", "1"),
    ]  # fmt: skip
    for row in rows:
        box = np.array([float(row[side]) for side in ("x0", "y0", "x1", "y1")])
        pair = (torch.from_numpy(each)[None] for each in (box, boxes[row["name"]][int(row["face"]) - 1].astype(float)))
        assert box_iou(*pair) > 0.5
        assert 0.9 < float(row["confidence"]) <= 1
    output = capsys.readouterr().out
    assert "mtcnn: 4 faces in 2 images; none in 1, which have no row: 'landscape.jpg'" in output
    drawn = sorted(path.name for path in (tmp_path / "charts" / "pictures").iterdir())
    assert drawn == ["three.jpg.png", "turned.jpg.png"]


@pytest.mark.slow
def test_the_predictor_finds_the_same(pictures: tuple[Path, dict[str, np.ndarray]], tmp_path: Path) -> None:
    folder, checkpoint = pictures[0], drawn_model(tmp_path / "a.ckpt")
    rows = _predict(checkpoint, folder, tmp_path, "--data.detector=mtcnn")
    predictor = Predictor.from_checkpoint(checkpoint)
    opened = [Image.open(folder / name) for name in ("landscape.jpg", "three.jpg", "turned.jpg")]
    for predictions in (
        predictor.predict(folder, detector="mtcnn"),
        predictor(opened, detector=find_detector("mtcnn")),
    ):
        assert predictions.facts["picture"].tolist() == [1, 1, 1, 2]
        for name in ("face", "x0", "y0", "x1", "y1", "confidence"):
            np.testing.assert_allclose(predictions.facts[name], [float(row[name]) for row in rows], rtol=1e-6)
        np.testing.assert_allclose(predictions.value, [float(row["predicted_value"]) for row in rows], rtol=1e-6)
        expected = [[float(row[f"prediction:{age}"]) for age in range(70)] for row in rows]
        np.testing.assert_allclose(predictions.distribution, expected, atol=1e-6)
    assert predictor(folder, detector="mtcnn").names == [row["name"] for row in rows]
    with pytest.raises(LDLError, match="mtcnn finds no face in any of 1 images"):
        predictor(folder / "landscape.jpg", detector="mtcnn")
    with pytest.raises(LDLError, match="faces and detector both locate the faces; leave out one of them"):
        predictor(folder / "landscape.jpg", faces=[None], detector="mtcnn")


def test_crops_are_those_of_training(pictures: tuple[Path, dict[str, np.ndarray]], ldl_data: Path) -> None:
    """The landmarks that were found place a face as those that FG-NET's annotators set, from which models learn."""
    detected = find_detector("mtcnn")(photograph := read_picture(pictures[0] / "three.jpg"))
    for face, (name, _) in zip(detected, FACES):
        points = read_points(ldl_data / "FGNET" / "points" / f"{name.lower()}.pts")[list(FGNET_POINTS)]
        alone = read_picture(ldl_data / "FGNET" / "images" / f"{name}.JPG")
        trained = crop(alone, points, 64, None).astype(float)
        apart = [
            np.abs(crop(photograph, face.anchor(alignment), 64, None) - trained).mean() for alignment in (None, "box")
        ]
        assert apart[0] < 12 and apart[0] < 0.7 * apart[1]


def _listed(folder: Path, *names: str) -> Path:
    (folder / "faces.csv").write_text("path,age\n" + "".join(f"{name},30\n" for name in names))
    return folder / "faces.csv"


@pytest.mark.slow
def test_a_list_of_ones_own(
    pictures: tuple[Path, dict[str, np.ndarray]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row has one age: of several faces it is that of the largest; a picture without one is refused, or left out."""
    options: dict[str, Any] = {"crop_size": 32, "detector": "mtcnn", "cache_dir": str(tmp_path), "protocol": "holdout"}
    options["split_copies"] = True
    folder = shutil.copytree(pictures[0], tmp_path / "own")
    copies = [shutil.copy(folder / "turned.jpg", folder / f"copy{number}.jpg").name for number in range(9)]
    file = _listed(folder, "three.jpg", "turned.jpg", "landscape.jpg", *copies)
    with pytest.raises(LDLError, match="mtcnn finds no face in 1 of 12 images: 'landscape.jpg'; take them out"):
        FaceFolder(path=str(file), **options).setup()
    data = FaceFolder(path=str(file), skip_unreadable=True, **options)
    data.setup()
    assert data.size == 11 and data.preprocessing["alignment"] == "landmarks"
    output = capsys.readouterr().out
    assert "1 images show several faces, the largest is taken: 'three.jpg'" in output
    assert "left out 1 images without a face: 'landscape.jpg'" in output
    largest = max(
        find_detector("mtcnn")(photograph := read_picture(pictures[0] / "three.jpg")), key=lambda face: face.area
    )
    expected = crop(photograph, largest.points, 32, None)
    np.testing.assert_array_equal(data.inputs(np.array([0]), np.zeros(1), train=False)[0].permute(1, 2, 0), expected)
    boxed = FaceFolder(path=str(file), skip_unreadable=True, alignment="box", **options)
    boxed.setup()
    assert boxed.preprocessing["alignment"] == "box"


@pytest.mark.parametrize(
    ("header", "options", "message"),
    [
        (
            "path,age,x0,y0,x1,y1\nthree.jpg,30,1,1,9,9\n",
            {},
            "faces.csv or .* already places the faces",
        ),
        ("path,age\nthree.jpg,30\n", {"alignment": "none"}, "already places the faces"),
    ],
)
def test_places_that_are_known_already(header: str, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "faces.csv").write_text(header)
    with pytest.raises(LDLError, match=message):
        FaceFolder(path=str(tmp_path / "faces.csv"), detector="mtcnn", **options).setup()
