"""Impossible geometry raises LDLError where data enter, in one line with the likely cause."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import albumentations as A
import numpy as np
import pytest
from albumentations.pytorch import ToTensorV2
from fakes.edge_images import bsds, write_truth
from fakes.face_releases import fgnet, picture, utkface, write_lines
from PIL import Image

from ldl.backbones import HOG, Timm
from ldl.backbones.base import WholeImages
from ldl.edges import BSDS500, PixelFeatures
from ldl.edges.benchmark.evaluation import evaluate_folder
from ldl.edges.benchmark.ground_truth import read_ground_truth, write_edge_map
from ldl.edges.votes import count_folder
from ldl.errors import LDLError
from ldl.faces import FGNET, FaceFolder, UTKFace

pytestmark = pytest.mark.usefixtures("own_cache")


def _one_line(caught: pytest.ExceptionInfo[LDLError]) -> None:
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("when", ["train_transforms", "eval_transforms"])
def test_channels_first_transforms_are_refused(when: str, tmp_path: Path) -> None:
    data = UTKFace(root=str(utkface(tmp_path)), crop_size=24, **{when: [A.HorizontalFlip(), ToTensorV2()]})
    with pytest.raises(LDLError, match=r"\(3, 24, 24\), channels first, as ToTensorV2 does; leave it out") as caught:
        data.setup()
    _one_line(caught)


@pytest.mark.parametrize("backbone", [Timm, PixelFeatures, HOG])
def test_channels_last_images_are_refused_by_every_backbone(backbone: Any) -> None:
    with pytest.raises(LDLError, match=r"got inputs of shape \(64, 64, 3\); permute them"):
        backbone().build((64, 64, 3))
    with pytest.raises(LDLError, match="3 channels"):
        WholeImages().build((64, 64, 3))


@pytest.mark.parametrize(
    ("box", "message"),
    [
        (
            "20,20,10,10",
            r"faces.csv: line 2: the box x0 20, y0 20, x1 10, y1 10 ends before it begins \(1 such lines\)",
        ),
        ("0.1,0.1,0.6,0.6", "a.jpg.* shares of its sides, not pixels"),
        ("50,50,60,60", "a.jpg.* lies outside of it"),
    ],
)
def test_boxes_of_lists_are_checked(box: str, message: str, tmp_path: Path) -> None:
    picture(tmp_path / "a.jpg", 30)
    file = write_lines(tmp_path / "faces.csv", ["path,age,x0,y0,x1,y1", f"a.jpg,30,{box}"])
    with pytest.raises(LDLError, match=message) as caught:
        FaceFolder(path=str(file), crop_size=24).setup()
    _one_line(caught)


def test_landmarks_of_files_are_checked(tmp_path: Path) -> None:
    fgnet(tmp_path)
    file = next((tmp_path / "FGNET/points").iterdir())
    head, _, rest = file.read_text().partition("{")
    points = np.array(rest.partition("}")[0].split(), float).reshape(-1, 2)[:, ::-1]
    file.write_text(head + "{\n" + "\n".join(f"{x} {y}" for x, y in points) + "\n}")
    with pytest.raises(LDLError, match=rf"(?i){file.stem}.jpg.* are no face; x before y"):
        FGNET(root=str(tmp_path), crop_size=24).setup()


LINE = np.zeros((20, 30))


LINE[10] = 1


def _benchmark(root: Path, strength: np.ndarray, **options: Any) -> Any:
    (root / "gt").mkdir(exist_ok=True)
    write_truth(root / "gt" / "a.mat", [LINE])
    write_edge_map(root / "pred" / "a.png", strength)
    return evaluate_folder(root / "pred", root / "gt", levels=3, workers=1, **options)


@pytest.mark.parametrize(
    ("strength", "message"),
    [(LINE / 255, "holds 0 and 1, where 255 is the most certain edge"), (1 - LINE, "95% of .* as in an inverted map")],
)
def test_edge_maps_in_other_numbers_are_refused(strength: np.ndarray, message: str, tmp_path: Path) -> None:
    with pytest.raises(LDLError, match=f"a.png.*{message}.*--allow_empty"):
        _benchmark(tmp_path, strength)
    with pytest.raises(LDLError, match=f"a.png.*{message}"):
        count_folder(tmp_path / "pred", tmp_path / "gt")
    _benchmark(tmp_path, strength, allow_empty=True)
    assert _benchmark(tmp_path, LINE).to_dict()["ods"] == 1


def test_ground_truth_that_is_inverted_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match=r"a.mat: 95% of the pixels are edges, as in an inverted map"):
        read_ground_truth(write_truth(tmp_path / "a.mat", [1 - LINE]))


@pytest.mark.parametrize("high", [1, 255])
def test_ground_truth_may_be_a_png(high: int, tmp_path: Path) -> None:
    Image.fromarray((LINE * high).astype(np.uint8)).save(tmp_path / "a.png")
    np.testing.assert_array_equal(read_ground_truth(tmp_path / "a.png").boundaries, LINE[None] > 0)
    write_edge_map(tmp_path / "pred" / "a.png", LINE)
    assert evaluate_folder(tmp_path / "pred", tmp_path, levels=3, workers=1).to_dict()["ods"] == 1
    assert count_folder(tmp_path / "pred", tmp_path)


@pytest.mark.parametrize(
    ("drawn", "message"),
    [(LINE * 100 + np.arange(30), "of 60 greys, from 0 to 129"), (1 - LINE, "95% of the pixels are edges")],
)
def test_pngs_that_are_no_ground_truth_are_refused(drawn: np.ndarray, message: str, tmp_path: Path) -> None:
    Image.fromarray(drawn.astype(np.uint8)).save(tmp_path / "a.png")
    with pytest.raises(LDLError, match=f"a.png.*{message}"):
        read_ground_truth(tmp_path / "a.png")


def test_an_edge_set_may_have_pngs_as_ground_truth(tmp_path: Path) -> None:
    bsds(tmp_path)
    for file in list((tmp_path / "groundTruth").rglob("*.mat")):
        drawn = read_ground_truth(file).boundaries[0]
        Image.fromarray(drawn.astype(np.uint8) * 255).save(file.with_suffix(".png"))
        file.unlink()
    shutil.copy(tmp_path / "images/train/1001.jpg", tmp_path / "images/train/._1001.jpg")
    data = BSDS500(path=str(tmp_path), crop=32)
    data.setup()
    assert data.size == 5 and data.read(0)[1].boundaries.shape[0] == 1
