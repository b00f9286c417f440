"""A dense set that is no benchmark of edges: figures over pixels, a map an image, a sheet, and no pixel in a table."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.image import imread
from PIL import Image
from torch import Tensor

from ldl.backbones.base import Backbone
from ldl.command import main
from ldl.data.base import LDLDataModule, Loaded
from ldl.labels import LabelSpace
from ldl.metrics import functional
from ldl.reports.maps import planes, read_plane, write_plane

COUNT, HEIGHT, WIDTH = 12, 9, 14


class Ground(LDLDataModule):
    """Pictures of sky, wood and water, one a channel, with the shares that three annotators gave to every pixel."""

    def load(self) -> Loaded:
        labels = self.space()
        rng = np.random.default_rng(0)
        surest = rng.integers(len(labels), size=(COUNT, HEIGHT, WIDTH))
        shares = np.eye(len(labels))[surest] * 2 / 3 + 1 / (3 * len(labels))
        colours = np.linspace(0, 255, 3 * len(labels)).reshape(len(labels), 3)
        self.images = torch.from_numpy(colours[surest].astype(np.uint8)).permute(0, 3, 1, 2)
        target = torch.tensor(shares, dtype=torch.float32)
        return Loaded(labels, {"target": target}, names=[f"part/{number}.7" for number in range(COUNT)])

    def space(self) -> LabelSpace:
        return LabelSpace.nominal(["sky", "wood", "water"])

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        return self.images[torch.from_numpy(rows)]


class Flow(Ground):
    """Where every pixel goes."""

    def space(self) -> LabelSpace:
        return LabelSpace.grid([-1, 1], [-2, 0, 2], "px", ("down", "right"))


class Bright(Backbone):
    """The colours of every pixel, in [0, 1]."""

    gives_maps = True

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        return input_shape[0]

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs.permute(0, 2, 3, 1).float() / 255


def run(folder: Path, data: str, *options: str) -> dict[str, Any]:
    main(
        [
            "--model.head=Softmax", f"--model.backbone={__name__}.Bright", f"--data={__name__}.{data}",
            "--data.folds=3", "--data.val_fraction=0.2", "--data.batch_size=2", "--model.optimizer=Adam",
            "--model.optimizer.lr=0.1",
            "--trainer.max_epochs=4", "--trainer.enable_progress_bar=false", "--trainer.log_every_n_steps=1",
            "--trainer.enable_model_summary=false", "--wandb.mode=disabled", f"--run_dir={folder}", *options,
        ]
    )  # fmt: skip
    return json.loads((folder / "results.json").read_text())


def table(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "predictions.csv").open()))


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("ground") / "run"
    return folder, run(folder, "Ground")


def test_nominal_labels_have_a_row_an_image_and_no_pixel_in_it(ground: tuple[Path, dict[str, Any]]) -> None:
    folder, results = ground
    rows = table(folder)
    assert list(rows[0]) == ["index", "name", "kl", "map"] and len(rows) == results["folds"][0]["n_test"] == 4
    assert not any("[" in cell for row in rows for cell in row.values())
    figures = results["mean"]
    assert figures.keys() == {name for name in dir(functional) if name in figures} and len(figures) == 10
    # Images are of one size, so that the mean over images is the mean over pixels.
    assert np.mean([float(row["kl"]) for row in rows]) == pytest.approx(figures["kl"], rel=1e-6)


def test_maps_are_numbers_of_labels_in_colours(ground: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = ground
    data = Ground().load()
    names = {row["name"]: row["map"] for row in table(folder)}
    assert names == {name: f"maps/{name}.png" for name in names}
    agreed = []
    for name, file in names.items():
        with Image.open(folder / file) as picture:
            assert picture.mode == "P" and picture.text["Description"] == "0 is sky, 1 is wood, 2 is water"
            numbers = np.asarray(picture)
        assert numbers.shape == (HEIGHT, WIDTH)
        agreed.append((numbers == data.columns["target"][data.names.index(name)].argmax(-1).numpy()).mean())
    assert np.mean(agreed) > 0.6


def test_the_sheet_shows_image_truth_and_prediction(ground: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = ground
    assert {path.stem for path in (folder / "charts").iterdir()} == {"maps", "learning_curves"}
    assert "at every pixel of an image: sky, wood, water." in (folder / "model_card.md").read_text()
    height, width, _ = imread(folder / "charts" / "maps.png").shape
    assert (height, width) == (int(4 * 2.6 * 120), 3 * 3 * 120)


def test_prediction_from_a_checkpoint_writes_the_same_maps(ground: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, _ = ground
    checkpoint = folder / "checkpoints" / "last.ckpt"
    main(
        [
            "--stage=predict", f"--ckpt_path={checkpoint}", "--model.head=Softmax",
            f"--model.backbone={__name__}.Bright", f"--data={__name__}.Ground", "--data.folds=3",
            "--data.val_fraction=0.2", "--wandb.mode=disabled", "--trainer.enable_progress_bar=false",
            f"--run_dir={tmp_path}",
        ]
    )  # fmt: skip
    for row in table(tmp_path):
        assert (tmp_path / row["map"]).read_bytes() == (folder / row["map"]).read_bytes()
    assert (tmp_path / "charts" / "maps.png").is_file()


PLANES = {
    "0 is sky, 1 is wood, 2 is water": (LabelSpace.nominal(["sky", "wood", "water"]), "P"),
    "0 is 0 m, 65535 is 40 m": (LabelSpace.ordinal([0, 10, 20, 40], "m"), "I;16"),
    "255 is wet for certain, 0 is dry": (LabelSpace.nominal(["dry", "wet"]), "L"),
}


@pytest.mark.parametrize("description", PLANES)
def test_a_plane_comes_back_from_its_file(description: str, tmp_path: Path) -> None:
    labels, mode = PLANES[description]
    distribution = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(len(labels)), (5, 7)))
    (plane,) = planes(distribution, None, labels)
    write_plane(tmp_path / "a.png", plane, labels)
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.mode == mode and picture.text["Description"] == description
    np.testing.assert_allclose(read_plane(tmp_path / "a.png", labels), plane, atol=1 / 255)


@pytest.mark.slow
def test_a_grid_has_a_file_an_axis(tmp_path: Path) -> None:
    results = run(tmp_path, "Flow", "--trainer.max_epochs=1")
    row = table(tmp_path)[0]
    assert [row["map_down"], row["map_right"]] == [f"maps/{row['name']}_{axis}.png" for axis in ("down", "right")]
    assert all((tmp_path / row[name]).is_file() for name in ("map_down", "map_right"))
    assert "mae_down" in results["mean"] and imread(tmp_path / "charts/maps.png").shape[1] == 5 * 3 * 120


def test_the_mean_of_maps_is_that_of_their_pixels(tmp_path: Path) -> None:
    run(tmp_path / "run", "Ground", "--model.head=MeanPredictor", "--stage=fit")
    state = torch.load(tmp_path / "run" / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
    data = Ground(folds=3, val_fraction=0.2)
    data.setup()
    expected = data.columns["target"][torch.from_numpy(data.split.train)].double().mean((0, 1, 2))
    torch.testing.assert_close(state["head.mean"].double(), expected, rtol=0, atol=1e-6)


def test_heads_fitted_on_rows_say_so_of_maps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(tmp_path / "run", "Ground", "--model.head=MaxEnt")
    assert "error: MaxEnt is fitted on (N, F) features" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()  # found while fitting, when the folder was there already
