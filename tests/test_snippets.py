"""The snippets of the guides, each one file: they keep the contracts, and train through the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import edge_images
from fakes.paths import ROOT
from PIL import Image

from ldl.command import main
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.metrics import registry
from ldl.plugins import discover
from ldl.testing import check_head

pytestmark = pytest.mark.usefixtures("blank_charts")

SNIPPETS = ROOT / "docs" / "snippets"
SHORT = ["--trainer.max_epochs=1", "--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]


@pytest.fixture(scope="module", autouse=True)
def own_measures() -> Iterator[None]:
    """The snippets as plugins. What they measure is measured in this file alone."""
    before = dict(registry._registered)
    discover(SNIPPETS)
    registry._registered.update({measure.name: measure for measure in example("agreement", "MEASURES")})
    yield
    registry._registered.clear()
    registry._registered.update(before)


def example(file: str, name: str) -> Any:
    """A class of a snippet, imported as a plugin is."""
    return getattr(sys.modules[f"ldl_plugins.{file}"], name)


def run(folder: Path, *options: str) -> dict[str, Any]:
    main([*SHORT, *options, "--run_dir", str(folder)])
    return json.loads((folder / "results.json").read_text())


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 rows whose four-label distribution follows their features."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 5))
    shares = np.exp(features @ rng.normal(size=(5, 4)))
    path = tmp_path_factory.mktemp("data") / "table.npz"
    np.savez(path, features=features, labels=shares / shares.sum(1, keepdims=True))
    return path


@pytest.mark.parametrize("path", sorted(SNIPPETS.glob("*.py")), ids=lambda path: path.stem)
def test_at_most_40_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 40


HEADS = [
    ("proportional_odds", "ProportionalOdds"),
    ("expectation", "Expectation"),
    ("partial_least_squares", "PartialLeastSquares"),
]


@pytest.mark.parametrize("file, head", [*HEADS, ("prototypes", "Prototypes")])
def test_head_keeps_the_contract(file: str, head: str) -> None:
    check_head(example(file, head))


@pytest.mark.slow
@pytest.mark.parametrize("file, head", HEADS)
def test_head(file: str, head: str, table: Path, tmp_path: Path) -> None:
    data = ["--data", "TabularLDL", f"--data.path={table}", "--data.folds=3", "--data.val_fraction=0"]
    results = run(tmp_path, "--model.head", head, *data, "--data.label_values=[1, 2, 3, 4]")
    assert results["head"] == head and 0 <= results["mean"]["kl"] < 2


def test_one_label_has_no_threshold() -> None:
    with pytest.raises(LDLError, match="ProportionalOdds needs ordinal labels, two at least, not 1 ordinal; use"):
        example("proportional_odds", "ProportionalOdds")().build(3, LabelSpace.ordinal([1]))


@pytest.mark.slow
def test_measure(table: Path, tmp_path: Path) -> None:
    data = ["--data", "TabularLDL", f"--data.path={table}", "--data.folds=3"]
    results = run(tmp_path / "values", "--model.head=MeanPredictor", *data, "--data.label_values=[1, 2, 3, 4]")
    assert 0 <= results["mean"]["agreement"] <= 1 and 0 < results["mean"]["log_error"] < 2
    results = run(tmp_path / "names", "--model.head=MeanPredictor", *data)
    assert "agreement" in results["mean"] and "log_error" not in results["mean"]


@pytest.mark.slow
def test_data_set(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = ["path,calm,happy,sad"]
    for number in range(12):
        colour = rng.integers(3)
        Image.new("RGB", (20, 16), tuple(255 if k == colour else number for k in range(3))).save(
            tmp_path / f"{number}.png"
        )
        lines.append(",".join([f"{number}.png", *(str(1 + 8 * (k == colour)) for k in range(3))]))
    (tmp_path / "votes.csv").write_text("\n".join(lines))
    options = ["--data=VotedPictures", f"--data.path={tmp_path / 'votes.csv'}", "--data.side=8", "--data.folds=3"]
    backbone = ["--model.backbone=Identity", "--model.backbone.flatten=true"]
    results = run(tmp_path / "run", "--model.head=Softmax", *backbone, *options)
    assert (results["data"], results["folds"][0]["n_test"]) == ("VotedPictures", 4)
    neighbour = run(tmp_path / "neighbour", "--model.head=AAKNN", "--model.head.neighbours=1", *backbone, *options)
    assert neighbour["mean"]["agreement"] == 1
    assert "0.png" in (tmp_path / "run" / "predictions.csv").read_text() + "".join(lines)


PIXELS = ["--model.backbone=Neighbourhood", "--model.head=Prototypes", "--model.head.count=4"]


@pytest.mark.slow
def test_pixels_of_the_layout_of_bsds(tmp_path: Path) -> None:
    data = [
        "--data=BSDS500",
        f"--data.path={edge_images.bsds(tmp_path / 'edges')}",
        "--data.crop=32",
        "--data.batch_size=2",
    ]
    results = run(tmp_path / "run", *PIXELS, *data)
    assert {"ods", "ois", "ap", "r50", "kl"} <= set(results["mean"])


@pytest.mark.slow
def test_pixels_of_another_dense_set(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for kind in ("images", "masks"):
        (tmp_path / kind).mkdir()
    for number in (*range(1, 9), 10):  # 1 begins the name of 10, too
        classes = np.repeat(rng.integers(3, size=(3, 4)), 4, axis=1).repeat(4, axis=0).astype(np.uint8)
        Image.fromarray((np.eye(3)[classes] * 255).astype(np.uint8)).save(tmp_path / f"images/{number}.png")
        for annotator in range(2):
            Image.fromarray(classes).save(tmp_path / f"masks/{number}_{annotator}.png")
    data = ["--data=SortedPixels", f"--data.path={tmp_path}", "--data.classes=[red, green, blue]", "--data.folds=3"]
    learning = ["--model.optimizer=Adam", "--model.optimizer.lr=0.1", "--data.batch_size=2"]
    results = run(tmp_path / "run", *PIXELS, *data, *learning, "--trainer.max_epochs=10")
    assert results["mean"]["kl"] < 0.5 and results["mean"]["agreement"] > 0.8
    table = (tmp_path / "run" / "predictions.csv").read_text().splitlines()
    assert len(table) == 1 + results["folds"][0]["n_test"] and "[" not in table[1]
    shares = example("sorted_pixels", "SortedPixels")(path=str(tmp_path), classes=["red", "green", "blue"]).load()
    assert set(shares.columns["target"].unique().tolist()) == {0.0, 1.0}  # the annotators of a picture agree
