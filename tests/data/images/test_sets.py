"""FER+ and CIFAR-10H: fake trees in their layout, and the real files where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.image_votes import cifar10h, ferplus

from ldl.data import CIFAR10H, FERPlus
from ldl.data.images.sets import CLASSES, EMOTIONS, NO_EMOTION
from ldl.errors import LDLError

pytestmark = pytest.mark.usefixtures("own_cache")


def _opened(kind: type[Any], root: Path, **options: Any) -> Any:
    data = kind(root=str(root), **options)
    data.setup()
    return data


def test_ferplus_as_in_its_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = _opened(FERPlus, ferplus(tmp_path))
    said = capsys.readouterr().out
    assert "FER+: 27 of 31 listed images are there; 3 have most votes for unknown or NF and are left out" in said
    assert data.labels.names == EMOTIONS and data.protocol == "published" and data.size == 24
    assert [len(part) for part in (data.split.train, data.split.val, data.split.test)] == [8, 8, 8]
    assert {data.names[row].partition("/")[0] for row in data.split.test} == {"FER2013Test"}
    # The vote for unknown, which each image has, is gone.
    assert set(data.columns["votes"].tolist()) == {2, 9}
    assert data.input_shape == (3, 48, 48) and data.title == "FERPlus"


def test_ferplus_with_its_other_labels(tmp_path: Path) -> None:
    data = _opened(FERPlus, ferplus(tmp_path), extra_labels="keep")
    assert data.labels.names == (*EMOTIONS, *NO_EMOTION) and data.size == 27
    assert (data.columns["target"][:, 8] > 0).all()


def test_absent_images_and_files_of_ferplus(tmp_path: Path) -> None:
    ferplus(tmp_path)
    with pytest.raises(LDLError, match=r"27 of 31 listed images are there, the first that is not is FER2013Train/.*"):
        _opened(FERPlus, tmp_path, missing_images="error")
    (tmp_path / "ferplus" / "fer2013new.csv").unlink()
    with pytest.raises(LDLError, match="no FER\\+ at .*fer2013new.csv: it lies as ferplus/fer2013new.csv"):
        _opened(FERPlus, tmp_path)
    with pytest.raises(LDLError, match="no CIFAR-10H at .* below the data folder"):
        _opened(CIFAR10H, tmp_path)


def test_cifar10h(tmp_path: Path) -> None:
    data = _opened(CIFAR10H, cifar10h(tmp_path))
    assert (data.labels.names, data.num_folds, data.size) == (CLASSES, 10, 40)
    assert data.columns["votes"].tolist() == [50] * 40 and len(data.split.test) == 4


@pytest.mark.slow
def test_the_real_sets(ldl_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not (ldl_data / "ferplus").is_dir():
        pytest.skip("LDL_DATA has no ferplus")
    data = _opened(FERPlus, ldl_data)
    assert (len(data.split.val), len(data.split.test)) == (3553, 3546) and data.columns["votes"].max() == 10
    assert data.leaky is True and 0.03 < data.copied < 0.04  # FER2013 itself has copies in all parts
    data = _opened(CIFAR10H, ldl_data)
    assert data.size == 10_000 and data.columns["votes"].min() == 47 and data.copied == 0
    true = np.array([line.rpartition(",")[2] for line in (ldl_data / "cifar10h/counts.csv").read_text().split()[1:]])
    assert (np.array(CLASSES)[data.columns["target"].argmax(1)] == true).mean() > 0.99
