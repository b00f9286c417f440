"""``--stage predict`` with new data: every row of a table, every picture of a folder, labelled or not."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fakes import edge_images
from fakes.blank_charts import leave_out_charts
from fakes.face_releases import picture, utkface
from fakes.user_inputs import write
from PIL import Image

from ldl import charts
from ldl.command import main
from ldl.inference import Predictor
from ldl.reports.maps import read_plane

ONE_EACH = {"train": 1, "val": 1, "test": 1}
QUIET = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]
RNG = np.random.default_rng(0)
X = RNG.exponential(size=(80, 3)) * [1, 10, 100]
TABLE = pd.DataFrame(X, columns=["dose", "size", "income"])
SAID = TABLE.assign(value=np.log(X).sum(1).round(2), person=np.arange(80) // 4)


@pytest.fixture(autouse=True)
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "overview", lambda *arguments: {})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A calibrated model of values in a table whose columns have names."""
    folder = tmp_path_factory.mktemp("values")
    SAID.to_csv(folder / "train.csv", index=False)
    with pytest.MonkeyPatch.context() as patched:
        leave_out_charts(patched)
        main(
            ["-c", "configs/runs/tabular/softmax.yaml", "--data=TabularValues", f"--data.path={folder / 'train.csv'}"]
            + ["--data.val_fraction=0.2", "--model.calibrate=true", "--trainer.max_epochs=3", *QUIET]
            + [f"--run_dir={folder / 'run'}"]
        )
    return folder / "run"


def predict(checkpoint: Path, out: Path, *options: str) -> list[dict[str, str]]:
    main(["--stage=predict", f"--ckpt_path={checkpoint}", *options, *QUIET, f"--run_dir={out}"])
    with (out / "predictions.csv").open() as stream:
        return list(csv.DictReader(stream))


def column(rows: list[dict[str, str]], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows])


def test_every_row_of_a_labelled_table(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its columns stand in another order; the prediction is repeated from its own configuration."""
    SAID[:25][["person", "income", "value", "dose", "size"]].to_csv(tmp_path / "new.csv", index=False)
    checkpoint = run / "checkpoints" / "last.ckpt"
    rows = predict(checkpoint, tmp_path / "out", f"--data.path={tmp_path / 'new.csv'}")
    assert capsys.readouterr().out.splitlines()[-1] == f"25 predictions: {tmp_path / 'out' / 'predictions.csv'}"
    assert [row["index"] for row in rows] == [str(number) for number in range(25)]
    predictor = Predictor.from_checkpoint(checkpoint)
    assert predictor.task.temperature != 1
    found = predictor(X[:25])
    assert found.value is not None and found.std is not None
    for name, share in zip(found.labels.names, found.distribution.T):
        np.testing.assert_allclose(column(rows, f"prediction:{name}"), share, atol=1e-6)
    np.testing.assert_allclose(column(rows, "predicted_value"), found.value, rtol=1e-6)
    np.testing.assert_allclose(column(rows, "value_std"), found.std, rtol=1e-6)
    for level in (50, 80, 90):
        ends = np.stack([column(rows, f"{end}_{level}") for end in ("lower", "upper")], 1)
        np.testing.assert_allclose(ends, found.interval(level / 100), rtol=1e-6)
    again = ["-c", str(tmp_path / "out" / "config.yaml"), f"--run_dir={tmp_path / 'again'}"]
    main(again)
    assert (tmp_path / "again/predictions.csv").read_bytes() == (tmp_path / "out/predictions.csv").read_bytes()


def test_an_unlabelled_table_and_a_checkpoint_alone(run: Path, tmp_path: Path) -> None:
    (tmp_path / "alone.ckpt").write_bytes((run / "checkpoints" / "last.ckpt").read_bytes())
    TABLE.to_parquet(tmp_path / "new.parquet")
    rows = predict(tmp_path / "alone.ckpt", tmp_path / "out", f"--data.path={tmp_path / 'new.parquet'}")
    with (run / "predictions.csv").open() as stream:
        tested = list(csv.DictReader(stream))
    assert len(rows) == 80 and len(tested) < 20
    for row in tested:
        same = rows[int(row["index"])]
        for name in (name for name in row if name.startswith("predict")):
            assert float(same[name]) == pytest.approx(float(row[name]), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("limit", "count"), [("1", 3), ("1.0", 8)])
def test_what_a_limit_leaves_out_does_not_count(
    limit: str, count: int, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["-c", str(run / "config.yaml"), f"--ckpt_path={run / 'checkpoints' / 'last.ckpt'}", *QUIET]
    for stage in ("test", "predict"):
        options = [f"--stage={stage}", f"--trainer.limit_{stage}_batches={limit}", "--data.batch_size=3"]
        main([*given, *options, f"--run_dir={tmp_path / stage}"])
        with (tmp_path / stage / "predictions.csv").open() as stream:
            assert len(list(csv.DictReader(stream))) == count
    said = capsys.readouterr().out
    assert f"\n{count} test instances; " in said and f"\n{count} predictions: " in said
    assert json.loads((tmp_path / "test" / "results.json").read_text())["folds"][0]["n_test"] == count
    assert f"On {count} test instances." in (tmp_path / "test" / "model_card.md").read_text()


@pytest.mark.parametrize(
    ("frame", "options", "words"),
    [
        (TABLE.drop(columns="size"), [], "no column 'size', which the model was trained on; there are 'dose'"),
        (TABLE.assign(size=TABLE["size"].where(X[:, 0] < 1)), [], "Softmax takes no missing features"),
        (TABLE, ["--data=PictureFolder"], "the checkpoint was not trained on images"),
    ],
)  # fmt: skip
def test_other_tables_are_refused(
    frame: pd.DataFrame, options: list[str], words: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame.to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(SystemExit):
        predict(run / "checkpoints/last.ckpt", tmp_path / "out", *options, f"--data.path={tmp_path / 'new.csv'}")
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_item_names_a_row(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A usual name whose entries differ, or the column that is given."""
    new = TABLE[:4].assign(task=["a", "a", "b", "b"], id=[4, 2, 7, 5], title=list("wxyz"))
    new.to_csv(tmp_path / "new.csv", index=False)
    checkpoint, path = run / "checkpoints" / "last.ckpt", f"--data.path={tmp_path / 'new.csv'}"
    assert [row["name"] for row in predict(checkpoint, tmp_path / "one", path)] == ["4", "2", "7", "5"]
    more = ["--data=TableFile", path, "--data.item_column=title"]
    assert [row["name"] for row in predict(checkpoint, tmp_path / "two", *more)] == list("wxyz")
    new.drop(columns="id").to_csv(tmp_path / "new.csv", index=False)
    assert "name" not in predict(checkpoint, tmp_path / "three", path)[0]
    with pytest.raises(SystemExit):
        predict(checkpoint, tmp_path / "four", "--data=TableFile", path, "--data.item_column=titel")
    assert "has no column 'titel'; did you mean 'title'?" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "stage"), [("TableFile", "test"), ("PictureFolder", "fit")])
def test_what_has_no_labels_is_predicted_only(
    name: str, stage: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["-c", "configs/runs/tabular/softmax.yaml", f"--stage={stage}", f"--run_dir={tmp_path / 'out'}", *QUIET]
    options += [f"--ckpt_path={run / 'checkpoints' / 'last.ckpt'}"] if stage == "test" else []
    with pytest.raises(SystemExit):
        main([*options, f"--data={name}", f"--data.path={run.parent / 'train.csv'}"])
    assert f"{name} has no labels to train on or test with; use it with --stage predict" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_bags(tmp_path: Path) -> None:
    table = [[f"{bag % 2}", f"b{bag}", *RNG.normal(bag % 2, 1, 2)] for bag in range(20) for _ in range(2 + bag % 3)]
    data = write(tmp_path / "bags.csv", ["label", "bag", "x", "y"], table)
    options = ["-c", "configs/runs/bags/softmax.yaml", f"--data.path={data}", "--data.folds=2"]
    main([*options, "--trainer.max_epochs=1", *QUIET, f"--run_dir={tmp_path / 'run'}"])
    new = write(tmp_path / "new.csv", ["y", "x", "bag"], [[y, x, bag] for _, bag, x, y in table])
    checkpoint = tmp_path / "run" / "checkpoints" / "last.ckpt"
    rows = predict(checkpoint, tmp_path / "out", f"--data.path={new}")
    assert [row["name"] for row in rows] == [f"b{bag}" for bag in range(20)]
    found = Predictor.from_checkpoint(checkpoint)(new)
    np.testing.assert_allclose(column(rows, "prediction:positive"), found.distribution[:, 1], atol=1e-6)
    assert "value_std" not in rows[0]


def test_a_folder_of_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    options: list[Any] = [
        "-c",
        "configs/runs/utkface/softmax.yaml",
        f"--data.root={utkface(tmp_path)}",
        "--data.crop_size=16",
    ]
    options += ["--model.backbone=Identity", "--model.backbone.flatten=true", "--trainer.max_epochs=1", *QUIET]
    main([*options, f"--run_dir={tmp_path / 'run'}"])
    for number in range(3):
        picture(tmp_path / "new" / f"{number}.jpg", 25 * number, 1)
    checkpoint = tmp_path / "run" / "checkpoints" / "last.ckpt"
    rows = predict(checkpoint, tmp_path / "out", f"--data.path={tmp_path / 'new'}")
    found = Predictor.from_checkpoint(checkpoint)(tmp_path / "new")
    assert [row["name"] for row in rows] == found.names == ["0.jpg", "1.jpg", "2.jpg"]
    (alone,) = predict(checkpoint, tmp_path / "one", f"--data.path={tmp_path / 'new' / '2.jpg'}")
    assert alone["name"] == "2.jpg" and alone["predicted_value"] == rows[2]["predicted_value"]
    assert found.value is not None
    np.testing.assert_allclose(column(rows, "predicted_value"), found.value, rtol=1e-5)
    np.testing.assert_allclose(column(rows, "upper_90"), found.interval()[:, 1], rtol=1e-5)


@pytest.mark.slow
def test_edges_of_pictures_of_any_size(tmp_path: Path) -> None:
    options = [
        "-c",
        "configs/runs/bsds/structured.yaml",
        f"--data.path={edge_images.bsds(tmp_path / 'bsds', ONE_EACH)}",
    ]
    options += ["--data.crop=32", "--model.head.trees=2", "--model.head.patches=200", "--model.head.votes=1", *QUIET]
    main([*options, f"--run_dir={tmp_path / 'run'}"])
    (tmp_path / "new").mkdir()
    for name, shape in (("a.png", (40, 56)), ("b.jpg", (56, 48))):
        Image.fromarray(RNG.integers(256, size=(*shape, 3)).astype(np.uint8)).save(tmp_path / "new" / name)
    checkpoint = tmp_path / "run" / "checkpoints" / "last.ckpt"
    rows = predict(checkpoint, tmp_path / "out", f"--data.path={tmp_path / 'new'}")
    assert [row["name"] for row in rows] == ["a.png", "b.jpg"]
    predictor = Predictor.from_checkpoint(checkpoint)
    for row in rows:
        found = predictor(tmp_path / "new" / row["name"])
        strength = read_plane(tmp_path / "out" / row["map"], predictor.labels)
        np.testing.assert_allclose(strength, found.distribution[0, ..., 1], atol=0.51 / 255)
