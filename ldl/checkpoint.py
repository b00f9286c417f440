"""Reading checkpoints without unpickling, and holding them against a configured model."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO
from pytorch_lightning.strategies import DDPStrategy, SingleDeviceStrategy
from torch import nn

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.plugins import discover
from ldl.spec import current_path, differences, to_spec
from ldl.trust.archive import check_archive
from ldl.trust.schema import check_form, check_weights
from ldl.trust.size import check_size

M = TypeVar("M", bound=nn.Module)

CHECKPOINT_KEY = "ldl"
"""Where a checkpoint keeps the description of its model, next to Lightning's own entries."""

MENDED = "what was written before is whole: make room, and go on with --ckpt_path RUN/checkpoints/last.ckpt"
"""What to do where a file of a run cannot be written."""

MENDED_OUT = "make room, or give another --out"
"""What to do where the one file that a command was asked for cannot be."""


def read_checkpoint(path: str | Path, map_location: Any = "cpu") -> dict[str, Any]:
    """The content of a checkpoint of ldl; plugins are discovered, so that their heads can be rebuilt.

    Raises LDLError: no such file, a damaged one, one that needs unpickling, or one of another program.
    """
    discover()
    if not os.path.isfile(path):
        raise LDLError(f"no checkpoint at {path}; give --ckpt_path a file, such as RUN/checkpoints/last.ckpt")
    path = Path(path)
    check_archive(path, packed=False)
    try:
        checkpoint = torch.load(path, map_location=map_location, weights_only=True)
    except Exception as error:  # those of pickle, zip and torch have no common base, and may have no text
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:160]
        if not zipfile.is_zipfile(path):
            reason = "it is no archive of torch, or a damaged one; give one such as RUN/checkpoints/last.ckpt"
        raise LDLError(f"{path} cannot be read as a checkpoint: {reason}") from error
    _find_scaling(checkpoint)
    try:
        check_form(checkpoint, CHECKPOINT_KEY, path.stat().st_size)
    except LDLError as error:
        raise LDLError(f"{path} is no checkpoint of ldl: {error}") from None
    return checkpoint


def _find_scaling(checkpoint: Any) -> None:
    """Describe the scaling of features where an older checkpoint has it: with its data module alone."""
    described = checkpoint.get(CHECKPOINT_KEY) if isinstance(checkpoint, dict) else None
    if isinstance(described, dict) and described.get("preprocessing") is None:
        states = [
            state for state in checkpoint.values() if isinstance(state, dict) and {"kind", "clip"} <= state.keys()
        ]
        if states:
            described["preprocessing"] = {"features": None, "key": None, "scaling": states[0]}


def describe(task: Any) -> dict[str, Any]:
    """What a checkpoint says of a ``Task``: from this and the weights alone the model is built again."""
    return {
        "head": to_spec(task.head),
        "backbone": to_spec(task.backbone),
        "labels": _own(task.labels.to_dict()),
        "input_shape": list(task.input_shape or ()),
        "decoder": task.decoder,
        "preprocessing": _own(task.preprocessing),
        "temperature": task.temperature,
    }


def _own(content: Any) -> Any:
    """Python's numbers and texts in place of numpy's, at any depth: no others are read from a checkpoint."""
    if isinstance(content, dict):
        return {_own(key): _own(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return (tuple if isinstance(content, tuple) else list)(map(_own, content))
    return content.item() if isinstance(content, np.generic) else content


def load_model(path: str | Path, checkpoint: dict[str, Any], make: Callable[[], M]) -> M:
    """The model that a checkpoint describes, with its weights.

    It is made without memory first, so that what it would take is known before any is taken.

    Args:
        path: The checkpoint's file.
        checkpoint: Its content, of :func:`read_checkpoint`.
        make: Makes the model, without its weights.

    Raises:
        LDLError: the description is of no model, of one that is too large, or of one with other weights.
    """
    state = checkpoint["state_dict"]
    try:
        if (sketch := check_size(make, Path(path).stat().st_size)) is not None:
            check_weights(sketch, state)
        model = make()
        check_weights(model, state)
        model.load_state_dict(state)
        return model
    except Exception as error:  # of a class that takes its arguments, and cannot be built with them
        kind = "" if isinstance(error, LDLError) else f"{type(error).__name__} "
        raise LDLError(f"{path}: {kind}{' '.join(str(error).split())[:400]}") from error


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


def check_same_class(path: str | Path, part: str, spec: dict[str, Any], component: nn.Module) -> None:
    """Refuse a checkpoint whose ``part``, head or backbone, is of another class or another network. Raises LDLError."""
    (saved, has), (wanted, needs) = (
        (current_path(of["class_path"]).rpartition(".")[2], of["init_args"].get("name"))
        for of in (spec, to_spec(component))
    )
    if (saved, has) != (wanted, needs):
        raise LDLError(
            f"{path} holds a {part} {saved} {has or ''}".rstrip()
            + f", not {wanted} {needs or ''}".rstrip()
            + f"; correct model.{part}, or give another checkpoint"
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


@contextmanager
def replacing(path: Path, mend: str = MENDED) -> Iterator[IO[bytes]]:
    """A file beside ``path``, whose folder is made, which takes its place once all is on the disk; else it goes.

    Args:
        path: The file to write.
        mend: What to do where it cannot be written.

    Raises:
        LDLError: it cannot be written, as on a full disk; what was at ``path`` is there as before.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        # torch tells in words of its own what became of its file.
        cause = error if isinstance(error, OSError) else error.__context__
        if isinstance(cause, OSError) and isinstance(error, OSError | RuntimeError):
            raise LDLError(f"{path} cannot be written: {cause.strerror}; {mend}") from error
        raise


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint beside its place and then moves it there: a kill leaves the old one or the new one.

    It is a plugin of ``Trainer``; the trainers of ``train.py`` and of cross-validation have it by themselves.
    Lightning writes to the system's temporary folder; from there to another disk a move is a copy.

    It removes files only from folders that it has written to: which ones to remove, a resumed checkpoint says.
    """

    def __init__(self) -> None:
        super().__init__()
        self._folders: set[str] = set()

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        if "://" in str(path):
            super().save_checkpoint(checkpoint, path, storage_options)
            self._folders.add(_folder(path))
            return
        with replacing(Path(path)) as file:
            torch.save(checkpoint, file)
        self._folders.add(_folder(path))

    def remove_checkpoint(self, path: str | Path) -> None:
        if _folder(path) in self._folders and ("://" in str(path) or Path(path).is_file()):
            super().remove_checkpoint(path)


def _folder(path: str | Path) -> str:
    return str(path).rpartition("/")[0] if "://" in str(path) else str(Path(path).parent.resolve())


def write_whole(trainer: pl.Trainer) -> pl.Trainer:
    """Give a trainer :class:`AtomicCheckpointIO`, unless it has a plugin of its own or saves in some other way."""
    strategy = trainer.strategy
    if isinstance(strategy, SingleDeviceStrategy | DDPStrategy) and type(strategy.checkpoint_io) is TorchCheckpointIO:
        strategy.checkpoint_io = AtomicCheckpointIO()
    return trainer
