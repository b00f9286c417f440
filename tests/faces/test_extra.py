"""Pictures of another set that every fold learns from and none tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fakes.face_releases import fgnet, utkface, write_lines

from ldl.errors import LDLError
from ldl.faces import FGNET, UTKFace

pytestmark = pytest.mark.usefixtures("own_cache")


def _both(root: Path, **options: Any) -> FGNET:
    utkface(fgnet(root))
    data = FGNET(root=str(root), **{"crop_size": 24, "val_fraction": 0, "max_age": 116, "extra": "UTKFace", **options})
    data.setup()
    return data


def _alone(kind: Any, root: Path, **options: Any) -> Any:
    data = kind(root=str(root), crop_size=24, val_fraction=0, **options)
    data.setup()
    return data


def test_every_fold_learns_from_them_and_none_tests_them(tmp_path: Path) -> None:
    data = _both(tmp_path)
    alone, other = _alone(FGNET, tmp_path, max_age=116), _alone(UTKFace, tmp_path)
    assert data.size == alone.size + other.size and data.num_folds == alone.num_folds
    extra = np.arange(alone.size, data.size)
    for fold in range(data.num_folds):
        data.select_fold(fold)
        alone.select_fold(fold)
        np.testing.assert_array_equal(data.split.test, alone.split.test)
        np.testing.assert_array_equal(data.split.train, np.concatenate([alone.split.train, extra]))
        assert data.leak == 0
    assert data.values is not None
    np.testing.assert_array_equal(data.values[extra], other.values)
    rows = np.arange(data.size)
    inputs = torch.cat([one.inputs(np.arange(one.size), np.arange(one.size), False) for one in (alone, other)])
    assert torch.equal(data.inputs(rows, rows, train=False), inputs)


def test_a_limit_draws_some_at_random(tmp_path: Path) -> None:
    data, whole = _both(tmp_path, extra_limit=7), _alone(UTKFace, tmp_path)
    assert data.size == 32 + 7
    names = [Path(name).name for name in (data.names or [])[32:]]
    assert names == sorted(names) and set(names) < {Path(name).name for name in whole.names}
    assert names != [Path(name).name for name in (_both(tmp_path, extra_limit=7, fold_seed=1).names or [])[32:]]


@pytest.mark.parametrize(("share", "balance"), [(0.2, 0.5), (0.75, 0.0)])
def test_training_draws_their_share(share: float, balance: float, tmp_path: Path) -> None:
    data = _both(tmp_path, extra_share=share, batch_size=16, balance=balance)
    often = data.often()
    assert often is not None and len(often) == len(data.split.train) and often.mean() == pytest.approx(1)
    extra = data.split.train >= 32
    assert often[extra].sum() / often.sum() == pytest.approx(share)
    assert (np.ptp(often[extra]) > 1e-6) == (balance > 0)
    drawn = torch.cat([batch["index"] for batch in data.train_dataloader()])
    assert len(drawn) == len(data.split.train)
    assert (drawn >= 32).double().mean() == pytest.approx(share, abs=0.12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"extra": "nowhere"}, r"data.extra: nothing at .*nowhere; give a folder"),
        ({"extra_share": 1.0}, r"extra_share 1.0 must be in \(0, 1\)"),
        ({"max_age": 69}, r"has age 1?\d\d?, outside 0..69 years"),
        ({"extra": "same.csv"}, r"has 1 images of FGNET, such as .*001A02.*learned from where they are tested"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    first = sorted((fgnet(tmp_path) / "FGNET" / "images").iterdir())[0]
    write_lines(tmp_path / "same.csv", ["path,age", f"FGNET/images/{first.name},2"])
    with pytest.raises(LDLError, match=message):
        _both(tmp_path, **options)
