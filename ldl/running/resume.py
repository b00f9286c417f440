"""A rehearsal of resuming: what Lightning will take from a checkpoint is tried before anything is written."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from packaging.version import Version
from pytorch_lightning.callbacks import ModelCheckpoint
from torch.optim.lr_scheduler import ReduceLROnPlateau

from ldl.callbacks.leaf_update import STATE_KEY
from ldl.callbacks.resume import MEASURED_KEY
from ldl.checkpoint import CHECKPOINT_KEY
from ldl.collective import Collective
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.head import AlternatingHead
from ldl.task import Task
from ldl.trust.alike import check_alike
from ldl.trust.schema import check_weights
from ldl.trust.size import check_size

OLDEST = Version("2.6")
"""Lightning with whose checkpoints a run can go on."""


def restore_data(data: LDLDataModule, checkpoint: dict[str, Any], path: str) -> None:
    """Let data that are set up take what a checkpoint says of them, such as its scaling. Raises LDLError."""
    with _told(path):
        data.prepare_as(checkpoint[CHECKPOINT_KEY].get("preprocessing"))
        if (state := checkpoint.get(type(data).__qualname__)) is not None:
            data.load_state_dict(state)


def check_model(task: Task, data: LDLDataModule, checkpoint: dict[str, Any], path: str) -> None:
    """Raise LDLError for a checkpoint with other weights than a task, not built yet, has for these data."""

    def sketch() -> Task:
        other = copy.deepcopy(task)
        other.build(data.labels, data.input_shape, load_weights=False)
        return other

    with _told(path):
        if (model := check_size(sketch, Path(path).stat().st_size)) is not None:
            check_weights(model, checkpoint["state_dict"])


def rehearse_model(task: Task, checkpoint: dict[str, Any], path: str) -> None:
    """Load weights, optimiser and scheduler into a copy of a built task, and take a step whose gradients are 0.

    Raises:
        LDLError: one of them cannot be loaded, or cannot go on.
    """
    trial = copy.deepcopy(task)
    with _told(path):
        check_weights(trial, checkpoint["state_dict"])
        trial.on_load_checkpoint(checkpoint)
        trial.load_state_dict(checkpoint["state_dict"])
        if isinstance(trial.head, AlternatingHead) and STATE_KEY in checkpoint:
            trial.head.load_memory_state(checkpoint[STATE_KEY], Collective())
        made = trial.configure_optimizers()
        optimizer, config = (made["optimizer"], made["lr_scheduler"]) if isinstance(made, dict) else (made, None)
        states, schedulers = checkpoint["optimizer_states"], checkpoint["lr_schedulers"]
        if len(states) != 1 or len(schedulers) != (config is not None):
            raise LDLError(
                f"it has {len(states)} optimisers and {len(schedulers)} schedulers, the configuration 1 and "
                f"{int(config is not None)}"
            )
        optimizer.load_state_dict(copy.deepcopy(states[0]))
        for parameter in trial.parameters():
            parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
        optimizer.step(lambda: torch.zeros(()))
        if config is not None:
            scheduler = config if not isinstance(config, dict) else config["scheduler"]
            before = scheduler.state_dict()
            check_alike(schedulers[0], before, "lr_schedulers.0")
            scheduler.load_state_dict(copy.deepcopy(schedulers[0]))
            scheduler.step(*([0.0] if isinstance(scheduler, ReduceLROnPlateau) else []))


def rehearse_trainer(trainer: pl.Trainer, checkpoint: dict[str, Any], path: str) -> None:
    """Load the progress of the loops, and what callbacks keep, into copies.

    Raises:
        LDLError: one of them cannot be loaded, or the run is further than it is to go.
    """
    with _told(path):
        if (version := Version(checkpoint["pytorch-lightning_version"])) < OLDEST:
            raise LDLError(f"it is of Lightning {version}, and {OLDEST} or newer is needed")
        loop = type(trainer.fit_loop)(trainer)
        given = checkpoint["loops"]["fit_loop"]
        # Another version may keep more or less; one that lacks its own begins again where it was.
        check_alike(given, loop.state_dict(), "loops.fit_loop", closed=True, whole=version == Version(pl.__version__))
        loop.load_state_dict(copy.deepcopy(given))
        done, most = loop.epoch_progress.state_dict()["current"]["processed"], trainer.max_epochs
        if most not in (None, -1) and done > most:
            raise LDLError(f"it has trained {done} epochs, and trainer.max_epochs is {most}; give more")
        states = checkpoint["callbacks"]
        for callback in trainer.callbacks:  # type: ignore[attr-defined]
            if (state := states.get(callback.state_key)) is not None:
                check_alike(state, callback.state_dict(), f"callbacks.{type(callback).__name__}")
                if isinstance(callback, ModelCheckpoint):
                    _check_places(state, callback)
                copy.copy(callback).load_state_dict(copy.deepcopy(state))
        for name, value in checkpoint.get(MEASURED_KEY, {}).items():
            check_alike(value, torch.zeros(()), f"{MEASURED_KEY}.{name}")
        precision = trainer.precision_plugin
        if (state := checkpoint.get(type(precision).__qualname__)) is not None:
            copy.deepcopy(precision).load_state_dict(state)


def _check_places(state: dict[str, Any], callback: ModelCheckpoint) -> None:
    """Files of a ``ModelCheckpoint``, which it may load again, must lie where a path leads."""
    for name in ("best_model_path", "last_model_path", "kth_best_model_path"):
        if "://" in state.get(name, "") and "://" not in str(callback.dirpath):
            raise LDLError(f"callbacks.ModelCheckpoint.{name} is {state[name][:80]!r}, which is no file")


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Say everything that goes wrong in one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:  # anything may be in the entries of a file
        kind = "" if isinstance(error, LDLError) else f"{type(error).__name__} "
        raise LDLError(
            f"{path} does not fit: {kind}{' '.join(str(error).split())[:300]}; use the model, optimiser, scheduler and "
            "data it was saved with"
        ) from error
