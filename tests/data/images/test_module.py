"""What all data modules of images share: copies, unreadable files, sizes and channels."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from fakes.image_votes import image, voted, votes

from ldl.data import ImageLDL, ImageValues
from ldl.errors import LDLError

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return voted(tmp_path_factory.mktemp("voted"))


def made(path: Path, kind: type[ImageLDL] | type[ImageValues] = ImageLDL, **options: Any) -> Any:
    data = kind(path=str(path), **{"crop_size": 16, "folds": 3, "augmentation": "none", **options})
    data.setup()
    return data


def test_copies_stay_together(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = voted(tmp_path)
    for number in range(12):
        shutil.copy(root / f"images/{number}.png", root / f"images/{number + 12}.png")
    data = made(root / "counts.csv")
    for fold in range(3):
        data.select_fold(fold)
        assert data.copied == 0
    said = capsys.readouterr().out
    assert "24 of 24 images are there more than once, byte for byte, in 12 groups" in said
    assert "of them with different values" in said and "are kept in one part of a split" in said
    assert made(root / "counts.csv", split_copies=True).copied > 0
    parted = made(root / "split.csv")
    assert parted.leaky and "they stay where published puts them" in capsys.readouterr().out


def test_unreadable_images_stop_or_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = voted(tmp_path)
    (root / "images/3.png").write_bytes(b"no image")
    (root / "images/5.png").unlink()
    with pytest.raises(LDLError, match="2 of 24 images cannot be read, the first: .*3.png.*skip_unreadable true"):
        made(root / "counts.csv")
    data = made(root / "counts.csv", skip_unreadable=True)
    kept = [row for number, row in enumerate(votes()) if number not in (3, 5)]
    assert data.names == [row[0] for row in kept] and "left out 2 of 24 unreadable images" in capsys.readouterr().out
    assert data.columns["votes"].tolist() == [row[1] + row[2] for row in kept]


def test_sizes_and_channels(tree: Path, tmp_path: Path) -> None:
    data = made(tree / "counts.csv", crop_size=None, channels=1)
    assert data.input_shape == (1, 32, 32) and data.preprocessing["channels"] == 1
    root = voted(tmp_path)
    image(root / "images/4.png", 0.5, size=(20, 20))
    with pytest.raises(LDLError, match="0.png has 32x24 and .*4.png has 20x20: give the size for all"):
        made(root / "counts.csv", crop_size=None)
