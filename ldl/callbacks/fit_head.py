"""Drives heads that are fitted in one go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from ldl.batch import Batch, global_rows
from ldl.callbacks.gather import of_all, put_together, sizes_of_all
from ldl.checks.contract import check_forward
from ldl.checks.survives import lost_in_checkpoint
from ldl.collective import Collective, current_collective
from ldl.data.base import LDLDataModule
from ldl.data.cache import cache_root
from ldl.errors import LDLError, SharedError
from ldl.head import FittedHead, ImageHead, wanted_of
from ldl.methods.mapped import blocks

CHECKED = 64
"""Training rows, or pixels along each side of an image, whose predictions are looked at after the fit."""


class FitHead(pl.Callback):
    """Fits a ``FittedHead`` on the features of the whole training set, before anything else happens.

    ``Task`` adds it by itself. Every process extracts the features of its share, with the transforms of
    evaluation; all processes then get all rows, in the order of the data set, as tensors that map a file where they
    are many (``ldl.callbacks.gather``). An ``ImageHead`` gets all images, on every process. The training loop that
    follows is one batch long, so that validation, logging and checkpoints take their usual course; afterwards the
    trainer has its own limits again.
    """

    def __init__(self) -> None:
        self._limits: tuple[Any, Any] | None = None

    def on_fit_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        head, collective = pl_module.head, current_collective()
        assert isinstance(head, FittedHead)
        self._limits = trainer.max_epochs, trainer.limit_train_batches
        resumes = trainer.ckpt_path is not None
        # The trainer may have fitted another head before.
        trainer.fit_loop.max_epochs = 1 if resumes else trainer.current_epoch + 1
        trainer.limit_train_batches = 1
        if resumes:
            return
        data: Any = getattr(trainer, "datamodule", None)
        if not hasattr(data, "fit_dataloader"):
            raise LDLError(
                f"{type(head).__name__} is fitted on the whole training set; "
                "pass Trainer.fit a data module of ldl (fit_dataloader)"
            )
        head.shows_progress = trainer.is_global_zero and getattr(trainer.progress_bar_callback, "is_enabled", False)
        if isinstance(head, ImageHead):
            head.fit_images(_readable(data.image_dataloader(head.wants), pl_module.device, collective), collective)
            _check_survives(head, next(iter(data.image_dataloader()))["input"][..., :CHECKED, :CHECKED])
        else:
            loader = data.fit_dataloader()
            parts = _extract(trainer, pl_module, loader, collective)
            cache = cache_root(getattr(data, "cache_dir", None)) / "scratch"
            in_memory = getattr(data, "in_memory", LDLDataModule.in_memory)
            columns = put_together(parts, len(loader.dataset), in_memory, cache)
            if getattr(data, "leak", None):
                # Rows set aside are to be as strange to the head as those of the test part will be.
                columns.pop("group", None)
            _check_features(head, columns["features"])
            head.fit(columns["features"], columns["target"], collective, **wanted_of(head, columns))
            check_forward(head, columns["features"][:CHECKED], columns["target"][:CHECKED], pl_module.watch)
            pl_module.watch.settle(pl_module.device, collective)
            _check_survives(head, columns["features"][:CHECKED])
        for logger in trainer.loggers:
            if summary := head.summary():
                logger.log_metrics(summary, 0)

    def on_fit_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if self._limits is not None:
            trainer.fit_loop.max_epochs, trainer.limit_train_batches = self._limits
            self._limits = None

    def on_exception(self, trainer: pl.Trainer, pl_module: Any, exception: BaseException) -> None:
        self.on_fit_end(trainer, pl_module)


def _readable(loader: Any, device: torch.device, collective: Collective) -> Iterator[Batch]:
    """The batches on a device. Raises SharedError, on all processes, for what one of them could not read."""
    for batch in loader:
        global_rows(batch, device, collective)
        yield {name: column.to(device) for name, column in batch.items()}


def _check_features(head: FittedHead, features: Tensor) -> None:
    """Refuse what no head can be fitted on. Every process has all features, and finds the same."""
    for start, part in blocks(features):
        # Missing instances of a bag are NaN.
        bad = part.isinf() if head.takes_bags or head.takes_missing else ~part.isfinite()
        if bool(bad.any()):
            where = [int(number) for number in bad.nonzero()[0]]
            value = float(part[tuple(where)])
            raise SharedError(
                f"{type(head).__name__} cannot be fitted: of the training rows, number {start + where[0]} has the "
                f"feature {value:g} in column {where[-1]}; scale the inputs, or use trainer.precision 32-true"
            )


def _check_survives(head: FittedHead, features: Tensor) -> None:
    """Refuse a head that would not come back from its checkpoint. Every process finds the same."""
    if lost := lost_in_checkpoint(head, features):
        raise SharedError(f"{type(head).__name__} is lost with its checkpoint: {lost}")


@torch.no_grad()
def _extract(trainer: pl.Trainer, task: Any, loader: Any, collective: Collective) -> Iterator[dict[str, Tensor]]:
    """``features``, ``target`` and, where the data have them, ``value`` and ``group`` of all rows, batch by batch."""
    training, first = task.training, None
    task.eval()
    for batch in loader:
        global_rows(batch, task.device, collective)
        batch = trainer.precision_plugin.convert_input(batch)
        real = batch["weight"] > 0
        batch = {name: column.to(task.device) for name, column in batch.items()}
        columns = {name: batch[name][real] for name in ("target", "value", "group") if name in batch}
        features = task.features(batch)[real]
        sizes = sizes_of_all(features, collective)
        first = first or sizes[0]
        if other := next((size for size in sizes if size != first), None):
            raise SharedError(
                f"{type(task.head).__name__} is fitted on all instances at once, but their features are of several "
                f"sizes, such as {first} and {other}; take a head that learns by gradient"
            )
        yield of_all({"features": features, **columns}, collective)
    task.train(training)
