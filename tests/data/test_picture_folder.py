"""Pictures of which nothing is known but where their faces are."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fakes.blank_charts import leave_out_charts
from fakes.face_releases import picture, utkface, write_lines
from PIL import Image

from ldl.command import main
from ldl.data.images.transforms import Pipeline, default_train_transforms
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


RUN = ["--wandb.mode=disabled", "--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network that tells the brightness, trained on pictures that are gone."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patched:
        leave_out_charts(patched)
        patched.setenv("LDL_CACHE", str(folder / "cache"))
        config = write_lines(folder / "run.yaml", ["model: {head: AAKNN, backbone: Identity}", "data: UTKFace"])
        main(
            ["-c", str(config), "--model.backbone.flatten=true", f"--data.root={utkface(folder)}", *RUN]
            + ["--data.crop_size=16", "--data.protocol=holdout", "--data.train_transforms=[]", "--trainer.max_epochs=1"]
            + ["--data.eval_transforms=[{class_path: albumentations.ToGray, init_args: {p: 1.0}}]"]
            + ["--run_dir", str(folder / "run")]
        )
    (folder / "run" / "checkpoints" / "last.ckpt").rename(folder / "last.ckpt")
    for path in (folder / "UTKFace").iterdir():
        path.unlink()
    return folder / "last.ckpt"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))


def _predict(checkpoint: Path, data: Path, out: Path, *options: str) -> list[dict[str, str]]:
    main(
        ["--stage", "predict", "--ckpt_path", str(checkpoint), "--data", "PictureFolder", "--data.path", str(data)]
        + [*RUN, "--run_dir", str(out), *options]
    )
    with (out / "predictions.csv").open() as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
def test_a_folder_of_all_kinds(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "pictures"
    picture(folder / "sub" / "dark.jpg", 10, 1)
    picture(folder / "light.jpg", 75, 1)
    Image.fromarray(np.full((30, 30), 120, np.uint8)).save(folder / "grey.png")
    Image.fromarray(np.full((2, 3, 3), 120, np.uint8)).save(folder / "tiny.png")
    Image.fromarray(np.full((4000, 5000, 3), 120, np.uint8)).save(folder / "large.jpg")
    (folder / "corrupt.jpg").write_bytes(b"\xff\xd8\xff\xe0 not more than this")
    (folder / "notes.txt").write_text("no picture")
    rows = {row["name"]: row for row in _predict(checkpoint, folder, tmp_path / "out")}
    assert sorted(rows) == ["grey.png", "large.jpg", "light.jpg", "sub/dark.jpg", "tiny.png"]
    said = capsys.readouterr().out
    assert "left out 1 of 6 unreadable images" in said and "corrupt.jpg cannot be read as an image" in said
    ages = [float(row["predicted_value"]) for row in rows.values()]
    assert all(0 <= age <= 116 for age in ages)
    assert float(rows["light.jpg"]["predicted_value"]) > float(rows["sub/dark.jpg"]["predicted_value"]) + 15
    for row in rows.values():
        distribution = np.array([float(row[f"prediction:{age}"]) for age in range(117)])
        assert distribution.sum() == pytest.approx(1, abs=1e-4)
    # Of one colour all over, they are one crop.
    same = [rows[name]["predicted_value"] for name in ("grey.png", "tiny.png", "large.jpg")]
    assert np.ptp(np.array(same, float)) < 0.5
    drawn = sorted(path.relative_to(tmp_path / "out/charts/pictures") for path in (tmp_path / "out").rglob("*.png"))
    assert [path.as_posix() for path in drawn] == [f"{name}.png" for name in sorted(rows)]
    assert all(Image.open(path).size[0] > 200 for path in (tmp_path / "out").rglob("*.png"))


@pytest.mark.parametrize(("names", "message"), [((), "holds no images"), (("a.jpg",), "not one of 1 images can be")])
def test_a_folder_without_good_pictures(
    names: tuple[str, ...], message: str, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pictures").mkdir()
    for name in names:
        (tmp_path / "pictures" / name).write_bytes(b"?")
    with pytest.raises(SystemExit):
        _predict(checkpoint, tmp_path / "pictures", tmp_path / "out")
    assert message in capsys.readouterr().err


def test_pictures_without_labels_cannot_be_trained_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture(tmp_path / "pictures" / "a.jpg", 30)
    config = write_lines(tmp_path / "run.yaml", ["model: {head: Softmax, backbone: Identity}", "data: PictureFolder"])
    with pytest.raises(SystemExit):
        main(["-c", str(config), f"--data.path={tmp_path / 'pictures'}", *RUN, "--run_dir", str(tmp_path / "out")])
    assert "PictureFolder has no labels to train on" in capsys.readouterr().err


CROPS = {"crop_size": 32, "margin": None, "transforms": Pipeline(default_train_transforms()).to_dict()}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"crop_size": 10**6}, "crops of 1000000 pixels"),
        ({"crop_size": "32"}, "crops of '32' pixels"),
        ({"margin": -1}, "a margin of -1"),
        ({"alignment": ["eyes"]}, r"placed by \['eyes'\]; landmarks, box and none are known"),
        ({"transforms": {}}, "cannot be rebuilt"),
        ({"transforms": {"transform": {"__class_fullname__": "os.system", "p": 1}}}, "cannot be rebuilt.*system"),
        ({"transforms": {"transform": {"__class_fullname__": "Resize", "height": 10**9, "width": 1}}}, "16384 pixels"),
        ({}, "holds no images"),
    ],
)
def test_preprocessing_is_held_against_its_form(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    data = PictureFolder(str(tmp_path))
    with pytest.raises(LDLError, match=words):
        data.follow(LabelSpace.ordinal([1, 2]), (3, 32, 32), CROPS | change)
        data.load()
