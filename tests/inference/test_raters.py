"""Predictions for raters: by name, by features, and by a column of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import pytorch_lightning as pl
import torch
from fakes.processes import run_here
from fakes.rated_items import LABELS, ORDERED, biased, rate, write_items

from ldl.errors import LDLError
from ldl.heads import Softmax
from ldl.inference import Predictor
from ldl.inference.data import TableFile
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal
from ldl.raters import RaterTable
from ldl.raters.table import FeatureEncoding
from ldl.task import Task

X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
NAMES = ["Ann", "7", "Cy"]


def predictor(kind: str = "bias", labels: LabelSpace = LABELS, described: bool = False, **options: Any) -> Predictor:
    """A predictor with random weights, of three raters."""
    table = RaterTable(NAMES, np.array([3, 2, 4]))
    if described:
        frame = pd.DataFrame({"age": [20.0, 30.0, 50.0], "gender": ["f", "m", "f"]})
        encoding = FeatureEncoding.fit(frame, np.arange(3))
        table = RaterTable(NAMES, table.votes, encoding.transform(frame), encoding)
    pl.seed_everything(0, verbose=False)
    task = Task(Softmax(), raters=kind, **options)  # type: ignore[arg-type]
    task.build(labels, (3,), raters=table)
    task.preprocessing = {"scaling": {"kind": "none", "clip": None}, "features": list("xyz")}
    assert task.raters is not None
    for parameter in task.raters.parameters():
        parameter.data = torch.randn(parameter.shape)
    return Predictor(task, batch_size=2)


def expected(model: Predictor, *raters: int, features: torch.Tensor | None = None) -> np.ndarray:
    assert model.task.raters is not None
    with torch.no_grad():
        p = model.task.head(torch.from_numpy(X))
        return model.task.raters.distribution_of(p, torch.tensor(raters), features).numpy()


@pytest.mark.parametrize(("kind", "labels"), [("bias", LABELS), ("confusion", LABELS), ("bias", ORDERED)])
def test_one_rater_is_that_of_the_model_of_raters(kind: str, labels: LabelSpace) -> None:
    model = predictor(kind, labels)
    found = model.predict(X, rater="Cy")
    np.testing.assert_allclose(found.distribution, expected(model, *[2] * 5), atol=1e-6)
    assert found.facts["rater"].tolist() == ["Cy"] * 5
    if labels.kind == "ordinal":
        values = labels.decode(torch.tensor(found.distribution), model.task.decoder)
        np.testing.assert_allclose(found.value, values, atol=1e-5)
    population = model.predict(X)
    assert "rater" not in population.facts and np.abs(population.distribution - found.distribution).max() > 0.01


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
def test_a_rater_for_each_row(kind: Any) -> None:
    model = predictor()
    found = model.predict(X, rater=kind(["Ann", "Cy", "7", "7", "Ann"]))
    np.testing.assert_allclose(found.distribution, expected(model, 0, 2, 1, 1, 0), atol=1e-6)
    np.testing.assert_allclose(model.predict(X, rater=7).distribution, expected(model, *[1] * 5), atol=1e-6)


def test_features_of_an_unknown_rater() -> None:
    model = predictor(described=True)
    assert model.task.raters is not None and model.task.raters.table.encoding is not None
    row = model.task.raters.table.encoding.transform(pd.DataFrame({"age": [41.0], "gender": ["m"]}))
    found = model.predict(X, rater={"gender": "m", "age": 41})
    features = torch.from_numpy(row).expand(5, -1)
    np.testing.assert_allclose(found.distribution, expected(model, *[-1] * 5, features=features), atol=1e-6)
    other = model.predict(X, rater={"gender": "f", "age": 20})
    assert np.abs(other.distribution - found.distribution).max() > 0.01 and "rater" not in found.facts
    # With the deviation that no rater has, a known rater's features give the known rater.
    model.task.raters.deviation.data.zero_()
    np.testing.assert_allclose(other.distribution, model.predict(X, rater="Ann").distribution, atol=1e-5)


def test_intervals_of_a_rater_are_those_of_the_distribution() -> None:
    model = predictor(labels=ORDERED)
    rng = np.random.default_rng(0)
    p = torch.tensor(rng.dirichlet(np.ones(4), 200), dtype=torch.float32)
    model.task.calibration = Conformal.fit(ORDERED, p.numpy(), ORDERED.decode(p.roll(1, 0)).numpy())
    population, rater = model.predict(X), model.predict(X, rater="Ann")
    assert population.calibration is not None and rater.calibration is None
    np.testing.assert_array_equal(rater.interval(), rater.interval(calibrated=False))
    with pytest.raises(LDLError, match="have no calibration; .*, and predict the population where single raters are"):
        rater.interval(calibrated=True)


ERRORS: list[tuple[bool, Any, str]] = [
    (
        False,
        "Anne",
        r"rater: the model has no rater 'Anne'; did you mean 'Ann'\?; it has the 3 raters 'Ann', '7', 'Cy'",
    ),
    (False, ["Ann", "Bo", "Ann", "Bo", "Di"], "rater: the model has no rater 'Bo', 'Di'; it has the 3 raters"),
    (False, ["Ann", "Cy"], "rater names 2 raters, and there are 5 instances; give one name, or one each"),
    (False, {"age": 30}, r"rater \{'age': 30\}: the model has no features of raters; give a name, such as 'Ann', or"),
    (True, {"age": 30}, "rater: no 'gender' of the rater; give all of 'age', 'gender', None where unknown"),
    (True, {"ages": 30, "gender": "f"}, r"no feature 'ages' of raters; did you mean 'age'\?; it has 'age', 'gender'"),
    (True, {"age": "old", "gender": "f"}, "rater: column 'age'"),
]


@pytest.mark.parametrize(("described", "rater", "message"), ERRORS)
def test_raters_who_cannot_be_predicted_are_one_line(described: bool, rater: Any, message: str) -> None:
    with pytest.raises(LDLError, match=message) as caught:
        predictor(described=described).predict(X, rater=rater)
    assert "\n" not in str(caught.value)


def test_a_model_without_raters() -> None:
    task = Task(Softmax())
    task.build(LABELS, (3,))
    task.preprocessing = {"scaling": {"kind": "none", "clip": None}}
    with pytest.raises(LDLError, match="rater 'Ann': the model has no raters; leave rater out, or train with --model"):
        Predictor(task).predict(X, rater="Ann")


def table_file(folder: Path, text: str, name: str = "new.csv", **options: Any) -> TableFile:
    (folder / name).write_text(text)
    data = TableFile(path=str(folder / name), **options)
    state = {"features": list("xyz"), "key": None, "scaling": {"kind": "none", "clip": None}}
    data.follow(LABELS, (3,), state)
    data.setup()
    return data


ROWS = "x,y,z,worker,who\n1,2,3,Cy,Ann\n4,5,6,7,Cy\n"


def test_a_column_of_raters_in_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, numbers in (({}, [2, 1]), ({"rater_column": "who"}, [0, 2]), ({"rater_column": "none"}, None)):
        data = table_file(tmp_path, ROWS, **options)
        for _ in range(2):
            data.serve_votes(NAMES)
        assert numbers == (data.columns["as_rater"].tolist() if numbers else None)
        assert ("as_rater" in data.columns) == ("rater" in data.facts) == (numbers is not None)
        lines = capsys.readouterr().out.splitlines()
        assert len([line for line in lines if "predictions are of the raters in column" in line]) == bool(numbers)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (ROWS.replace("Cy", "Bo"), {}, "column 'worker': the model has no rater 'Bo'; .* --data.rater_column none pre"),
        (ROWS.replace("Cy", " "), {}, "column 'worker'.*which names no rater; --data.rater_column none predicts"),
        (ROWS, {"rater_column": "wo"}, "new.csv has no column 'wo'"),
    ],
)  # fmt: skip
def test_a_column_of_raters_that_does_not_fit_is_one_line(
    text: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    data = table_file(tmp_path, text, **options)
    with pytest.raises(LDLError, match=message) as caught:
        data.serve_votes(NAMES)
    assert "\n" not in str(caught.value)


def test_a_named_column_of_raters_needs_a_model_of_raters(tmp_path: Path) -> None:
    assert len(table_file(tmp_path, ROWS).predict_dataloader()) == 1
    with pytest.raises(LDLError, match="data.rater_column 'who': the model has no raters; leave it out, or train"):
        table_file(tmp_path, ROWS, rater_column="who").predict_dataloader()


@pytest.mark.usefixtures("pixel_charts")
def test_a_run_predicts_the_raters_of_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_items(rate(biased(np.random.default_rng(0).normal(size=(6, 3))), items=60), tmp_path)
    usual = ["--trainer.accelerator", "cpu", "--trainer.enable_progress_bar", "false", "--wandb.mode", "disabled"]
    learned = ["-c", "tabular", "--data.path", "items.csv", "--data.votes", "votes.csv", "--data.folds", "4"]
    model = [
        "--model.head",
        "Softmax",
        "--model.raters",
        "bias",
        "--trainer.max_epochs",
        "2",
        "--data.val_fraction",
        "0.3",
    ]
    run_here([*learned, *model, *usual, "--run_dir", "run"], tmp_path)
    checkpoint = tmp_path / "run" / "checkpoints" / "last.ckpt"
    table = pd.read_csv(tmp_path / "items.csv").head(6).assign(rater=[f"r{number}" for number in range(6)])
    table.to_csv(tmp_path / "new.csv", index=False)
    predicts = ["--stage", "predict", "--ckpt_path", str(checkpoint), "--data.path", "new.csv", "--run_dir", "new"]
    run_here([*predicts, *usual], tmp_path)
    written = pd.read_csv(tmp_path / "new" / "predictions.csv")
    assert written["rater"].tolist() == table["rater"].tolist()
    model_of_run = Predictor.from_checkpoint(checkpoint)
    found = model_of_run.predict(table.drop(columns="rater"), rater=table["rater"])
    np.testing.assert_allclose(written.filter(like="prediction:"), found.distribution, atol=1e-6)
    assert model_of_run.task.calibration is not None
    assert not written.filter(like="set_").size  # sets are calibrated, and these raters are not
