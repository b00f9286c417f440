"""Plain DataLoaders: what batches may leave out, and what is wrong with them, in one line."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import LDLF, Softmax
from ldl.labels import LabelSpace
from ldl.schedule import Cosine
from ldl.task import Task

INPUT = torch.randn(20, 5, generator=torch.Generator().manual_seed(0))
TARGET = torch.softmax(INPUT[:, :3], -1)
SGD = partial(torch.optim.SGD, lr=0.5)
QUIET: dict[str, Any] = {
    "accelerator": "cpu", "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
    "enable_model_summary": False, "max_epochs": 2,
}  # fmt: skip


def loader(target: Any = TARGET, **columns: Any) -> DataLoader[Any]:
    columns = {"input": INPUT, **({} if target is None else {"target": target}), **columns}
    return DataLoader([{name: column[row] for name, column in columns.items()} for row in range(20)], batch_size=7)  # type: ignore[arg-type]


def task(**options: Any) -> Task:
    torch.manual_seed(0)
    made = Task(Softmax(), **options)
    made.build(LabelSpace.nominal(["a", "b", "c"]), (5,))
    return made


def outcome(batches: DataLoader[Any]) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Numbers and predictions of all rows, and KL divergence, of a task that is trained on the batches."""
    made, trainer = task(), pl.Trainer(**QUIET)
    trainer.fit(made, batches, batches)
    parts: Any = trainer.predict(made, batches)
    index, prediction = (torch.cat([part[name] for part in parts]) for name in ("index", "prediction"))
    return index, prediction, trainer.test(made, batches, verbose=False)[0]["test_kl"]


@pytest.mark.parametrize(
    "batches",
    [
        loader(),
        loader(weight=torch.ones(20)),
        loader(index=torch.arange(20)),
        DataLoader(TensorDataset(INPUT, TARGET), batch_size=7),
    ],
    ids=["neither", "weight", "index", "tuples"],
)
def test_weight_and_index_may_be_left_out(batches: DataLoader[Any]) -> None:
    whole = outcome(loader(weight=torch.ones(20), index=torch.arange(20)))
    for one, other in zip(outcome(batches), whole):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert whole[0].tolist() == list(range(20))


@pytest.mark.parametrize("head", [Softmax(), LDLF(trees=2, depth=3, batches=2)], ids=["Softmax", "LDLF"])
def test_a_weight_of_a_row_is_copies_of_it(head: Head) -> None:
    """In training, leaf updates of two batches, training and validation metrics, temperature and conformal scores."""
    weight, found = torch.arange(20) % 5, []
    for copied in (True, False):
        batches = []
        for part in (slice(8), slice(8, 20)):
            rows = torch.arange(20)[part].repeat_interleave(weight[part] if copied else 1)
            own = torch.ones(len(rows)) if copied else weight[part].float()
            batches.append({"input": INPUT[rows], "target": TARGET[rows], "weight": own, "index": rows})
        torch.manual_seed(0)
        made, trainer = Task(copy.deepcopy(head), optimizer=SGD, calibrate=True), pl.Trainer(**QUIET)
        made.build(LabelSpace.nominal(["a", "b", "c"]), (5,))
        trainer.fit(made, *[DataLoader(batches, batch_size=None)] * 2)  # type: ignore[arg-type]
        numbers = {name: float(number) for name, number in trainer.callback_metrics.items()}
        assert made.calibration is not None
        (scores,) = made.calibration.scores
        numbers["score"] = float(scores.score @ scores.weight) / scores.units
        found.append((numbers, [part.double() for part in made.state_dict().values()]))
    assert {"train_loss", "val_kl", "val_kl_calibrated", "temperature"} <= found[0][0].keys()
    assert found[1][0] == pytest.approx(found[0][0], rel=1e-4)
    torch.testing.assert_close(found[1][1], found[0][1], atol=1e-5, rtol=1e-4)


def test_prediction_needs_no_target() -> None:
    parts: Any = pl.Trainer(**QUIET).predict(task(), loader(None))
    assert sum(len(part["prediction"]) for part in parts) == 20


def changed(value: float) -> torch.Tensor:
    target = TARGET.clone()
    target[3, 1] = value
    return target


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (loader(changed(torch.nan)), "the target of row 3 of a batch is NaN; leave the row out"),
        (loader(changed(2.0)), "the target of row 3 of a batch has the sum 2.* a distribution has the sum 1"),
        (loader(changed(-0.1)), "the target of row 3 .* the least entry -0.1"),
        (loader(TARGET[:, :2]), r"is \(7, 2\) of torch.float32, and must be distributions \(B, ..., 3\) of floats"),
        (loader(torch.arange(20) % 3), r"is \(7,\) of torch.int64, and must be .* encode labels with LabelSpace"),
        (loader(None), "a batch has the columns input, and needs a tensor 'target'"),
        (DataLoader([{"x": row} for row in INPUT], batch_size=7), "has the columns x, and needs a tensor 'input'"),  # type: ignore[arg-type]
        (DataLoader(INPUT, batch_size=7), "a batch is a Tensor, and must be a dict"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_with_a_batch_is_named(batches: DataLoader[Any], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        pl.Trainer(**QUIET).fit(task(), batches, batches)
    with pytest.raises(LDLError, match=message):
        pl.Trainer(**QUIET).validate(task(), batches, verbose=False)


def test_barebones_names_the_scheduler_that_it_cannot_serve() -> None:
    trainer = pl.Trainer(barebones=True, accelerator="cpu", max_epochs=1)
    trainer.fit(task(lr_scheduler=Cosine), loader(), loader())
    plateau = task(lr_scheduler=torch.optim.lr_scheduler.ReduceLROnPlateau)
    with pytest.raises(LDLError, match="trainer.barebones logs nothing for ReduceLROnPlateau to watch"):
        pl.Trainer(barebones=True, accelerator="cpu", max_epochs=1).fit(plateau, loader(), loader())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_task_is_exported_after_a_fit(tmp_path: Any) -> None:
    made, trainer = task(), pl.Trainer(**QUIET)
    trainer.fit(made, loader(), loader())
    made.to_onnx(tmp_path / "task.onnx", INPUT[:2])
    assert (tmp_path / "task.onnx").stat().st_size > 0


def test_arguments_of_lightning_load_a_checkpoint(tmp_path: Any) -> None:
    made, trainer = task(), pl.Trainer(**QUIET)
    trainer.fit(made, loader(), loader())
    trainer.save_checkpoint(tmp_path / "one.ckpt")
    loaded = Task.load_from_checkpoint(tmp_path / "one.ckpt", strict=True, weights_only=True, hparams_file=None)
    torch.testing.assert_close(dict(loaded.state_dict()), dict(made.state_dict()), rtol=0, atol=0)
    for argument in ({"strict": False}, {"weights_only": False}, {"hparams_file": "hparams.yaml"}):
        with pytest.raises(LDLError, match=f"cannot take {next(iter(argument))}="):
            Task.load_from_checkpoint(tmp_path / "one.ckpt", **argument)
    with pytest.raises(LDLError, match="Task has no argument 'decodr'; did you mean 'decoder'"):
        Task.load_from_checkpoint(tmp_path / "one.ckpt", decodr="median")
