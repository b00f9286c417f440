"""``Task.conformal``: calibrated intervals and sets from the validation part, which checkpoints keep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from checkpoints.make import sgd

from ldl.backbones.base import Identity
from ldl.collective import Collective
from ldl.command import main
from ldl.data import RotatedDigits, TabularLDL, TabularValues
from ldl.errors import LDLError
from ldl.heads import MaxEnt, MeanPredictor, Softmax, StructRF
from ldl.inference import Predictor
from ldl.jobs.crossval import crossvalidate
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal
from ldl.methods.rows import Rows
from ldl.methods.temperature import temper
from ldl.protocols import with_validation
from ldl.reports.rows import tabulate
from ldl.task import Task
from ldl.validation.checkpoint import CALIBRATION_KEY


def trainer(folder: Path, **options: Any) -> pl.Trainer:
    plain = {"max_epochs": 2, "accelerator": "cpu", "logger": False, "enable_checkpointing": False}
    plain |= {"enable_progress_bar": False, "enable_model_summary": False, "use_distributed_sampler": False}
    return pl.Trainer(default_root_dir=folder, **(plain | options))


@pytest.fixture
def ages(tmp_path: Path) -> Path:
    """A table of 300 rows of 60 persons."""
    rng = np.random.default_rng(0)
    person = np.arange(300) // 5
    features = rng.normal(size=(300, 4))
    age = (30 + 5 * features[:, 0] + 2 * rng.normal(size=60)[person]).clip(10, 50)
    np.savez(tmp_path / "ages.npz", features=features, age=age, person=person)
    return tmp_path / "ages.npz"


@pytest.fixture
def names(tmp_path: Path) -> Path:
    """A table of 300 rows and three labels without values."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 4))
    target = np.exp(features @ rng.normal(size=(4, 3)) + rng.normal(size=(300, 3)))
    np.savez(tmp_path / "names.npz", features=features, labels=target / target.sum(1, keepdims=True))
    return tmp_path / "names.npz"


def table(path: Path, **options: Any) -> TabularValues:
    return TabularValues(path=str(path), group_key="person", step=1.0, sigma=2.0, val_fraction=0.3, **options)


def fitted(folder: Path, data: Any, head: Any = None, **options: Any) -> tuple[pl.Trainer, Task]:
    torch.manual_seed(0)
    run, task = trainer(folder), Task(head or Softmax(), Identity(), sgd, **options)
    run.fit(task, datamodule=data)
    return run, task.eval()


@torch.no_grad()
def truth(task: Task, data: Any, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions, values and persons of rows."""
    batch = next(iter(data.whole_dataloader()))
    assert len(batch["input"]) == data.size
    return task(batch["input"][rows]).numpy(), data.values[rows], data.groups[rows]


@pytest.mark.parametrize("units", ["groups", "rows"])
def test_it_is_calibrated_on_the_validation_part(tmp_path: Path, ages: Path, units: str) -> None:
    data = table(ages, batch_size=512)
    _, task = fitted(tmp_path, data, conformal=units, calibrate=True)
    prediction, value, group = truth(task, data, data.split.val)
    expected = Conformal.fit(task.labels, prediction, value, group if units == "groups" else None)
    found = task.calibration
    assert found is not None and found.units == (len(np.unique(group)) if units == "groups" else len(value))
    np.testing.assert_allclose(found.scores[0].score, expected.scores[0].score, atol=1e-5)
    np.testing.assert_allclose(found.scores[0].weight.sum(), found.units)


class Audited(TabularValues):
    """Counts its leak audits."""

    audits = 0

    @property
    def leak(self) -> float | None:
        self.audits += 1
        return super().leak


def test_persons_are_looked_for_once_a_fit(tmp_path: Path, ages: Path) -> None:
    data = Audited(path=str(ages), group_key="person", step=1.0, sigma=2.0, val_fraction=0.3)
    _, task = fitted(tmp_path, data)
    assert task.calibration is not None and data.audits == 1


def test_predictions_never_change_by_it(tmp_path: Path, ages: Path) -> None:
    data = table(ages)
    (run, task), (other, without) = fitted(tmp_path, data), fitted(tmp_path, data, conformal="none")
    assert task.calibration is not None and without.calibration is None
    (tested,), (plain,) = (
        one.test(model, datamodule=data, verbose=False) for one, model in ((run, task), (other, without))
    )
    assert {name: tested[name] for name in plain} == pytest.approx(plain, rel=0, abs=0, nan_ok=True)
    more = {f"test_interval_{what}{level}" for what in ("coverage", "width") for level in (50, 80, 90)}
    assert tested.keys() - plain.keys() == more


def test_checkpoints_keep_it_and_predictor_uses_it(tmp_path: Path, ages: Path) -> None:
    data = table(ages)
    run, task = fitted(tmp_path, data)
    run.save_checkpoint(tmp_path / "task.ckpt")
    predictor = Predictor.from_checkpoint(tmp_path / "task.ckpt")
    rows = np.load(ages)["features"][data.split.test]
    found = predictor.predict(rows)
    assert task.calibration is not None
    expected = task.calibration.interval(found.distribution, 0.8)
    np.testing.assert_allclose(found.interval(0.8), expected, atol=1e-4)
    bare = found.interval(0.8, calibrated=False)
    assert not np.allclose(bare, expected, atol=0.5)
    (tested,) = run.test(task, datamodule=data, verbose=False)
    value = data.values[data.split.test]
    held = ((expected[:, 0] <= value) & (value <= expected[:, 1])).mean()
    assert tested["test_interval_coverage80"] == pytest.approx(held, abs=0.02)
    assert tested["test_interval_width80"] == pytest.approx(np.diff(expected).mean(), rel=1e-3)
    task.calibration = None
    (again,) = run.test(task, datamodule=data, ckpt_path=tmp_path / "task.ckpt", weights_only=True, verbose=False)
    assert again == pytest.approx(tested, nan_ok=True)


def test_nominal_labels_have_sets(tmp_path: Path, names: Path) -> None:
    data = TabularLDL(path=str(names), val_fraction=0.3)
    run, task = fitted(tmp_path, data, MaxEnt(l2=0.1))
    (tested,) = run.test(task, datamodule=data, verbose=False)
    assert 0.7 < tested["test_set_coverage80"] < 0.98 and 1 <= tested["test_set_size80"] < 3
    found = Predictor(task).predict(np.load(names)["features"])
    assert found.label_set(0.8).shape == (300, 3) and found.label_set(0.8).any(1).all()
    assert (found.label_set(0.5, calibrated=False).sum(1) <= found.label_set(0.9, calibrated=False).sum(1)).all()
    with pytest.raises(LDLError, match="take label_set"):
        found.interval(0.8)


def test_predictions_csv_has_calibrated_intervals_and_sets(tmp_path: Path, ages: Path, names: Path) -> None:
    for data in (table(ages), TabularLDL(path=str(names), val_fraction=0.3)):
        _, task = fitted(tmp_path, data, MaxEnt(l2=0.1))
        assert task.calibration is not None
        prediction = np.random.default_rng(0).dirichlet(np.ones(len(task.labels)), 3).astype(np.float32)
        rows = {"index": np.arange(3), "prediction": prediction}
        rows |= {"predicted_value": np.arange(3.0)} if task.labels.has_values else {}
        columns = tabulate(rows, task.labels, levels=(80,), calibration=task.calibration)
        if task.labels.has_values:
            ends = np.stack([columns["lower_80"], columns["upper_80"]], 1)
            np.testing.assert_allclose(ends, task.calibration.interval(prediction, 0.8), atol=1e-5)
        else:
            held = [set(text.split("|")) for text in columns["set_80"]]
            sets = task.calibration.label_set(prediction, 0.8)
            assert held == [{name for name, own in zip(task.labels.names, row) if own} for row in sets]


def test_what_was_not_validated_has_none(tmp_path: Path, ages: Path) -> None:
    data, task = table(ages), Task(Softmax(), Identity(), sgd)
    with pytest.warns(UserWarning, match="the last weights were not validated"):
        trainer(tmp_path, max_epochs=3, check_val_every_n_epoch=2).fit(task, datamodule=data)
    assert task.calibration is None
    found = Predictor(task).predict(np.load(ages)["features"])
    assert found.calibration is None and found.interval(0.8).shape == (300, 2)
    with pytest.raises(LDLError, match="these predictions have no calibration"):
        found.interval(0.8, calibrated=True)


def test_too_few_rows_are_more_of_them_at_best(tmp_path: Path, ages: Path) -> None:
    np.savez(tmp_path / "few.npz", **{name: column[:40] for name, column in np.load(ages).items() if name != "person"})
    data = TabularValues(path=str(tmp_path / "few.npz"), step=1.0, sigma=2.0, val_fraction=0.1)
    said = r"^intervals .*: too few validation rows .*, \d of the 9 .*; raise data.val_fraction$"
    with pytest.warns(UserWarning, match=said):
        fitted(tmp_path, data, MeanPredictor())


def test_too_few_persons_calibrate_nothing(tmp_path: Path, ages: Path) -> None:
    data = table(ages)
    data.val_fraction = 0.1
    with pytest.warns(UserWarning, match="too few validation groups .*, 5 of the 9 .*, or take model.conformal rows$"):
        _, task = fitted(tmp_path, data, MeanPredictor())
    assert task.calibration is None
    assert fitted(tmp_path, data, MeanPredictor(), conformal="rows")[1].calibration is not None
    with pytest.raises(LDLError, match="model.conformal 'persons' must be one of groups, rows, none"):
        fitted(tmp_path, data, conformal="persons")


def test_where_persons_are_in_both_parts_rows_count(tmp_path: Path, ages: Path) -> None:
    data = table(ages, protocol="random_kfold")
    _, task = fitted(tmp_path, data, MeanPredictor())
    assert task.calibration is not None and task.calibration.units == len(data.split.val)


@pytest.mark.parametrize(("rows", "groups"), [(500, 0), (1000, 0), (800, 100), (2000, 250)])
def test_default_calibration_has_its_level_on_fresh_rows(rows: int, groups: int, few_draws: None) -> None:
    """Over repeated draws, coverage is within two standard errors of the level, also where rows just suffice."""
    draws, fresh = 400, 250
    labels = LabelSpace.ordinal(np.arange(0, 10.5, 0.5))
    held: dict[float, list[float]] = {0.5: [], 0.8: [], 0.9: []}
    units = 0
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        features = torch.from_numpy(rng.normal(size=(rows + fresh, 3)).astype(np.float32))
        error = rng.normal(size=rows + fresh)
        # The fresh rows have groups of their own.
        group = np.arange(rows + fresh) % groups + groups * (np.arange(rows + fresh) >= rows) if groups else None
        if group is not None:
            error = (error + rng.normal(size=2 * groups)[group]) / np.sqrt(2)
        value = 10 / (1 + np.exp(-features[:, 0].numpy() - error * (1 + (features[:, 1].numpy() > 0))))
        split = with_validation(np.arange(rows), np.arange(rows, rows + fresh), None, draw, groups=group)
        head = StructRF(trees=1, depth=3, features=1.0, out_of_bag=False)
        head.build(3, labels)
        target = labels.encode(torch.tensor(value, dtype=torch.float32), 0.5)
        head.fit(Rows(features, target)[torch.from_numpy(split.train)], Collective())
        with torch.no_grad():
            prediction = head.eval()(features).double().numpy()
        known = None if group is None else group[split.val]
        calibration = Conformal.fit(labels, prediction[split.val], value[split.val], known)
        units = calibration.units
        for level, shares in held.items():
            low, high = calibration.interval(prediction[split.test], level).T
            shares.append(float(((low <= value[split.test]) & (value[split.test] <= high)).mean()))
    assert units == (groups // 10 if groups else rows // 10 - 1)
    for level, shares in held.items():
        error_of_mean = np.std(shares, ddof=1) / np.sqrt(draws)
        assert np.mean(shares) == pytest.approx(level, abs=2 * error_of_mean), level


def test_a_default_run_is_calibrated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(600, 3))
    np.savez(tmp_path / "t.npz", features=features, labels=rng.dirichlet(np.ones(4), 600))
    words = ["-c", "tabular/meanpredictor", f"--data.path={tmp_path / 't.npz'}", "--data.label_values=[1, 2, 3, 4]"]
    words += ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]
    main([*words, f"--run_dir={tmp_path / 'run'}"])
    assert "\n49 of 540 rows calibrate intervals and sets; data.val_fraction decides\n" in capsys.readouterr().out
    path = tmp_path / "run" / "checkpoints" / "last.ckpt"
    assert CALIBRATION_KEY in torch.load(path, weights_only=True)
    predictor = Predictor.from_checkpoint(path)
    found = predictor.predict(features[:5])
    assert found.calibration is not None and found.calibration.units == 49
    assert not np.allclose(found.interval(0.9), found.interval(0.9, calibrated=False))
    main(["--stage=test", *words, f"--ckpt_path={path}", f"--run_dir={tmp_path / 'again'}"])
    assert "rows calibrate" not in capsys.readouterr().out
    first, again = (json.loads((tmp_path / name / "results.json").read_text())["mean"] for name in ("run", "again"))
    assert again == pytest.approx(first) and "interval_coverage90" in first


def test_folds_of_a_default_run_are_calibrated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "t.npz", features=rng.normal(size=(1000, 3)), labels=rng.dirichlet(np.ones(4), 1000))
    words = ["-c", "tabular/meanpredictor", f"--data.path={tmp_path / 't.npz'}", "--data.folds=2", "--stage=crossval"]
    main([*words, "--trainer.enable_progress_bar=false", "--wandb.mode=disabled", f"--run_dir={tmp_path / 'run'}"])
    assert capsys.readouterr().out.count("49 of 500 rows calibrate intervals and sets") == 1
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert all("set_coverage90" in fold["metrics"] for fold in results["folds"]) and "set_coverage90" in results["mean"]


def test_folds_without_calibration_are_no_error() -> None:
    data = RotatedDigits(turns=1, folds=5)
    shares = iter((0.1, 0.0))

    def make() -> Task:
        data.val_fraction = next(shares)
        data.select_fold(data.fold)
        return Task(MeanPredictor(), Identity(flatten=True))

    options = {"accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False}
    content = crossvalidate(make, data, folds=[0, 1], trainer=options)
    first, second = (fold["metrics"] for fold in content["folds"])
    assert 0.8 < first["interval_coverage90"] <= 1 and "interval_coverage90" not in second
    assert first["interval_width50"] < first["interval_width90"] <= 240
    assert "interval_coverage90" not in content["mean"] and "interval_coverage90" not in content["pooled"]


def test_a_calibrated_temperature_comes_first(tmp_path: Path, ages: Path) -> None:
    data = table(ages, batch_size=512)
    _, task = fitted(tmp_path, data, calibrate=True, conformal="rows")
    assert task.temperature != 1 and task.calibration is not None
    warm, value, _ = truth(task, data, data.split.val)
    cold = Conformal.fit(task.labels, temper(torch.tensor(warm), 1 / task.temperature).numpy(), value)
    assert not np.allclose(task.calibration.scores[0].score, cold.scores[0].score, atol=1e-3)
