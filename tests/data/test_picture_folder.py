"""Pictures of which nothing is known but where their faces are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from fake_faces import picture

from ldl.data.images.transforms import Pipeline
from ldl.data.picture_folder import PictureFolder
from ldl.errors import LDLError
from ldl.labels import LabelSpace

pytestmark = pytest.mark.usefixtures("own_cache")

BOX = [0, 0, 20, 0, 20, 20, 0, 20]


def _open(folder: Path, *boxed: str) -> PictureFolder:
    (folder / "boxes.json").write_text(json.dumps([{"img_path": name, "aligned_bbox": BOX} for name in boxed]))
    data = PictureFolder(path=str(folder), boxes=str(folder / "boxes.json"))
    crops = {"crop_size": 24, "margin": None, "transforms": Pipeline([]).to_dict()}
    data.follow(LabelSpace.nominal(["a", "b"]), (3, 24, 24), crops)
    data.setup()
    return data


def test_a_box_is_of_the_picture_of_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a/one.png", "b/two.png"):
        picture(tmp_path / name, 40)
    boxed, whole = _open(tmp_path, "One.jpg"), _open(tmp_path)
    assert "1 of 2 images are used whole" in capsys.readouterr().out
    rows, seeds = torch.arange(2).numpy(), torch.zeros(2).numpy()
    one, other = (data.inputs(rows, seeds, train=False) for data in (boxed, whole))
    assert not torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])


def test_a_box_of_two_pictures_is_refused(tmp_path: Path) -> None:
    for name in ("a/one.png", "b/one.png"):
        picture(tmp_path / name, 40)
    assert _open(tmp_path, "two.png").size == 2
    with pytest.raises(LDLError, match="one box for several images named one; give them other names"):
        _open(tmp_path, "one.png")
