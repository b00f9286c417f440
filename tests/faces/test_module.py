"""Data modules of faces: images that cannot be read, and protocols of persons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.face_releases import utkface

from ldl.errors import LDLError
from ldl.faces import UTKFace
from ldl.faces.ages import FaceAges

pytestmark = pytest.mark.usefixtures("own_cache")


def _open(kind: type[FaceAges], root: Path, **options: Any) -> FaceAges:
    data = kind(root=str(root), **{"crop_size": 24, "val_fraction": 0, **options})
    data.setup()
    return data


def test_unreadable_pictures_stop_or_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = utkface(tmp_path) / "UTKFace"
    bad = sorted(folder.iterdir())[5]
    bad.write_bytes(b"broken")
    with pytest.raises(LDLError, match="1 of 40 images cannot be read, the first: .*; mend them, or leave them out"):
        _open(UTKFace, tmp_path)
    data = _open(UTKFace, tmp_path, skip_unreadable=True)
    assert data.size == 39 and data.names is not None and bad.name not in data.names
    output = capsys.readouterr().out
    assert "left out 1 of 40 unreadable images" in output and bad.name in output
    whole = next(iter(_open(UTKFace, tmp_path, skip_unreadable=True, batch_size=64).whole_dataloader()))
    brightness = whole["input"].float().mean((1, 2, 3))
    assert np.corrcoef(brightness, whole["value"])[0, 1] > 0.98
