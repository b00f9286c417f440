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


def test_weights_that_are_found_count_by_their_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(folder: str, **options: object) -> dict:
        monkeypatch.setenv("LDL_WEIGHTS", str(tmp_path / folder))
        part = {"class_path": "ldl.backbones.Timm", "init_args": {"name": "resnet18", **options}}
        return depends_on(yaml.safe_dump({"model": {"backbone": part}, "data": {}, "trainer": {}}))

    def put(folder: str, content: str) -> None:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "resnet18.a1.safetensors").write_text(content)

    absent = found("here", pretrained="auto")
    put("here", "one")
    put("there", "one")
    one = found("here", pretrained="auto")
    assert absent != one == found("there", pretrained="auto")
    fixed = [found("here", pretrained=False), found("here", pretrained="auto", weights="own.pth")]
    put("here", "two")
    assert one != found("here", pretrained="auto") != absent
    assert fixed == [found("here", pretrained=False), found("here", pretrained="auto", weights="own.pth")]
