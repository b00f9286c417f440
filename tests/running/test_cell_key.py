"""What the folds of a cross-validation are kept under changes with all that decides their figures."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from fake_faces import picture, write_lines

from ldl.data import FaceFolder
from ldl.running.cell_key import content_digest, depends_on


def test_rows_of_the_folds_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        picture(tmp_path / f"{number}.jpg", 20.0, number)

    def digest(*parts: str) -> str:
        lines = [f"{number}.jpg,20,{part}" for number, part in enumerate(parts)]
        path = write_lines(tmp_path / "faces.csv", ["path,age,part", *lines])
        own = {"crop_size": 8, "cache_dir": str(tmp_path / "cache"), "val_fraction": 0.0}
        data = FaceFolder(path=str(path), protocol="parts", **own)  # type: ignore[arg-type]
        data.setup()
        capsys.readouterr()
        found = content_digest(data)
        assert capsys.readouterr().out == ""
        return found

    before = digest("train", "train", "test")
    assert digest("train", "train", "test") == before != digest("train", "test", "train")
    assert digest("train", "val", "test") != before


def test_files_that_the_model_is_made_of_count(tmp_path: Path) -> None:
    file = tmp_path / "last.ckpt"
    part = {"class_path": "ldl.backbones.Timm", "init_args": {"name": "resnet18", "weights": str(file)}}
    text = yaml.safe_dump({"model": {"backbone": part, "start": None}, "data": {}, "trainer": {}})
    absent = depends_on(text)
    file.write_text("one")
    one = depends_on(text)
    file.write_text("two")
    assert absent != one != depends_on(text) != absent
