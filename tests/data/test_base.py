"""What every data module shares: its record, its options, and data sets that go to loader processes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fakes.face_releases import picture, write_lines
from torch import Tensor

from ldl.data import LDLDataModule, Loaded
from ldl.errors import LDLError
from ldl.faces import FaceFolder
from ldl.labels import LabelSpace
from ldl.options import options

pytestmark = pytest.mark.usefixtures("own_cache")


class Plain(LDLDataModule):
    """A set whose constructor is written by hand."""

    def __init__(self, count: int = 20, batch_size: int = 4) -> None:
        super().__init__(batch_size=batch_size, folds=5, val_fraction=0.0)
        self.count = count

    def load(self) -> Loaded:
        numbers = np.arange(self.count)
        return Loaded(LabelSpace.nominal("ab"), {"target": torch.eye(2)[numbers % 2]}, groups=numbers // 2)

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        noise = torch.tensor(seeds % 1000)[:, None] / 1000 if train else 0
        return torch.from_numpy(rows).float()[:, None] + noise


@options
class OwnFaces(FaceFolder):
    """Faces of a set that knows nothing of albumentations."""

    crop_size: int = 24


def test_a_constructor_written_by_hand_keeps_working() -> None:
    data = Plain(batch_size=7)
    data.setup()
    assert (data.count, data.batch_size, data.num_workers, data.folds, data.size) == (20, 7, 0, 5, 20)
    assert data.input_shape == (1,) and len(data.split.test) == 4
    batch = next(iter(data.test_dataloader()))
    assert list(batch) == ["input", "target", "group", "index", "weight"]
    assert batch["input"][:, 0].tolist() == batch["index"].tolist() and batch["group"].tolist() == [
        row // 2 for row in batch["index"].tolist()
    ]
    with pytest.raises(LDLError, match=r"^Plain.batch_size 0 must be in 1..2\^31 - 1, or null for"):
        Plain(batch_size=0).setup()


def test_types_of_transforms_are_found_from_any_file(tmp_path: Path) -> None:
    from jsonargparse import ArgumentParser

    for number in range(6):
        picture(tmp_path / f"{number}.jpg", number)
    write_lines(tmp_path / "faces.csv", ["path,age", *(f"{number}.jpg,{number}" for number in range(6))])
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--data", type=LDLDataModule)
    transforms = "--data.train_transforms=[{class_path: albumentations.HorizontalFlip, init_args: {p: 1.0}}]"
    for name in (f"{__name__}.OwnFaces", "FaceFolder"):
        given = parser.parse_args([f"--data={name}", f"--data.path={tmp_path / 'faces.csv'}", transforms])
        data = parser.instantiate(given).data
        assert [type(transform).__name__ for transform in data.train_transforms] == ["HorizontalFlip"]


@pytest.mark.parametrize(
    ("columns", "more", "message"),
    [
        ({"target": torch.ones(3, 2)}, {"names": ["a", "b"]}, "different lengths: target 3, names 2"),
        ({"target": torch.ones(3, 2), "extra": torch.ones(4)}, {}, "different lengths: target 3, extra 4"),
        ({"target": torch.ones(3, 2)}, {"values": np.ones(2)}, "different lengths: target 3, values 2"),
    ],
)
def test_records_of_unequal_columns_are_refused(columns: dict[str, Tensor], more: dict[str, Any], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        _ = Loaded(LabelSpace.nominal("ab"), columns, **more).batch_columns


def test_columns_are_made_of_values_and_groups_where_they_are_not_given() -> None:
    loaded = Loaded(
        LabelSpace.nominal("ab"), {"target": torch.ones(3, 2)}, np.array([1.0, 2, 4]), np.array(["b", "a", "b"])
    )
    columns = loaded.batch_columns
    assert columns["value"].dtype == torch.float32 and columns["value"].tolist() == [1, 2, 4]
    assert columns["group"].tolist() == [1, 0, 1]
    given = replace(loaded, columns={**loaded.columns, "value": torch.zeros(3)}).batch_columns
    assert given["value"].tolist() == [0, 0, 0]
