"""The record of a run in its checkpoints: its options, its training rows, and how inputs are read.

A later run, test or prediction is compared with this record.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor
from typing_extensions import override

from ldl.backbones.base import Backbone
from ldl.checkpoint import CHECKPOINT_KEY, OPTIONS_KEY
from ldl.command.arguments import Argument, argument
from ldl.command.configs import class_name, read_config
from ldl.data.base import LDLDataModule
from ldl.data.images.locators import shows_objects
from ldl.data.picture_folder import PictureFolder
from ldl.errors import LDLError
from ldl.head import Head
from ldl.inference.data import TableFile, WholePictures
from ldl.options import names_with_role, options_of, role_of
from ldl.protocols import Fold
from ldl.run.run_options import is_neutral
from ldl.spec import from_spec
from ldl.tables.csv_table import MARKS
from ldl.task import Task
from ldl.validation.yaml_text import resolved

ROWS_KEY = "trained_on"
"""Entry of a checkpoint: a digest of the data, and the part of the split of each instance."""
TRAIN, VAL = 1, 2
SAMPLED = 1000
"""Number of instances in the digest of the data."""


class Record(pl.Callback):
    """Stores the configuration of a run, ``content``, in its checkpoints."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    @override
    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        checkpoint[OPTIONS_KEY] = {"given": self.content}


def check_resumed(checkpoint: dict[str, Any], path: str, content: dict[str, Any]) -> None:
    """Raise LDLError if the configuration ``content`` has another option that a resumed run takes from its checkpoint.

    Args:
        checkpoint: The content of the checkpoint.
        path: Its file; older checkpoints have their configuration beside it.
        content: The configuration.
    """
    before = _saved(checkpoint, path).get("model")
    if not isinstance(before, dict):
        return
    started = {name: names_with_role(base, "start") for name, base in (("head", Head), ("backbone", Backbone))}
    for name, _, _ in _differences(before, content["model"], "model"):
        _, part, *inside = name.split(".")
        if role_of(Task, part) == "start" or (inside and inside[-1] in started.get(part, ())):
            raise LDLError(
                f"{name} has no effect on a resumed run, which keeps the value in its checkpoint; leave the option "
                "out, or begin a new run with these weights: --model.start in place of --ckpt_path"
            )


def changes_of(checkpoint: dict[str, Any], path: str, content: dict[str, Any]) -> str:
    """Return in one line the options of a resumed run that differ from those of its checkpoint; empty for none.

    The arguments are those of :func:`check_resumed`. Options that change no result are left out.
    """
    changes = [
        f"{name} {now} in place of {before}"
        for name, before, now in _differences(_saved(checkpoint, path), content)
        if not is_neutral(name) and name.split(".")[:2] not in (["model", "head"], ["model", "backbone"])
    ]
    return f"from step {checkpoint['global_step']:,} on: {', '.join(changes)}" if changes else ""


def _differences(before: Any, now: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield name, old and new value of the options that differ."""
    if isinstance(before, dict) and isinstance(now, dict) and class_name(before) == class_name(now):
        for name in sorted(now.keys() & before.keys()):
            path = where if name == "init_args" else f"{where}.{name}".removeprefix(".")
            yield from _differences(before[name], now[name], path)
    elif before != now:
        old, new = (class_name(value) if isinstance(value, dict) else value for value in (before, now))
        yield where, old, new


def _saved(checkpoint: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the configuration of a checkpoint's run; empty if it is unknown."""
    kept, beside = checkpoint.get(OPTIONS_KEY), Path(path).parent.parent / "config.yaml"
    saved = kept.get("given") if isinstance(kept, dict) else resolved(read_config(beside)) if beside.is_file() else {}
    return saved if isinstance(saved, dict) else {}


class TrainedRows(pl.Callback):
    """Stores in checkpoints which instances are for training and which for validation.

    Args:
        data: The data module, set up.
    """

    def __init__(self, data: LDLDataModule) -> None:
        self.data, self.identity = data, identity(data)

    @override
    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        part, split = torch.zeros(self.data.size, dtype=torch.uint8), self.data.split
        part[split.train], part[split.val] = TRAIN, VAL
        checkpoint[ROWS_KEY] = {"data": self.identity, "part": part}


def trained_fold(data: LDLDataModule, checkpoint: dict[str, Any], path: str, validates: bool) -> Fold | None:
    """Return the fold of a checkpoint with the test set of the data; None if the checkpoint is of other data.

    Args:
        data: The data module, set up.
        checkpoint: The content of the checkpoint.
        path: Its file.
        validates: Whether the validation set is held out too.

    Raises:
        LDLError: The checkpoint was trained on instances that are held out now.
    """
    known = checkpoint.get(ROWS_KEY)
    if not isinstance(known, dict) or known.get("data") != identity(data):
        return None
    part = known.get("part")
    wanted = torch.uint8, torch.strided, (data.size,), "cpu"
    if not isinstance(part, Tensor) or (part.dtype, part.layout, part.shape, part.device.type) != wanted:
        raise LDLError(
            f"{path}: {ROWS_KEY}.part does not assign every instance to a part of the split; use another checkpoint"
        )
    part = part.numpy()
    held_out = [(data.split.test, part > 0, "tests"), (data.split.val, part == TRAIN, "validates")]
    for rows, seen, does in held_out[: 2 if validates else 1]:
        if again := np.count_nonzero(seen[rows]):
            raise LDLError(
                f"{path} was trained on {again} of the {len(rows)} instances that fold {data.fold} {does}; give the "
                "data.fold, folds, fold_seed, val_fraction and protocol of its run, or other data"
            )
    return Fold(np.flatnonzero(part == TRAIN), np.flatnonzero(part == VAL), data.split.test)


def identity(data: LDLDataModule) -> str:
    """Return a digest of the number of instances and of the values, targets or names of a sample of them."""
    rows = np.unique(np.linspace(0, data.size - 1, SAMPLED).astype(np.int64))
    if data.values is not None:
        content = np.asarray(data.values, dtype=np.float64)[rows].tobytes()
    elif "target" in data.columns:
        content = data.observed_target[torch.from_numpy(rows)].numpy().tobytes()
    else:
        content = "\n".join((data.names or [""] * data.size)[row] for row in rows).encode()
    return hashlib.sha256(f"{data.size}\n".encode() + content).hexdigest()


def with_new_data(arguments: list[Argument], checkpoint: dict[str, Any], path: str) -> list[Argument]:
    """Return a command line of ``--stage predict`` whose data are all instances at ``path``.

    The class of the configured data, which reads one data set with its labels and folds, is replaced by a class that
    reads inputs as the checkpoint describes. It stays if the checkpoint has no such description, if ``path`` is a list
    of faces, which may locate them, or if another of its options is given, such as a protocol. Options about labels,
    groups and training are removed.
    """
    served = _class_for(checkpoint[CHECKPOINT_KEY], path)
    if served is None:
        return arguments
    options = options_of(served).keys()
    unread = names_with_role(LDLDataModule, "label", "group", "training") - options
    kept = [each for each in arguments if each.name not in {f"--data.{name}" for name in unread}]
    of_data = [number for number, each in enumerate(kept) if each.name.startswith("--data.")]
    if {kept[number].name for number in of_data} - {f"--data.{name}" for name in options}:
        return arguments
    return [*kept[: of_data[0]], argument("data", served.__name__), *kept[of_data[0] :]]


def _class_for(described: dict[str, Any], path: str) -> type[LDLDataModule] | None:
    known = described.get("preprocessing") or {}
    if "scaling" in known:
        return TableFile
    a_list = path.lower().endswith((*MARKS, ".json", ".txt")) and os.path.isfile(os.path.expanduser(path))
    if a_list and shows_objects(known):
        return None
    if "crop_size" in known:
        return PictureFolder
    backbone = from_spec(described["backbone"], Backbone)  # type: ignore[type-abstract]
    return WholePictures if backbone.gives_maps else None
