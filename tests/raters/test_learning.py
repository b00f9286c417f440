"""A task with a model of raters: training, resuming, several processes, checkpoints, predictions and errors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import pytorch_lightning as pl
import torch
from fakes.forks import Ranks
from fakes.image_votes import voted
from fakes.rated_items import LABELS, assert_same, biased, made_trainer, rate, write_items

from ldl.annotations import SingleVotes
from ldl.backbones.base import Identity
from ldl.bags import Bagged
from ldl.callbacks import MovingAverage
from ldl.checkpoint import CHECKPOINT_KEY
from ldl.data import ImageLDL, RotatedDigits, TabularLDL
from ldl.deploy.export import export
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import LDLF, Softmax, StructRF
from ldl.inference import Predictor
from ldl.jobs.identity import content_digest
from ldl.raters import RaterTable
from ldl.raters.columns import vote_columns
from ldl.schedule import RATER_LR
from ldl.task import Task

BIAS = np.random.default_rng(0).normal(size=(8, 3))
HEADS: dict[str, Callable[[], Head]] = {
    "softmax": lambda: Softmax(hidden=[4], dropout=0.2),
    "ldlf": lambda: LDLF(trees=3, depth=3, outputs=None, batches=4),
}


def made_data(folder: Path, **options: Any) -> Any:
    """Sixty items that eight raters have rated, in files."""
    return write_items(rate(biased(BIAS), items=60), folder, **options)


def made_task(head: str = "softmax", kind: str = "bias", **options: Any) -> Task:
    pl.seed_everything(0, verbose=False)
    return Task(HEADS[head](), optimizer=lambda groups: torch.optim.SGD(groups, lr=0.1), raters=kind, **options)


def fitted(folder: Path, epochs: int = 2, data: Any = None, task: Task | None = None, **options: Any) -> Task:
    """A task after a fit, whose checkpoint is ``folder / "last.ckpt"``."""
    task, trainer = task or made_task(), made_trainer(epochs, **options)
    trainer.fit(task, datamodule=data or made_data(folder))
    trainer.save_checkpoint(folder / "last.ckpt")
    return task


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("kind", ["bias", "confusion"])
def test_a_resumed_run_ends_as_the_whole_one(head: str, kind: str, tmp_path: Path) -> None:
    for name in ("whole", "part"):
        (tmp_path / name).mkdir()
    data = made_data(tmp_path)
    fitted(tmp_path / "whole", 4, copy.copy(data), made_task(head, kind))
    fitted(tmp_path / "part", 2, copy.copy(data), made_task(head, kind))
    trainer = made_trainer(4)
    trainer.fit(made_task(head, kind), datamodule=copy.copy(data), ckpt_path=tmp_path / "part" / "last.ckpt")
    trainer.save_checkpoint(tmp_path / "resumed.ckpt")
    assert_same(tmp_path / "whole" / "last.ckpt", tmp_path / "resumed.ckpt")


@pytest.mark.slow
@pytest.mark.parametrize(("head", "kind"), [("softmax", "bias"), ("ldlf", "confusion"), ("ldlf", "bias")])
def test_two_processes_equal_one(head: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """34 training rows in batches of 11: shares of the processes are uneven, and the last batch has one row."""
    monkeypatch.setitem(HEADS, "softmax", lambda: Softmax(hidden=[4]))  # dropout differs between processes
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    # Written before the processes start, which would read what another one writes.
    data, two = made_data(tmp_path / "one", batch_size=11), {"devices": 2, "strategy": "ddp"}
    ranks = Ranks(lambda: fitted(tmp_path / "two", 3, data, made_task(head, kind), **two), tmp_path / "log.txt")
    fitted(tmp_path / "one", 3, data, made_task(head, kind))
    assert len(data.split.train) % 11 == 1 and len(data.split.val) > 5
    assert ranks.wait() == 0, (tmp_path / "log.txt").read_text()[-3000:]
    assert ranks.end(), "processes stayed"
    assert_same(tmp_path / "one" / "last.ckpt", tmp_path / "two" / "last.ckpt", 1e-6)


@pytest.mark.parametrize("kind", ["bias", "confusion"])
def test_a_checkpoint_holds_the_model_of_raters(kind: str, tmp_path: Path) -> None:
    task = fitted(tmp_path, task=made_task(kind=kind), precision="32-true").eval()
    assert task.raters is not None
    task.raters.chosen = 1
    made = made_trainer(1, precision="32-true")
    made.strategy.connect(task)
    made.save_checkpoint(tmp_path / "last.ckpt")
    other = Task.load_from_checkpoint(tmp_path / "last.ckpt")
    assert other.raters is not None
    assert other.raters.state() == task.raters.state() and other.raters.chosen == 1
    inputs, p = torch.randn(5, 3), torch.randn(5, 3).softmax(-1)
    torch.testing.assert_close(other(inputs), task(inputs), rtol=0, atol=0)
    for rater in (-1, 3):
        numbers = torch.full((5,), rater)
        expected = task.raters.distribution_of(p, numbers)
        torch.testing.assert_close(other.raters.distribution_of(p, numbers), expected, rtol=0, atol=0)


def test_a_checkpoint_without_raters_loads(tmp_path: Path) -> None:
    fitted(tmp_path, task=made_task(kind="none"))
    checkpoint = torch.load(tmp_path / "last.ckpt", weights_only=True)
    assert checkpoint[CHECKPOINT_KEY].pop("raters") is None  # as before there were any
    torch.save(checkpoint, tmp_path / "old.ckpt")
    assert Task.load_from_checkpoint(tmp_path / "old.ckpt").raters is None
    made_trainer(3).fit(made_task(kind="none"), datamodule=made_data(tmp_path), ckpt_path=tmp_path / "old.ckpt")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("kind", "vector", "ldl.raters.kind is vector, not bias or confusion"),
        ("shrinkage", [], "ldl.raters.shrinkage is [], not a list of numbers above 0"),
        ("chosen", 5, "ldl.raters.chosen is 5, and there are 5 strengths"),
        ("names", ["r0", "r0"], "ldl.raters.names is not a list of distinct texts"),
        ("votes", [1], "ldl.raters.votes is not a list of 8 counts"),
        ("features", {"columns": []}, "ldl.raters.features lacks an entry, or has an unknown one"),
    ],
)
def test_a_damaged_checkpoint_is_one_line(name: str, value: Any, message: str, tmp_path: Path) -> None:
    fitted(tmp_path, 1)
    checkpoint = torch.load(tmp_path / "last.ckpt", weights_only=True)
    checkpoint[CHECKPOINT_KEY]["raters"][name] = value
    torch.save(checkpoint, tmp_path / "bad.ckpt")
    with pytest.raises(LDLError) as caught:
        Task.load_from_checkpoint(tmp_path / "bad.ckpt")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (lambda: made_task(kind="none"), "the checkpoint has model.raters bias, not none; resume with the same"),
        (lambda: made_task(kind="confusion"), "the checkpoint has model.raters bias, not confusion"),
        (lambda: made_task(rater_shrinkage=2.0), "the checkpoint's model of raters has other shrinkage"),
    ],
)
def test_a_run_resumes_with_its_own_model_of_raters(task: Callable[[], Task], message: str, tmp_path: Path) -> None:
    fitted(tmp_path, 1)
    with pytest.raises(LDLError, match=message):
        made_trainer(2).fit(task(), datamodule=made_data(tmp_path), ckpt_path=tmp_path / "last.ckpt")


def test_predictions_are_of_the_population_or_of_a_rater(tmp_path: Path) -> None:
    task = fitted(tmp_path, precision="32-true").eval()
    inputs = torch.randn(4, 3)
    batch = {"input": inputs, "index": torch.arange(4), "weight": torch.ones(4)}
    assert task.raters is not None
    with torch.no_grad():
        p = task.head(inputs)
        torch.testing.assert_close(task.predict_step(batch, 0)["prediction"], task.raters.population(p))
        torch.testing.assert_close(task(inputs), task.raters.population(p))
        rater = torch.tensor([0, 1, -1, 7])
        predicted = task.predict_step({**batch, "as_rater": rater}, 0)["prediction"]
        torch.testing.assert_close(predicted, task.raters.distribution_of(p, rater))
    assert (predicted - task.raters.population(p)).abs().max() > 1e-3


@pytest.mark.slow
def test_predictor_and_onnx_give_the_population(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    fitted(tmp_path, precision="32-true")
    done = export(tmp_path / "last.ckpt", tmp_path / "model.onnx")
    assert done.parity is not None and done.parity.largest < 1e-5 and done.parity.apart == 0
    predicted = Predictor.from_checkpoint(tmp_path / "last.ckpt")(pd.read_csv(tmp_path / "items.csv")).distribution
    np.testing.assert_allclose(predicted.sum(1), 1, atol=1e-5)


def test_validation_chooses_and_metrics_are_of_the_population(tmp_path: Path) -> None:
    data, task = made_data(tmp_path), made_task()
    trainer = made_trainer(3)
    trainer.fit(task, datamodule=data)
    assert task.raters is not None and task.raters._has_chosen
    measured = trainer.test(task, datamodule=data, verbose=False)[0]
    rows = data.split.test
    with torch.no_grad():
        prediction = task.eval()(data.inputs(rows, rows, False).double())
    target = data.columns["target"][rows].double()
    expected = (torch.xlogy(target, target) - target * prediction.log()).sum(1).mean()
    assert measured["test_kl"] == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("option", [{"val_fraction": 0.0}, {"val_fraction": 0.25}])
def test_without_validation_a_warning_names_the_strength(option: dict[str, float], tmp_path: Path) -> None:
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted(tmp_path, 1, made_data(tmp_path, **option))
    named = any(
        "there were no validation votes to choose a strength by, and 3 is taken" in str(w.message) for w in caught
    )
    assert named == (option["val_fraction"] == 0)


def test_an_average_of_weights_keeps_the_choice(tmp_path: Path) -> None:
    task = fitted(tmp_path, 2, callbacks=[MovingAverage(0.5)])
    assert task.raters is not None
    checkpoint = torch.load(tmp_path / "last.ckpt", weights_only=True)
    assert checkpoint[CHECKPOINT_KEY]["raters"]["chosen"] == task.raters.chosen


def test_raters_are_a_group_of_the_optimiser() -> None:
    task = Task(Softmax(), optimizer=lambda groups: torch.optim.AdamW(groups, lr=0.01), raters="bias")
    task.build(LABELS, (3,), raters=RaterTable(["a", "b"], np.array([1, 2])))
    assert task.raters is not None
    rest, raters = task.configure_optimizers().param_groups
    assert raters["weight_decay"] == 0 < rest["weight_decay"] and raters["lr"] == RATER_LR > rest["lr"] == 0.01
    assert {id(parameter) for parameter in raters["params"]} == {id(each) for each in task.raters.parameters()}


def test_images_have_raters_too(tmp_path: Path) -> None:
    voted(tmp_path)
    table = pd.read_csv(tmp_path / "long.csv")
    data = ImageLDL(path=str(tmp_path / "long.csv"), crop_size=16, batch_size=6, val_fraction=0.25, folds=3)
    task = Task(Softmax(), Identity(flatten=True), raters="bias")
    trainer = made_trainer(1, precision="32-true")
    trainer.fit(task, datamodule=data)
    assert task.raters is not None and len(task.raters.names) <= table.iloc[:, 1].nunique()
    batch = next(iter(data.train_dataloader()))
    shares = torch.stack([(batch["vote"] == label).sum(1) for label in range(2)], 1) / (batch["vote"] >= 0).sum(1, True)
    torch.testing.assert_close(shares, batch["target"])


def test_votes_are_served_in_the_order_of_instances() -> None:
    single = SingleVotes(
        np.array([2, 0, 2, 2]), np.array([1, 0, 0, 2]), np.array([1, 0, 2, 1]), np.array(["x", "y", "z"], object)
    )
    columns = vote_columns(single, 4, ["z", "x"])
    assert columns["vote"][torch.arange(4)].tolist() == [[0, -1, -1], [-1, -1, -1], [1, 2, 1], [-1, -1, -1]]
    assert columns["rater"][torch.tensor([2, 1])].tolist() == [[-1, 1, 0], [-1, -1, -1]]
    assert columns["rater"][torch.tensor([1])].shape == (1, 1) and len(columns["rater"]) == 4


def test_a_digest_of_the_data_depends_on_who_voted(tmp_path: Path) -> None:
    data = made_data(tmp_path)
    data.setup()
    before = content_digest(data)
    data.serve_votes(data.rater_table.names)
    assert content_digest(data) == before
    single = data.annotations.single
    single.rater[:2] = single.rater[:2][::-1].copy()
    assert content_digest(data) != before


FEATURES = pd.DataFrame({"rater": [f"r{n}" for n in range(8)], "age": [20, 30, 40, 50] * 2, "sex": list("fmfmfmmf")})


@pytest.mark.parametrize("beside", [True, False])
def test_features_of_raters_are_read_and_kept(beside: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"rater_features": ["age", "sex"]} if beside else {"raters": str(tmp_path / "raters.csv")}
    data = made_data(tmp_path, **options)
    FEATURES.to_csv(tmp_path / "raters.csv", index=False)
    if beside:
        votes = pd.read_csv(tmp_path / "votes.csv")
        votes.merge(FEATURES).to_csv(tmp_path / "votes.csv", index=False)
    task = fitted(tmp_path, 1, data)
    table = data.rater_table
    assert table.features is not None and table.encoding is not None and task.raters is not None
    assert table.encoding.encoding.names == ["age", "sex=f", "sex=m"]
    np.testing.assert_allclose(table.features.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(table.features.std(0), 1, atol=1e-6)
    ages = FEATURES.set_index("rater")["age"].loc[table.names].to_numpy()
    assert np.corrcoef(ages, table.features[:, 0])[0, 1] == pytest.approx(1)
    loaded = Task.load_from_checkpoint(tmp_path / "last.ckpt").raters
    assert loaded is not None and loaded.features is not None
    np.testing.assert_allclose(loaded.features, table.features, atol=1e-6)
    assert loaded.state() == task.raters.state()
    new = loaded.table.encoding.transform(pd.DataFrame({"age": [30.0], "sex": ["m"]}))  # type: ignore[union-attr]
    same = FEATURES[(FEATURES["age"] == 30) & (FEATURES["sex"] == "m")]["rater"].iloc[0]
    np.testing.assert_allclose(new[0], table.features[list(table.names).index(same)], atol=1e-6)


def test_features_alone_predict_a_new_rater(tmp_path: Path) -> None:
    """Raters of one group like the first label: so does an unknown rater of this group."""
    bias = np.zeros((30, 3))
    bias[:15, 0] = 3.0
    data = write_items(rate(biased(bias), items=300), tmp_path, raters=str(tmp_path / "raters.csv"))
    described = pd.DataFrame({"rater": [f"r{n}" for n in range(30)], "kind": ["likes"] * 15 + ["dislikes"] * 15})
    described.to_csv(tmp_path / "raters.csv", index=False)
    task = fitted(tmp_path, 10, data, made_task(rater_shrinkage=8.0))
    assert task.raters is not None and task.raters.table.encoding is not None
    numbers = task.raters.table.encoding.transform(pd.DataFrame({"kind": ["likes", "dislikes"]}))
    p = torch.full((2, 3), 1 / 3, dtype=torch.float64)
    rated = task.raters.distribution_of(p, torch.tensor([-1, -1]), torch.tensor(numbers))
    assert rated[0, 0] - rated[1, 0] > 0.1


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({"rater_features": "age"}, None, "has no column 'age'"),
        ({"rater_features": "age", "rater_columns": "r*"}, "matrix", "has no column of the rater, beside which"),
        ({"rater_features": "age"}, "varies", r"raters have several entries of 'age', the first is 'r\d+' with"),
        ({"raters": "raters.csv"}, "others", "raters.csv describes none of the 8 raters, the first is"),
        ({"raters": "raters.csv"}, "unnamed", "raters.csv has no column of the rater; name it rater. It has 'age'"),
        ({"raters": "raters.json"}, "kind", "raters.json: unknown kind of file; save the raters as .csv"),
    ],
)
def test_features_of_raters_that_do_not_fit_are_one_line(
    options: dict[str, Any], change: str | None, message: str, tmp_path: Path
) -> None:
    options = {**options, **({"raters": str(tmp_path / options["raters"])} if "raters" in options else {})}
    data = made_data(tmp_path, **options)
    votes = pd.read_csv(tmp_path / "votes.csv")
    if change == "varies":
        votes.assign(age=np.arange(len(votes))).to_csv(tmp_path / "votes.csv", index=False)
    elif change == "matrix":
        votes.pivot_table("label", "item", "rater", "first").reset_index().to_csv(tmp_path / "votes.csv", index=False)
    described = FEATURES.assign(rater=[f"R-{n}" for n in range(8)])
    described.drop(columns="rater" if change == "unnamed" else "sex").to_csv(tmp_path / "raters.csv", index=False)
    (tmp_path / "raters.json").write_text("{}")
    with pytest.raises(LDLError, match=message):
        data.setup()


ERRORS: list[tuple[Callable[[Path], Any], str]] = [
    (lambda folder: Task(Softmax(), raters="vector"), "model.raters 'vector' must be one of none, bias, confusion"),  # type: ignore[arg-type]
    (lambda folder: Task(Softmax(), rater_shrinkage=2.0), "model.rater_shrinkage 2.0 shrinks a model of raters, and"),
    (lambda folder: made_task(rater_shrinkage=0.0), "model.rater_shrinkage 0.0 must be above 0"),
    (lambda folder: made_task(rater_shrinkage=[1.0, -1.0]), r"model.rater_shrinkage \[1.0, -1.0\] must be above 0"),
    (lambda folder: Task(StructRF(), raters="bias"), "model.raters bias: StructRF is fitted in one go"),
    (lambda folder: Task(Bagged(), raters="bias"), "model.raters bias: Bagged takes bags, and raters vote on single"),
    (lambda folder: made_task(mixup=0.2), "model.mixup 0.2 mixes instances, whose raters differ; set it to 0"),
    (
        lambda folder: made_task().build(LABELS, (3,)),
        "model.raters bias needs the rater of each vote, and the task has none; give",
    ),
    (
        lambda folder: fitted(folder, 1, RotatedDigits(), _of_images()),
        "model.raters bias needs the rater of each vote, and RotatedD",
    ),
    (
        lambda folder: fitted(folder, 1, made_data(folder, target="majority")),
        "model.raters learns from the votes of each rater, and data.target majority replaces them",
    ),
    (
        lambda folder: fitted(folder, 1, made_data(folder, smooth=True)),
        "model.raters learns from the votes of each rater, and data.smooth true replaces them",
    ),
    (
        lambda folder: fitted(folder, 1, task=Task(LDLF(tree_dropout=0.1), raters="bias")),
        "LDLF.tree_dropout 0.1 leaves out losses of trees, and a model of raters has losses of votes",
    ),
    (lambda folder: _of_counts(folder), "model.raters needs the rater of each vote, and raters are unknown; give one"),
    (lambda folder: _with_objective(), "Softmax.objective 'l1' compares with distributions, and a model of raters"),
]


def _of_images() -> Task:
    return Task(Softmax(), Identity(flatten=True), raters="bias")


def _of_counts(folder: Path) -> None:
    rng = np.random.default_rng(0)
    counts = pd.DataFrame(rng.integers(1, 4, (40, 3)), columns=["label:a", "label:b", "label:c"])
    counts.assign(x=rng.normal(size=40)).to_csv(folder / "counts.csv", index=False)
    fitted(folder, 1, TabularLDL(path=str(folder / "counts.csv")))


def _with_objective() -> None:
    Softmax(objective="l1").log_outputs(torch.zeros(1, 3))


@pytest.mark.parametrize(("work", "message"), ERRORS)
def test_what_does_not_fit_a_model_of_raters_is_one_line(
    work: Callable[[Path], Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(LDLError, match=message) as caught:
        work(tmp_path)
    assert "\n" not in str(caught.value)
