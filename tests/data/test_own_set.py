"""A data set of one's own: pictures that a CSV file lists, in one plugin file of at most 40 lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.face_releases import picture, write_lines

from ldl.command import main
from ldl.plugins import discover

pytestmark = pytest.mark.usefixtures("blank_charts")

OWN_SET = '''"""Fruits, and how ripe they are: a CSV file of the columns path and days."""

from __future__ import annotations

import cv2
import numpy as np
import torch
from torch import Tensor

from ldl.data import LDLDataModule, Loaded
from ldl.tables.csv_table import read_csv
from ldl.data.pictures import read_picture
from ldl.labels import LabelSpace
from ldl.options import option, options


@options
class Fruits(LDLDataModule):
    """Pictures of fruits, with the days since they were picked.

    Args:
        path: The CSV file: as it stands, or below the data folder.
        side: Pixels of a picture.
    """

    path: str = option(kw_only=True)
    side: int = option(default=32, least=8)

    def load(self) -> Loaded:
        table = read_csv(self.find(self.path))
        days = table.numbers(["days"])[:, 0]
        labels = LabelSpace.ordinal(range(0, 31), "days")
        target = labels.encode(torch.tensor(days), sigma=2.0)
        return Loaded(labels, {"target": target.float()}, values=days, names=table.column("path"))

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        folder = self.find(self.path).parent
        pictures = [cv2.resize(read_picture(folder / self.names[row]), (self.side, self.side)) for row in rows]
        return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2)
'''


@pytest.fixture(scope="module")
def fruits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pictures, their list, and the plugin that reads them."""
    folder = tmp_path_factory.mktemp("fruits")
    for number in range(30):
        picture(folder / f"p{number}.jpg", number, number)
    write_lines(folder / "fruits.csv", ["path,days", *(f"p{number}.jpg,{number}" for number in range(30))])
    write_lines(folder / "plugins" / "fruits.py", OWN_SET.splitlines())
    assert "ldl_plugins.fruits" in discover(folder / "plugins")
    return folder


@pytest.mark.slow
def test_it_is_trained_through_main(fruits: Path, tmp_path: Path) -> None:
    backbone = "{class_path: Identity, init_args: {flatten: true}}"
    write_lines(tmp_path / "run.yaml", [f"model: {{head: Softmax, backbone: {backbone}}}", "data: Fruits"])
    main(
        ["-c", str(tmp_path / "run.yaml"), "--data.path", str(fruits / "fruits.csv"), "--data.batch_size=8"]
        + ["--data.folds=3", "--trainer.max_epochs=1", "--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]
        + ["--data.num_workers=1", "--run_dir", str(tmp_path / "run")]
    )
    results = json.loads((tmp_path / "run/results.json").read_text())
    assert results["data"] == "Fruits" and results["folds"][0]["n_test"] == 10
    assert 0 < results["mean"]["mae"] < 30
    lines = (tmp_path / "run/predictions.csv").read_text().splitlines()
    assert lines[0].startswith("index,name,value,predicted_value") and lines[1].split(",")[1].endswith(".jpg")


def test_its_options_are_those_of_the_command_line(fruits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--data.help", "Fruits"])
    said = " ".join(capsys.readouterr().out.split())
    assert "--data.side int; at least 8; default 32 Pixels of a picture." in said
    assert "--data.fold int; at least 0; default 0 The test fold, from 0." in said
    with pytest.raises(SystemExit):
        main(["--data", "Fruits", "--data.path", str(fruits / "fruits.csv"), "--data.side=4"])
    assert capsys.readouterr().err == "error: Fruits.side 4 must be at least 8\n"
