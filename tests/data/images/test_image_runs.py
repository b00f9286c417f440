"""The one command on images with votes, and its checkpoint on new images."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from fakes.face_releases import write_lines
from fakes.image_votes import classes, voted
from PIL import Image

from ldl.command import main
from ldl.command.audit import audit
from ldl.data import ImageLDL
from ldl.errors import LDLError
from ldl.inference import Predictor

pytestmark = pytest.mark.usefixtures("own_cache", "blank_charts")
SHORT = [
    *("--trainer.max_epochs=2", "--trainer.enable_progress_bar=false", "--wandb.mode=disabled"),
    *("--model.backbone.name=test_resnet", "--model.backbone.pretrained=false", "--data.crop_size=32"),
]


def _predictions(run: Path) -> list[dict[str, str]]:
    with (run / "predictions.csv").open() as stream:
        return list(csv.DictReader(stream))


def _shares(rows: list[dict[str, str]]) -> np.ndarray:
    return np.array([[float(row[name]) for name in row if name.startswith("prediction:")] for row in rows])


@pytest.mark.slow
@pytest.mark.parametrize("channels", [3, 1])
def test_one_command_and_its_checkpoint(channels: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = voted(tmp_path)
    options = ["--data.weighting=dirichlet", f"--data.channels={channels}"]
    main(
        ["-c", "images_softmax", f"--data.path={root / 'split.csv'}", *SHORT, *options, f"--run_dir={tmp_path / 'run'}"]
    )
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert (results["title"], results["protocol"], results["folds"][0]["n_test"]) == ("split", "published", 6)
    tested = _predictions(tmp_path / "run")
    checkpoint = tmp_path / "run" / "checkpoints" / "last.ckpt"
    predictor = Predictor.from_checkpoint(checkpoint)
    paths = [root / row["name"] for row in tested]
    for given in (paths, [Image.open(path) for path in paths], [np.asarray(Image.open(path)) for path in paths]):
        np.testing.assert_allclose(predictor(given).distribution, _shares(tested), atol=1e-5)
    new = ["--stage=predict", f"--ckpt_path={checkpoint}", "--wandb.mode=disabled", f"--data.path={root / 'images'}"]
    main([*new, f"--run_dir={tmp_path / 'new'}"])
    assert "face" not in capsys.readouterr().out
    found = {row["name"]: row for row in _predictions(tmp_path / "new")}
    same = _shares([found[path.name] for path in paths])
    assert len(found) == 24 and np.abs(same - _shares(tested)).max() < 1e-5
    lines = [f"images\\{Path(row['name']).name}" for row in tested]
    for column, more in (("path", []), ("task", []), ("photo", ["--data.path_column=photo"])):
        listed = write_lines(root / "new.csv", [f"{column},note", *(f"{line},x" for line in lines)])
        main([*new[:-1], f"--data.path={listed}", *more, f"--run_dir={tmp_path / column}"])
        rows = _predictions(tmp_path / column)
        assert [row["name"] for row in rows] == [row["name"] for row in tested]
        assert np.abs(_shares(rows) - _shares(tested)).max() < 1e-5


@pytest.mark.slow
def test_a_folder_of_classes_tests_another(tmp_path: Path) -> None:
    one, two = classes(tmp_path / "one"), classes(tmp_path / "two")
    shutil.rmtree(two / "dark")  # its label is that of training
    main(["-c", "images_ldlf", f"--data.path={one}", *SHORT, "--data.folds=2", f"--run_dir={tmp_path / 'run'}"])
    checkpoint = tmp_path / "run" / "checkpoints" / "last.ckpt"
    again = ["--stage=test", f"--ckpt_path={checkpoint}", f"--data.path={two}", "--data.val_fraction=0"]
    main([*again, "--wandb.mode=disabled", f"--run_dir={tmp_path / 'again'}"])
    results = json.loads((tmp_path / "again" / "results.json").read_text())
    assert results["title"] == "two" and results["folds"][0]["n_test"] == 4


def test_audit_of_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = voted(tmp_path)
    (root / "images/3.png").write_bytes(b"no image")
    audit([str(root / "split.csv")])
    said = capsys.readouterr().out
    assert "images      23 can be read, 1 cannot" in said and "copies      none" in said
    assert "counts layout, 24 items" in said and "agreement   Krippendorff's alpha" in said
    assert "groups      12, of 1 to 2 rows" in said and "% of the test rows share a group with training" in said
    audit([str(root / "matrix.csv"), "--rater_columns", "r*"])
    assert "matrix layout, 24 items" in capsys.readouterr().out
    audit([str(root / "values.csv"), "--value_key", "value", "--protocol", "random_kfold"])
    said = capsys.readouterr().out
    assert "labels      0 to " in said and "random_kfold: " in said
    with pytest.raises(LDLError, match="no column 'nobody'|no key 'nobody'"):
        audit([str(root / "values.csv"), "--value_key", "nobody"])


def test_audit_of_images_is_that_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = voted(tmp_path)
    rows = (root / "long.csv").read_text().splitlines()
    spelled = [row if number % 2 else f"./{row}" for number, row in enumerate(rows[1:])]  # two spellings of each image
    file = write_lines(root / "spelled.csv", [rows[0], *spelled])
    (root / "images/0.png").unlink()
    audit([str(file)])
    said = capsys.readouterr().out
    data = ImageLDL(path=str(file), crop_size=8, skip_unreadable=True)
    data.setup()
    assert f"images      {data.size} can be read, 1 cannot\n" in said and data.size == 23
    assert f"items       {data.annotations}\n" in said and len(data.annotations) == 23
    assert "group 'person', long layout, 24 items" in said and "groups      12, of 1 to 2 rows" in said
    shutil.rmtree(root / "images")
    capsys.readouterr()
    audit([str(file)])
    said = capsys.readouterr().out
    assert "long layout, 24 items" in said and "images      none of 24 is there, the first is images/0.png\n" in said
    with pytest.raises(LDLError, match="not one of 24 images can be read"):
        audit([str(file), "--data", "ImageLDL"])


def test_audit_of_a_folder_of_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit([str(classes(tmp_path / "one"))])
    said = capsys.readouterr().out
    assert "images      16 can be read, 0 cannot" in said and "labels      2 nominal: bright, dark" in said
