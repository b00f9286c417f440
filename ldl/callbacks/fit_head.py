"""Fit heads that learn from the features of the whole training set at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor
from typing_extensions import override

from ldl.batch import Batch, global_rows
from ldl.collective import Collective, current_collective, interleave
from ldl.data.base import LDLDataModule
from ldl.data.cache import cache_root
from ldl.data.storage import RowFile, RowWriter
from ldl.errors import LDLError, SharedError, explaining
from ldl.head import FittedHead, ImageHead
from ldl.methods.rows import Rows
from ldl.methods.training_rows import blocks
from ldl.validation.contract import check_forward, lost_in_checkpoint

CHECKED_ROWS = 64
"""Number of training rows, or pixels along each side of an image, whose predictions are checked after the fit."""


class FitHead(pl.Callback):
    """Fits a ``FittedHead`` on the features of the whole training set at the start of training.

    ``Task`` adds the callback. Every process extracts the features of its share with the transforms of evaluation. All
    processes then get all rows in the order of the data set, in mapped files if they are large. An ``ImageHead`` gets
    all images in every process. The training loop that follows has one batch, for validation, logging and checkpoints.
    Afterwards the trainer has its own limits again.
    """

    def __init__(self) -> None:
        self._limits: tuple[Any, Any] | None = None

    @override
    def on_fit_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        head, collective = pl_module.head, current_collective()
        assert isinstance(head, FittedHead)
        self._limits = trainer.max_epochs, trainer.limit_train_batches
        resumes = trainer.ckpt_path is not None
        if not (trainer.fast_dev_run or str(trainer.limit_train_batches) == "1.0"):  # type: ignore[attr-defined]
            rank_zero_warn(
                f"{type(head).__name__} is fitted on the whole training set: limit_train_batches or overfit_batches "
                f"{trainer.limit_train_batches} does not limit it; give a smaller set, as by data.val_fraction"
            )
        # The trainer may have fitted another head already.
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
            _check_survives(head, next(iter(data.image_dataloader()))["input"][..., :CHECKED_ROWS, :CHECKED_ROWS])
        else:
            loader = data.fit_dataloader()
            batches = _extract(trainer, pl_module, loader, collective)
            cache = cache_root(getattr(data, "cache_dir", None)) / "scratch"
            in_memory = getattr(data, "in_memory", LDLDataModule.in_memory)
            rows = Rows(**put_together(batches, len(loader.dataset), in_memory, cache))
            if getattr(data, "leak", None):
                # With leaking groups, test rows share groups with training rows, so held-out rows should too.
                rows = replace(rows, group=None)
            _check_features(head, rows.features)
            head.fit(rows, collective)
            check_forward(head, rows.features[:CHECKED_ROWS], rows.target[:CHECKED_ROWS], pl_module.watch)
            pl_module.watch.check_finite(pl_module.device, collective)
            _check_survives(head, rows.features[:CHECKED_ROWS])
        for logger in trainer.loggers:
            if summary := head.summary():
                logger.log_metrics(summary, 0)

    @override
    def on_fit_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if self._limits is not None:
            trainer.fit_loop.max_epochs, trainer.limit_train_batches = self._limits
            self._limits = None

    @override
    def on_exception(self, trainer: pl.Trainer, pl_module: Any, exception: BaseException) -> None:
        self.on_fit_end(trainer, pl_module)


def _readable(loader: Any, device: torch.device, collective: Collective) -> Iterator[Batch]:
    """Yield the batches on a device. Raises SharedError in all processes if one of them could not read a batch."""
    for batch in loader:
        global_rows(batch, device, collective)
        yield {name: column.to(device) for name, column in batch.items()}


def _check_features(head: FittedHead, features: Tensor) -> None:
    """Raise SharedError for features that are not finite. Every process has all features and finds the same."""
    for start, block in blocks(features):
        # NaN marks missing instances of a bag.
        bad = block.isinf() if head.takes_bags or head.takes_missing else ~block.isfinite()
        if bool(bad.any()):
            index = [int(number) for number in bad.nonzero()[0]]
            raise SharedError(
                f"{type(head).__name__} cannot be fitted: of the training rows, number {start + index[0]} has the "
                f"feature {float(block[tuple(index)]):g} in column {index[-1]}; scale the inputs, or use "
                "trainer.precision 32-true"
            )


def _check_survives(head: FittedHead, features: Tensor) -> None:
    """Raise SharedError if a checkpoint would not restore the head. Every process finds the same."""
    if lost := lost_in_checkpoint(head, features):
        raise SharedError(f"{type(head).__name__} is lost with its checkpoint: {lost}")


@torch.no_grad()
def _extract(trainer: pl.Trainer, task: Any, loader: Any, collective: Collective) -> Iterator[Batch]:
    """Yield ``features``, ``target`` and any ``value``, ``group`` and ``weight`` of all rows by batches."""
    training, first = task.training, None
    wanted = ["target", "value", "group"]
    if "weight" in getattr(trainer.datamodule, "columns", {}):  # type: ignore[attr-defined]
        wanted.append("weight")
    task.eval()
    for batch in loader:
        global_rows(batch, task.device, collective)
        batch = trainer.precision_plugin.convert_input(batch)
        real = batch["weight"] > 0
        batch = {name: column.to(task.device) for name, column in batch.items()}
        columns = {name: batch[name][real] for name in wanted if name in batch}
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


def of_all(batch: Batch, collective: Collective) -> Batch:
    """Return the rows of a batch of all processes in order, from the share of each."""
    return {name: interleave(collective.gather(column)) for name, column in batch.items()}


def sizes_of_all(rows: Tensor, collective: Collective) -> list[tuple[int, ...]]:
    """Return the shape of one row in every process, by rank. Every process calls this function."""
    size = torch.tensor([rows.shape[1:]], device=rows.device)
    return [tuple(shape[0].tolist()) for shape in collective.gather(size)]


def put_together(batches: Iterator[Batch], rows: int, in_memory: float, cache: Path) -> Batch:
    """Concatenate the columns of all batches.

    Columns on the CPU that need more than ``in_memory`` MB become tensors that map files. The files are unlinked, so
    they end with the process.

    Args:
        batches: Batch of equal names, at least one batch.
        rows: Number of rows of all batches.
        in_memory: Limit in MB.
        cache: Folder for the files.

    Raises:
        LDLError: The files cannot be written.
    """
    first = next(batches)
    size = rows * sum(column[:1].nbytes / max(1, len(column[:1])) for column in first.values())
    plain = all(column.device.type == "cpu" and column.dtype != torch.bfloat16 for column in first.values())
    batches = chain([first], batches)
    if size <= in_memory * 2**20 or not plain:
        every = list(batches)
        return {name: torch.cat([batch[name] for batch in every]) for name in first}
    with explaining(f"{cache} cannot be written", "set data.cache_dir or LDL_CACHE", (OSError,)):
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache, prefix="fit-", ignore_cleanup_errors=True) as folder:
            return _mapped(batches, first, rows, Path(folder))


def _mapped(batches: Iterator[Batch], first: Batch, rows: int, folder: Path) -> Batch:
    files = {name: folder / f"{name}.npy" for name in first}
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(RowWriter(files[name], column.numpy().dtype, (rows, *column.shape[1:])))
            for name, column in first.items()
        }
        for batch in batches:
            for name, column in batch.items():
                writers[name].append(column.numpy())
    # Heads may write into the tensors, since no other process has these files.
    return {name: torch.from_numpy(RowFile.open(file).map("r+")) for name, file in files.items()}
