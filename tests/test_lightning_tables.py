"""The two tables of docs/guides/lightning.md, measured: Lightning's callbacks, and options of the Trainer.

``LDL_WRITE_DOCS=1 pytest -m slow tests/test_lightning_tables.py`` writes them anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from fakes.paths import ROOT
from pytorch_lightning import callbacks as lightning
from pytorch_lightning.tuner import Tuner
from torch.utils.data import DataLoader, TensorDataset

from ldl.backbones import Timm
from ldl.data import RotatedDigits, TabularLDL
from ldl.heads import Softmax
from ldl.reports.files import markdown
from ldl.task import Task

pytestmark = pytest.mark.slow
PAGE = ROOT / "docs" / "guides" / "lightning.md"
QUIET: dict[str, Any] = {
    "accelerator": "cpu", "logger": False, "enable_progress_bar": False, "enable_model_summary": False,
    "enable_checkpointing": False, "num_sanity_val_steps": 0, "use_distributed_sampler": False,
}  # fmt: skip
ROWS, BATCH = 50, 4


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    rng = np.random.default_rng(0)
    file = tmp_path_factory.mktemp("lightning") / "table.npz"
    np.savez(file, features=rng.normal(size=(ROWS, 5)), labels=rng.dirichlet(np.ones(3), ROWS))
    return str(file)


def ours(table: str) -> tuple[Task, TabularLDL]:
    pl.seed_everything(0, verbose=False)
    task = Task(Softmax(), optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.5))
    return task, TabularLDL(path=table, batch_size=BATCH, folds=5, val_fraction=0.2)


class Plain(pl.LightningModule):
    """What a user of Lightning writes, without ldl."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(5, 3)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("val_kl", self.training_step(batch, batch_idx))

    test_step = validation_step

    def predict_step(self, batch: Any, batch_idx: int) -> Any:
        return self.layer(batch[0])

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.5)


class PlainData(pl.LightningDataModule):
    """Loaders of as many rows as the parts of another data module."""

    def __init__(self, data: TabularLDL) -> None:
        super().__init__()
        self.split = data.split

    def _loader(self, rows: np.ndarray, train: bool = False) -> DataLoader[Any]:
        rows_, targets = torch.randn(len(rows), 5), torch.rand(len(rows), 3)
        return DataLoader(TensorDataset(rows_, targets), batch_size=BATCH, shuffle=train)

    def train_dataloader(self) -> DataLoader[Any]:
        return self._loader(self.split.train, train=True)

    def val_dataloader(self) -> DataLoader[Any]:
        return self._loader(self.split.val)

    def test_dataloader(self) -> DataLoader[Any]:
        return self._loader(self.split.test)

    predict_dataloader = test_dataloader


class Events(pl.Callback):
    """What the Trainer does, in order."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.seen.append(("train", trainer.current_epoch, batch_idx, trainer.global_step))

    def on_validation_batch_end(self, trainer: pl.Trainer, pl_module: Any, *given: Any) -> None:
        self.seen.append(("validate", trainer.sanity_checking, trainer.current_epoch, given[2]))

    def on_test_batch_end(self, trainer: pl.Trainer, pl_module: Any, *given: Any) -> None:
        self.seen.append(("test", given[2]))

    def on_predict_batch_end(self, trainer: pl.Trainer, pl_module: Any, *given: Any) -> None:
        self.seen.append(("predict", given[2]))

    def on_train_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self.seen.append(("end", trainer.current_epoch, trainer.global_step))


OPTIONS: dict[str, dict[str, Any]] = {
    "max_epochs 3": {"max_epochs": 3},
    "max_steps 11": {"max_epochs": -1, "max_steps": 11},
    "min_epochs 2, with a stop in the first": {"max_epochs": 4, "min_epochs": 2, "callbacks": "stop"},
    "overfit_batches 2": {"overfit_batches": 2},
    "overfit_batches 0.5": {"overfit_batches": 0.5},
    "limit_train_batches 3": {"limit_train_batches": 3},
    "limit_train_batches 0.5": {"limit_train_batches": 0.5},
    "limit_val_batches 1": {"limit_val_batches": 1},
    "limit_val_batches 0": {"limit_val_batches": 0},
    "limit_test_batches 2": {"limit_test_batches": 2},
    "limit_predict_batches 1": {"limit_predict_batches": 1},
    "num_sanity_val_steps 2": {"num_sanity_val_steps": 2},
    "num_sanity_val_steps -1": {"num_sanity_val_steps": -1},
    "check_val_every_n_epoch 2": {"max_epochs": 4, "check_val_every_n_epoch": 2},
    "val_check_interval 3": {"val_check_interval": 3},
    "val_check_interval 0.5": {"val_check_interval": 0.5},
    "val_check_interval 5, across epochs": {"val_check_interval": 5, "check_val_every_n_epoch": None},
    "accumulate_grad_batches 3": {"accumulate_grad_batches": 3},
    "reload_dataloaders_every_n_epochs 1": {"reload_dataloaders_every_n_epochs": 1},
    "fast_dev_run": {"fast_dev_run": True},
    "fast_dev_run 3": {"fast_dev_run": 3},
    "gradient_clip_val 0.1": {"gradient_clip_val": 0.1},
    "precision 64-true": {"precision": "64-true"},
    "precision bf16-mixed": {"precision": "bf16-mixed"},
    "deterministic": {"deterministic": True},
    "detect_anomaly": {"detect_anomaly": True},
    "inference_mode false": {"inference_mode": False},
    "barebones": {"barebones": True},
}


class Stop(pl.Callback):
    """Asks for the end of training after the first batch."""

    def on_train_batch_end(self, trainer: pl.Trainer, *given: Any) -> None:
        trainer.should_stop = True


def events(module: pl.LightningModule, data: Any, options: dict[str, Any]) -> list[Any]:
    """What the Trainer does with a module in a fit, a test and a prediction."""
    seen, options = Events(), dict(options)
    added = [Stop()] if options.pop("callbacks", None) else []
    quiet = {} if options.get("barebones") else QUIET
    trainer = pl.Trainer(**{**quiet, "max_epochs": 2, **options, "callbacks": [seen, *added]})
    trainer.fit(module, datamodule=data)
    trainer.test(module, datamodule=data, verbose=False)
    trainer.predict(module, datamodule=data)
    return seen.seen


def test_options_mean_the_same_as_in_lightning(table: str) -> None:
    lines, wrong = [], {}
    for name, options in OPTIONS.items():
        task, data = ours(table)
        found = events(task, data, options)
        expected = events(Plain(), PlainData(data), options)
        kinds = [kind for kind, *_ in found]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("train", "validate", "test", "predict"))
        lines.append([f"`{name}`", counts, "yes" if found == expected else "no"])
        if found != expected:
            wrong[name] = [pair for pair in zip(found, expected) if pair[0] != pair[1]][:3], len(found), len(expected)
    assert not wrong
    check_page("options", ["option", "batches", "same as in Lightning"], lines)


def weights(task: Task) -> torch.Tensor:
    return torch.cat([value.detach().flatten().double() for value in task.head.parameters()])


class Kept(pl.Callback):
    """The weights after each step."""

    def __init__(self) -> None:
        self.steps: list[torch.Tensor] = []

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, *given: Any) -> None:
        self.steps.append(weights(pl_module))


def fit(table: str, *callbacks: pl.Callback, **options: Any) -> tuple[Task, TabularLDL, Kept, pl.Trainer]:
    (task, data), kept = ours(table), Kept()
    trainer = pl.Trainer(**{**QUIET, "max_epochs": 4, **options, "callbacks": [kept, *callbacks]})
    trainer.fit(task, datamodule=data)
    return task, data, kept, trainer


def averaged(table: str) -> tuple[str, bool]:
    task, data, kept, _ = fit(table, lightning.StochasticWeightAveraging(0.5, swa_epoch_start=2))
    ends = torch.stack(kept.steps)[data.train_batches - 1 :: data.train_batches]
    return "weights are the mean over epochs 1 to 3", torch.allclose(weights(task), ends[:3].mean(0), atol=1e-6)


def smoothed(table: str) -> tuple[str, bool]:
    average = lightning.EMAWeightAveraging(decay=0.9, use_buffers=False)
    task, _, kept, _ = fit(table, average)
    expected = kept.steps[0]
    for step in kept.steps[1:]:
        expected = 0.9 * expected + 0.1 * step
    return "weights are the moving average of the steps", torch.allclose(weights(task), expected, atol=1e-4)


def stopped(table: str) -> tuple[str, bool]:
    stop = lightning.EarlyStopping("val_kl", patience=2, min_delta=10.0)
    *_, trainer = fit(table, stop, max_epochs=20)
    return "patience 2 without progress ends after epoch 3", trainer.current_epoch == 3


def found_rate(table: str) -> tuple[str, bool]:
    finder = lightning.LearningRateFinder(num_training_steps=30, early_stop_threshold=None)
    task, _, kept, trainer = fit(table, finder, max_epochs=10)
    rate = finder.optimal_lr.suggestion()
    return "the optimiser begins with its suggestion", trainer.optimizers[0].param_groups[0]["lr"] == rate != 0.5


def tuned_rate(table: str) -> tuple[str, bool]:
    task, data = ours(table)
    before = task.lr
    found = Tuner(pl.Trainer(**QUIET, max_epochs=10)).lr_find(
        task, datamodule=data, num_training=30, early_stop_threshold=None
    )
    return "`Tuner.lr_find` sets `task.lr`", task.lr == found.suggestion() != before


def found_size(table: str) -> tuple[str, bool]:
    _, data, *_ = fit(table, lightning.BatchSizeFinder(init_val=BATCH, max_trials=2, steps_per_trial=1), max_epochs=1)
    return f"`batch_size` of the data goes from {BATCH} to {2 * BATCH}", data.batch_size == 2 * BATCH


def pruned(table: str) -> tuple[str, bool]:
    prune = lightning.ModelPruning("l1_unstructured", amount=0.5, use_lottery_ticket_hypothesis=False)
    task, *_ = fit(table, prune, max_epochs=1)
    zeros = [(value == 0).double().mean().item() for name, value in task.head.named_parameters() if value.ndim > 1]
    return "half of the weights of the layer are zero", bool(zeros) and all(0.45 < share < 0.55 for share in zeros)


def accumulated(table: str) -> tuple[str, bool]:
    _, data, _, trainer = fit(table, lightning.GradientAccumulationScheduler({0: 1, 1: 2}), max_epochs=2)
    batches = data.train_batches
    return "a step a batch, then a step every 2", trainer.global_step == batches + -(-batches // 2)


def monitored(table: str) -> tuple[str, bool]:
    from pytorch_lightning.loggers import CSVLogger

    folder = Path(table).parent
    fit(table, lightning.LearningRateMonitor(), max_epochs=1, logger=CSVLogger(folder, "", ""), log_every_n_steps=1)
    return "the learning rate is logged", "lr-SGD" in (folder / "metrics.csv").read_text(encoding="utf-8")


def summed(table: str) -> tuple[str, bool]:
    from pytorch_lightning.utilities.model_summary import ModelSummary

    task, *_ = fit(table, lightning.ModelSummary(), max_epochs=1)
    return "all parameters are counted", ModelSummary(task).total_parameters == sum(
        p.numel() for p in task.parameters()
    )


def kept_best(table: str) -> tuple[str, bool]:
    best = lightning.ModelCheckpoint(Path(table).parent / "best", monitor="val_kl", save_top_k=1)
    fit(table, best, enable_checkpointing=True)
    again = Task.load_from_checkpoint(best.best_model_path)
    trainer = pl.Trainer(**QUIET)
    (value,) = trainer.validate(again, datamodule=ours(table)[1], verbose=False)
    return "the best checkpoint has the best `val_kl`", abs(value["val_kl"] - float(best.best_model_score)) < 1e-6


def timed(table: str) -> tuple[str, bool]:
    *_, trainer = fit(table, lightning.Timer({"seconds": 0}), max_epochs=50)
    return "no time leaves no step", trainer.global_step == 0


def unfrozen(table: str) -> tuple[str, bool]:
    pl.seed_everything(0, verbose=False)
    task, changed = Task(Softmax(), Timm("resnet10t", pretrained=False)), []

    class Changed(pl.Callback):
        def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
            self.before = [value.detach().clone() for value in task.backbone.parameters() if value.ndim > 1]

        def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
            now = (value for value in task.backbone.parameters() if value.ndim > 1)
            changed.append([not torch.equal(*pair) for pair in zip(now, self.before)])

    options = {**QUIET, "max_epochs": 2, "limit_train_batches": 2, "limit_val_batches": 1}
    frozen = lightning.BackboneFinetuning(1, train_bn=False)
    pl.Trainer(**options, callbacks=[Changed(), frozen]).fit(task, RotatedDigits(turns=1, batch_size=32))
    first, second = (sum(each) for each in changed)
    text = f"{first} of {len(changed[0])} kernels learn in epoch 0, {second} in epoch 1"
    return text, (first, second) == (0, len(changed[0]))


CALLBACKS: dict[str, Callable[[str], tuple[str, bool]]] = {
    "StochasticWeightAveraging": averaged,
    "EMAWeightAveraging": smoothed,
    "BackboneFinetuning": unfrozen,
    "EarlyStopping": stopped,
    "LearningRateFinder": found_rate,
    "Tuner": tuned_rate,
    "BatchSizeFinder": found_size,
    "ModelPruning": pruned,
    "GradientAccumulationScheduler": accumulated,
    "LearningRateMonitor": monitored,
    "ModelSummary": summed,
    "ModelCheckpoint": kept_best,
    "Timer": timed,
}


def test_callbacks_of_lightning_have_their_effect(table: str) -> None:
    found = {name: measure(table) for name, measure in CALLBACKS.items()}
    assert [name for name, (_, right) in found.items() if not right] == []
    check_page("callbacks", ["callback", "measured effect"], [[f"`{name}`", text] for name, (text, _) in found.items()])


def check_page(block: str, header: list[str], lines: list[list[str]]) -> None:
    """Compare a table of the page with what was measured, or write it."""
    page, begin, end = PAGE.read_text(encoding="utf-8"), f"<!-- begin {block} -->", f"<!-- end {block} -->"
    table = f"{begin}\n{markdown(header, lines)}\n{end}"
    if os.environ.get("LDL_WRITE_DOCS"):
        page = re.sub(f"{begin}\n.*?{end}", lambda _: table, page, flags=re.DOTALL)
        PAGE.write_text(page, encoding="utf-8")
    assert table in page
