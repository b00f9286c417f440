"""Training as a user writes it without ldl, in torch and in Lightning, and the seconds of a fit of ldl."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import pandas as pd
import pytorch_lightning as pl
import timm
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.common.script import Seconds
from ldl.collective import Collective

EPOCHS, BATCH, EVALUATED, LEARNING_RATE = 20, 64, 256, 1e-3
"""Epochs, rows of a batch, rows of a batch of evaluation, learning rate of AdamW."""


class Network(nn.Module):
    """A hidden layer and a softmax, with the mean KL divergence as loss."""

    def __init__(self, features: int, hidden: int, labels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, labels))

    def forward(self, features: Tensor) -> Tensor:
        return self.layers(features).softmax(1)

    def loss(self, features: Tensor, target: Tensor) -> dict[str, Tensor]:
        log_p = self.layers(features).log_softmax(1)
        return {"loss": nn.functional.kl_div(log_p, target, reduction="batchmean")}


def fit_torch(model: Any, features: Tensor, target: Tensor, train: int, val: int) -> None:
    """Train a model on the first ``train`` rows, and evaluate it on the next ``val`` rows after every epoch.

    A model that returns ``memory`` is an ``AlternatingHead``; its leaves are updated when they are due.
    """
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE)
    for _ in range(EPOCHS):
        model.train()
        for rows in torch.randperm(train).split(BATCH):
            losses = model.loss(features[rows], target[rows])
            optimizer.zero_grad()
            losses["loss"].backward()
            optimizer.step()
            if "memory" in losses:
                model.observe(losses["memory"], target[rows])
                if model.update_due:
                    model.update(Collective())
        evaluate(model, features[train : train + val], target[train : train + val])


def fit_images(images: Tensor, name: str, epochs: int) -> None:
    """Train a timm model without weights on images, (N, H, W, 3) uint8, of two classes that alternate."""
    model = timm.create_model(name, num_classes=2)
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE)
    mean, deviation = (torch.tensor(model.default_cfg[key]).view(3, 1, 1) for key in ("mean", "std"))
    model.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(images)).split(BATCH):
            inputs = (images[rows].permute(0, 3, 1, 2).float() / 255 - mean) / deviation
            loss = nn.functional.cross_entropy(model(inputs), rows % 2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def evaluate(model: Any, features: Tensor, target: Tensor) -> float:
    """Return the mean KL divergence of the rows."""
    model.eval()
    total = 0.0
    for inputs, truth in zip(features.split(EVALUATED), target.split(EVALUATED)):
        total += float((torch.xlogy(truth, truth) - truth * model(inputs).clamp_min(1e-12).log()).sum())
    return total / len(features)


class LightningNetwork(pl.LightningModule):
    """A model as users of Lightning write it; both losses are logged as means of an epoch."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def training_step(self, batch: list[Tensor], number: int) -> dict[str, Tensor]:
        losses: dict[str, Tensor] = self.model.loss(*batch)
        self.log("train_loss", losses["loss"], on_step=False, on_epoch=True)
        return losses

    def on_train_batch_end(self, outputs: Any, batch: list[Tensor], number: int) -> None:
        if "memory" in outputs:
            self.model.observe(outputs["memory"], batch[1])
            if self.model.update_due:
                self.model.update(Collective())

    def validation_step(self, batch: list[Tensor], number: int) -> None:
        self.log("val_loss", self.model.loss(*batch)["loss"])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), LEARNING_RATE)


def fit_lightning(model: Any, features: Tensor, target: Tensor, train: int, val: int) -> None:
    """Train a model as :func:`fit_torch` does, with Lightning."""
    loaders = (
        DataLoader(TensorDataset(features[:train], target[:train]), BATCH, shuffle=True),
        DataLoader(TensorDataset(features[train : train + val], target[train : train + val]), EVALUATED),
    )
    trainer = pl.Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(LightningNetwork(model), *loaders)


def run_torch(model: Any, table: Path, folder: Path, labels: int, train: int, val: int) -> None:
    """Read a CSV, train a model, test it on the other rows, and save its weights, predictions and result."""
    numbers = torch.from_numpy(pd.read_csv(table).to_numpy("float32"))
    features, target = numbers[:, :-labels], numbers[:, -labels:]
    fit_torch(model, features, target, train, val)
    result = {"kl": evaluate(model, features[train + val :], target[train + val :])}
    torch.save(model.state_dict(), folder / "weights.pt")
    pd.DataFrame(model(features[train + val :]).detach().numpy()).to_csv(folder / "predictions.csv")
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")


class FitClock(pl.Callback):
    """Measures the last fit of the process, from the first hook to the last.

    Attributes:
        last: Seconds of the last fit.
    """

    last = Seconds(0, 0)

    def __init__(self) -> None:
        self.begin = Seconds(0, 0)

    def setup(self, trainer: pl.Trainer, pl_module: Any, stage: str) -> None:
        self.begin = Seconds(time.perf_counter(), time.process_time())

    def teardown(self, trainer: pl.Trainer, pl_module: Any, stage: str) -> None:
        if stage == "fit":
            begin = self.begin
            FitClock.last = Seconds(time.perf_counter() - begin.clock, time.process_time() - begin.processor)
