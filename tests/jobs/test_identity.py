"""What the folds of a cross-validation are kept under changes with all that decides their figures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from fakes.face_releases import picture, write_lines

from ldl.faces import FaceFolder
from ldl.jobs.identity import content_digest, deciding_options
from ldl.plugins import discover, plugin_folders


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
    absent = deciding_options(text)
    file.write_text("one")
    one = deciding_options(text)
    file.write_text("two")
    assert absent != one != deciding_options(text) != absent


def test_weights_that_are_found_count_by_their_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(folder: str, **options: object) -> dict:
        monkeypatch.setenv("LDL_WEIGHTS", str(tmp_path / folder))
        part = {"class_path": "ldl.backbones.Timm", "init_args": {"name": "resnet18", **options}}
        return deciding_options(yaml.safe_dump({"model": {"backbone": part}, "data": {}, "trainer": {}}))

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


def test_the_source_of_plugins_counts(tmp_path: Path) -> None:
    """And that of their bases in other files; not that of ldl, whose version does, nor what another plugin is."""
    base, own, other = (tmp_path / f"cell_key_{name}.py" for name in ("base", "own", "other"))
    base.write_text("from ldl.heads import Softmax\nclass Base(Softmax): pass\n")
    own.write_text("from ldl_plugins.cell_key_base import Base\nclass Own(Base): pass\n")
    other.write_text("from ldl.heads import Softmax\nclass Other(Softmax): pass\n")
    discover(tmp_path)

    def found(path: str, where: str = "model") -> dict:
        part = {"head": {"class_path": path, "init_args": {}}}
        return deciding_options(yaml.safe_dump({"model": {}, "data": {}, "trainer": {}} | {where: part}))

    try:
        for where in ("model", "data", "trainer"):
            first, plain = found("ldl_plugins.cell_key_own.Own", where), found("ldl.heads.Softmax", where)
            assert first["files"].keys() == {"ldl_plugins.cell_key_own", "ldl_plugins.cell_key_base"}
            assert "files" not in plain
            other.write_text(f"# {where}")
            assert found("ldl_plugins.cell_key_own.Own", where) == first
            for file in (own, base):
                file.write_text(f"{file.read_text()}# {where}\n")
                assert found("ldl_plugins.cell_key_own.Own", where) != first
                first = found("ldl_plugins.cell_key_own.Own", where)
    finally:
        for file in (base, own, other):
            sys.modules.pop(f"ldl_plugins.{file.stem}", None)
        plugin_folders.remove(tmp_path)
