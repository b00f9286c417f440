"""Train a task on arrays, without output and without a trace in the process's random state."""

from __future__ import annotations

import logging
import os
import re
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytorch_lightning as pl
from pytorch_lightning.plugins.environments import LightningEnvironment
from pytorch_lightning.utilities.seed import isolate_rng
from sklearn.utils import _safe_indexing

from ldl.data.base import LDLDataModule, Loaded
from ldl.data.tables.module import ScaledRows
from ldl.data.text import USUAL_TEXT, TextOptions
from ldl.errors import LDLError
from ldl.inference import Predictor
from ldl.methods.conformal import Conformal
from ldl.protocols import Fold, kfold, with_validation
from ldl.run.output import WARNINGS
from ldl.run.training import seed_everything
from ldl.tables.entries import is_frame
from ldl.task import Task

VARIABLES = re.compile("PL_(GLOBAL_SEED|SEED_WORKERS|TRAINER_.+)")
"""Environment variables from which Lightning reads seeds and defaults of trainers."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed all generators like ``seed_everything``, and restore their states afterwards."""
    before = {name: os.environ.pop(name) for name in list(os.environ) if VARIABLES.fullmatch(name)}
    with isolate_rng():
        try:
            seed_everything(seed)
            yield
        finally:
            for name in filter(VARIABLES.fullmatch, list(os.environ)):
                del os.environ[name]
            os.environ.update(before)


@contextmanager
def silent() -> Iterator[None]:
    """Silence Lightning's messages about a fit."""
    logger = logging.getLogger("pytorch_lightning")
    level = logger.level
    with warnings.catch_warnings():
        for message in (*WARNINGS, "The `srun` command is available"):
            warnings.filterwarnings("ignore", message=message)
        logger.setLevel(max(level, logging.WARNING))
        try:
            yield
        finally:
            logger.setLevel(level)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C; Lightning would exit the process."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            signal.signal(signal.SIGINT, handler)
            raise error.__context__ from None
        raise


def train(task: Task, data: LDLDataModule, epochs: int, accelerator: str, verbose: bool) -> None:
    """Fit a task on one device, without writing files; it ends on the CPU, in evaluation mode."""
    data.setup()
    task.build(data.labels, data.input_shape)
    with silent(), interruptible():
        trainer = pl.Trainer(
            max_epochs=epochs,
            accelerator=accelerator,
            devices=1,
            default_root_dir=os.devnull,  # inside SLURM, Lightning would resume from a checkpoint that lies there
            logger=False,
            enable_checkpointing=False,
            enable_model_summary=False,
            enable_progress_bar=verbose,
            use_distributed_sampler=False,
            plugins=[LightningEnvironment()],  # one process, also inside a cluster's job
        )
        trainer.fit(task, datamodule=data)
    task.trainer = None
    task.cpu().eval()


class ArrayRows(ScaledRows):
    """Rows in memory as a data module, without a test set, encoded and scaled like tables.

    Args:
        features: (N, F), float64, where NaN marks a missing value; or a typed frame, whose gaps are filled or kept.
        loaded: Labels, targets, and optional values and groups.
        names: Names of the features, or None.
        text: Options of the columns of text.
        **options: Options of the base class, such as ``scaling`` and ``val_fraction``.
    """

    protocol = "all rows"

    def __init__(
        self,
        features: Any,
        loaded: Loaded,
        names: Iterable[str] | None,
        text: TextOptions = USUAL_TEXT,
        **options: object,
    ) -> None:
        super().__init__(path="X", **options)  # type: ignore[arg-type]
        self.features, self.mixed = features, features if is_frame(features) else None
        self.feature_names = None if names is None else [str(name) for name in names]
        self.text_encoder, self.text_tokens = text
        self._loaded = loaded

    def load(self) -> Loaded:
        """Return the given record."""
        return self._loaded

    def cut(self) -> Fold:
        """Return a fold without a test set."""
        rows = np.arange(self.size)
        groups = None if self.groups is None else np.unique(self.groups, return_inverse=True)[1]
        return with_validation(rows, rows[:0], self.val_fraction, self.fold_seed, groups=groups)

    def weight_of(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the weights of rows, (n,), or None if there are none."""
        weight = self.columns.get("weight")
        return None if weight is None else weight.numpy()[rows].astype(np.float64)

    @property
    def leak(self) -> None:
        """Return None: there is no test set."""
        return


def cross_calibrate(
    train: Callable[[Any, Loaded], Predictor], rows: Any, loaded: Loaded, folds: int, seed: int
) -> Conformal:
    """Calibrate on out-of-fold predictions, for a model that is trained on all rows.

    Args:
        train: Trains a model on some rows.
        rows: (N, F) features, or a frame of N rows.
        loaded: Labels, targets, and optional values and groups. A group stays together and counts as one row.
        folds: Number of folds.
        seed: Seed of the folds.

    Raises:
        LDLError: There are fewer rows, or groups, than folds.
    """
    units = len(rows) if loaded.groups is None else len(np.unique(loaded.groups))
    if folds > units:
        unit = "rows" if loaded.groups is None else "groups"
        raise LDLError(f"LDLRegressor.conformal_folds {folds} must be in 2..{units}, the number of {unit}")
    predicted = np.empty((len(rows), len(loaded.labels)), np.float32)
    for number in range(folds):
        fold = kfold(len(rows), folds, number, seed, groups=loaded.groups)
        model = train(_safe_indexing(rows, fold.train), part_of(loaded, fold.train))
        predicted[fold.test] = model.predict(_safe_indexing(rows, fold.test)).distribution
    return _calibrated(predicted, loaded)


def split_calibrate(model: Predictor, rows: Any, loaded: Loaded, held: np.ndarray) -> Conformal:
    """Calibrate on the rows that a model was not trained on.

    Args:
        model: The model.
        rows: (N, F) features, or a frame of N rows.
        loaded: Labels, targets, and optional values and groups. A group counts as one row.
        held: (n,) numbers of the held-out rows.
    """
    return _calibrated(model.predict(_safe_indexing(rows, held)).distribution, part_of(loaded, held))


def _calibrated(predicted: np.ndarray, loaded: Loaded) -> Conformal:
    weight = loaded.columns.get("weight")
    weights = None if weight is None else weight.numpy()
    return Conformal.fit(loaded.labels, predicted, truth_of(loaded), loaded.groups, weights)


def part_of(loaded: Loaded, index: np.ndarray) -> Loaded:
    """Return some of the rows."""
    columns = {name: column[index] for name, column in loaded.columns.items()}
    values, groups = (None if entries is None else entries[index] for entries in (loaded.values, loaded.groups))
    return replace(loaded, columns=columns, values=values, groups=groups)


def truth_of(loaded: Loaded) -> np.ndarray:
    """Return the truth for calibration: values, decoded if there are none, or nominal distributions."""
    target = loaded.columns["target"]
    if not loaded.labels.has_values:
        return target.numpy()
    return loaded.labels.decode(target).numpy() if loaded.values is None else loaded.values
