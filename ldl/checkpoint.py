"""Reading checkpoints without unpickling, and holding them against a configured model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO
from pytorch_lightning.strategies import DDPStrategy, SingleDeviceStrategy
from torch import nn

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.plugins import discover
from ldl.spec import differences

CHECKPOINT_KEY = "ldl"
"""Where a checkpoint keeps the description of its model, next to Lightning's own entries."""


def read_checkpoint(path: str | Path, map_location: Any = "cpu") -> dict[str, Any]:
    """The content of a checkpoint of ldl; plugins are discovered, so that their heads can be rebuilt.

    Raises LDLError: no such file, a damaged one, one that needs unpickling, or one of another program.
    """
    discover()
    if not Path(path).is_file():
        raise LDLError(f"no checkpoint at {path}; give --ckpt_path a file, such as RUN/checkpoints/last.ckpt")
    try:
        checkpoint = torch.load(path, map_location=map_location, weights_only=True)
    except Exception as error:
        raise LDLError(f"{path} cannot be read as a checkpoint: {str(error).strip().splitlines()[0][:160]}") from error
    if not isinstance(checkpoint, dict) or CHECKPOINT_KEY not in checkpoint:
        raise LDLError(
            f"{path} is no checkpoint of ldl: it has no entry {CHECKPOINT_KEY!r}; give one that train.py saved"
        )
    return checkpoint


def check_same_model(checkpoint: dict[str, Any], head: nn.Module, backbone: nn.Module) -> None:
    """Refuse a checkpoint of another model than the one configured, with an LDLError that names what differs.

    Options that ``may_change`` may differ, such as where the first weights came from: the checkpoint's replace them.
    """
    if CHECKPOINT_KEY not in checkpoint:
        raise LDLError(
            f"this is no checkpoint of ldl: it has no entry {CHECKPOINT_KEY!r}; give one that train.py saved"
        )
    for part, component in (("head", head), ("backbone", backbone)):
        if found := differences(checkpoint[CHECKPOINT_KEY][part], component):
            raise LDLError(
                f"the checkpoint's {part} has {', '.join(found)}; resume with the configuration it was saved with"
            )


def check_same_inputs(made: tuple[LabelSpace, tuple[int, ...]], given: tuple[LabelSpace, tuple[int, ...]]) -> None:
    """Refuse data with other labels, or inputs of another shape, than the model was made for. Raises LDLError."""
    if made != given:
        (labels, shape), (others, other) = made, given
        raise LDLError(
            f"the model was made for inputs {shape} and {len(labels)} labels ({_ends(labels)}), but the data have "
            f"inputs {other} and {len(others)} labels ({_ends(others)}); use the data it was trained on"
        )


def _ends(labels: LabelSpace) -> str:
    return f"{labels.names[0]} to {labels.names[-1]} {labels.unit}".strip()


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint beside its place and then moves it there: a kill leaves the old one or the new one.

    It is a plugin of ``Trainer``; the trainers of ``train.py`` and of cross-validation have it by themselves.
    Lightning writes to the system's temporary folder; from there to another disk a move is a copy.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        if "://" in str(path):
            super().save_checkpoint(checkpoint, path, storage_options)
            return
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")
        with temporary.open("wb") as file:
            torch.save(checkpoint, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)


def write_whole(trainer: pl.Trainer) -> pl.Trainer:
    """Give a trainer :class:`AtomicCheckpointIO`, unless it has a plugin of its own or saves in some other way."""
    strategy = trainer.strategy
    if isinstance(strategy, SingleDeviceStrategy | DDPStrategy) and type(strategy.checkpoint_io) is TorchCheckpointIO:
        strategy.checkpoint_io = AtomicCheckpointIO()
    return trainer
