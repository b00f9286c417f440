"""Read checkpoints without unpickling, compare them with a configured model, and write files atomically."""

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

from ldl.errors import LDLError, naming, some
from ldl.labels import LabelSpace
from ldl.moved import current_path
from ldl.plugins import discover
from ldl.spec import differences, to_spec
from ldl.validation.archive import check_archive
from ldl.validation.checkpoint import CALIBRATION_KEY, check_form, check_memory, check_weights
from ldl.validation.files import check_file

M = TypeVar("M", bound=nn.Module)

CHECKPOINT_KEY = "ldl"
"""Entry of a checkpoint, beside Lightning's: the description of its model."""
OPTIONS_KEY = "options"
"""Entry of a checkpoint: the configuration of its run."""
LAST = "last"
"""The ``--ckpt_path`` that stands for ``checkpoints/last.ckpt`` of ``--run_dir``, if that exists."""

RESUME_ADVICE = (
    "files written before are complete; free disk space, and resume with --ckpt_path RUN/checkpoints/last.ckpt"
)
"""Advice if a file of a run cannot be written."""

OUTPUT_ADVICE = "free disk space, or give another --out"
"""Advice if the output file of a command cannot be written."""


def read_checkpoint(path: str | Path, map_location: Any = "cpu") -> dict[str, Any]:
    """Return the content of a checkpoint of ldl, and discover plugins, so that their heads can be rebuilt.

    Raises:
        LDLError: The file is missing, damaged, needs unpickling, or is of another program.
    """
    discover()
    path = Path(os.path.expanduser(path))
    check_file(path, "checkpoint", "give the file of one, such as RUN/checkpoints/last.ckpt")
    check_archive(path, packed=False)
    try:
        checkpoint = torch.load(path, map_location=map_location, weights_only=True)
    except Exception as error:  # errors of pickle, zip and torch have no common base, and may have no text
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:160]
        if not zipfile.is_zipfile(path):
            reason = "it is no archive of torch, or a damaged one; give one such as RUN/checkpoints/last.ckpt"
        raise LDLError(f"{path} cannot be read as a checkpoint: {reason}") from error
    _find_scaling(checkpoint)
    with naming(f"{path} is no checkpoint of ldl"):
        check_form(checkpoint, CHECKPOINT_KEY, path.stat().st_size)
    return checkpoint


def _find_scaling(checkpoint: Any) -> None:
    """Take the scaling of features from the state of the data module, where older checkpoints have it."""
    described = checkpoint.get(CHECKPOINT_KEY) if isinstance(checkpoint, dict) else None
    if isinstance(described, dict) and described.get("preprocessing") is None:
        states = [
            state for state in checkpoint.values() if isinstance(state, dict) and {"kind", "clip"} <= state.keys()
        ]
        if states:
            described["preprocessing"] = {"features": None, "key": None, "scaling": states[0]}


def describe(task: Any) -> dict[str, Any]:
    """Return the description of a ``Task``; with the weights, it suffices to rebuild the model."""
    return {
        "head": to_spec(task.head),
        "backbone": to_spec(task.backbone),
        "labels": _own(task.labels.to_dict()),
        "input_shape": list(task.input_shape or ()),
        "decoder": task.decoder,
        "preprocessing": _own(task.preprocessing),
        "temperature": task.temperature,
        "model_votes": task.model_votes,
        "raters": None if task.raters is None else _own(task.raters.state()),
    }


def last_of(run_dir: str | Path) -> Path:
    """Return the path of the checkpoint of the last epoch, or of the batch at which a signal stopped the run."""
    return Path(run_dir) / "checkpoints" / "last.ckpt"


def _own(content: Any) -> Any:
    """Replace scalars of numpy by those of Python at any depth, since reading a checkpoint accepts no others."""
    if isinstance(content, dict):
        return {_own(key): _own(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return (tuple if isinstance(content, tuple) else list)(map(_own, content))
    return content.item() if isinstance(content, np.generic) else content


def load_model(path: str | Path, checkpoint: dict[str, Any], make: Callable[[], M]) -> M:
    """Return the model of a checkpoint with its weights.

    Args:
        path: The checkpoint's file.
        checkpoint: Its content, from :func:`read_checkpoint`.
        make: Makes the model without its weights.

    Raises:
        LDLError: The description is damaged, or the weights are of another model. Shapes are compared before memory is
            taken for them.
    """
    state = checkpoint["state_dict"]
    try:
        _compare_shapes(make, dict(state))
        model = make()
        check_weights(model, state)
        model.load_state_dict(state)
        return model
    except Exception as error:  # a class may accept arguments that it cannot be built with
        kind = "" if isinstance(error, LDLError) else f"{type(error).__name__} "
        raise LDLError(f"{path}: {kind}{' '.join(str(error).split())[:400]}") from error


def _compare_shapes(make: Callable[[], nn.Module], state: dict[str, Any]) -> None:
    """Raise LDLError if a model without numbers, which takes no memory, has other shapes than its saved weights."""
    try:
        with torch.device("meta"):
            model = make()
    except (RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, LDLError) or "meta" not in str(error):
            raise
        return  # a plugin's build computes with numbers
    check_weights(model, state)
    check_memory(model, state)


def check_same_model(checkpoint: dict[str, Any], head: nn.Module, backbone: nn.Module) -> None:
    """Raise LDLError, with the differences, if a checkpoint has another head or backbone than configured.

    Options that ``may_change``, such as the file of the first weights, may differ.
    """
    if CHECKPOINT_KEY not in checkpoint:
        raise LDLError(
            f"this is no checkpoint of ldl: it has no entry {CHECKPOINT_KEY!r}; give one that train.py saved"
        )
    for part, component in (("head", head), ("backbone", backbone)):
        if changes := differences(checkpoint[CHECKPOINT_KEY][part], component):
            raise LDLError(
                f"the checkpoint's {part} has {', '.join(changes)}; resume with the configuration it was saved with"
            )


def check_same_class(path: str | Path, part: str, spec: dict[str, Any], component: nn.Module) -> None:
    """Raise LDLError if the head or backbone of a checkpoint has another class, or is another network."""
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
    """Raise LDLError if data have other labels, or inputs of another shape, than the model."""
    if made != given:
        (labels, shape), (others, other) = made, given
        raise LDLError(
            f"the model was made for inputs {shape} and {len(labels)} labels ({in_words(labels, others)}), but the "
            f"data have inputs {other} and {len(others)} labels ({in_words(others, labels)}); use the data it was "
            "trained on"
        )


def in_words(labels: LabelSpace, others: LabelSpace) -> str:
    """Return the first and last label, or kind and names if ``others`` have the same first and last label."""
    ends, end = (f"{each.names[0]} to {each.names[-1]} {each.unit}".strip() for each in (labels, others))
    return ends if ends != end or labels == others else f"{labels.kind} {some(labels.names)}"


@contextmanager
def replacing(path: Path, advice: str = RESUME_ADVICE) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces ``path`` once it is on the disk, and is removed after an error.

    Args:
        path: The file to write; its folder is made.
        advice: Advice for the message of an error.

    Raises:
        LDLError: The file cannot be written, as on a full disk; the old file is unchanged.
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
        # torch hides the cause behind an error of its own.
        cause = error if isinstance(error, OSError) else error.__context__
        if isinstance(cause, OSError) and isinstance(error, OSError | RuntimeError):
            raise LDLError(f"{path} cannot be written: {cause.strerror}; {advice}") from error
        raise


def write_checkpoint(task: Any, path: str | Path) -> None:
    """Write a checkpoint with a ``Task`` alone, for ``Task.load_from_checkpoint``, without states of its training.

    Raises LDLError if the file cannot be written.
    """
    checkpoint: dict[str, Any] = {
        "epoch": 0,
        "global_step": 0,
        "pytorch-lightning_version": pl.__version__,
        "state_dict": task.state_dict(),
        CHECKPOINT_KEY: describe(task),
    }
    if task.calibration is not None:
        checkpoint[CALIBRATION_KEY] = task.calibration.to_state()
    with replacing(Path(path), OUTPUT_ADVICE) as file:
        torch.save(checkpoint, file)


class AtomicCheckpointIO(TorchCheckpointIO):
    """Plugin of ``Trainer`` that writes each checkpoint completely or not at all.

    The trainers of ``train.py`` and of cross-validation have it. Lightning writes to the system's temporary folder, and
    a move from there to another disk is a copy. Only files in folders to which this plugin has written are removed,
    since a resumed checkpoint names the files to remove.
    """

    def __init__(self) -> None:
        super().__init__()
        self._folders: set[str] = set()

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Write a file beside ``path`` and rename it, so that ``path`` is never incomplete."""
        if "://" in str(path):
            super().save_checkpoint(checkpoint, path, storage_options)
            self._folders.add(_folder(path))
            return
        with replacing(Path(path)) as file:
            torch.save(checkpoint, file)
        self._folders.add(_folder(path))

    def remove_checkpoint(self, path: str | Path) -> None:
        """Remove a file, if this plugin has written to its folder; else leave it."""
        if _folder(path) in self._folders and ("://" in str(path) or Path(path).is_file()):
            super().remove_checkpoint(path)


def _folder(path: str | Path) -> str:
    return str(path).rpartition("/")[0] if "://" in str(path) else str(Path(path).parent.resolve())


def save_atomically(trainer: pl.Trainer) -> pl.Trainer:
    """Give a trainer :class:`AtomicCheckpointIO`, unless it has a plugin of its own or saves in another way."""
    strategy = trainer.strategy
    if isinstance(strategy, SingleDeviceStrategy | DDPStrategy) and type(strategy.checkpoint_io) is TorchCheckpointIO:
        strategy.checkpoint_io = AtomicCheckpointIO()
    return trainer


write_whole = save_atomically
"""The name of version 0.2.0."""
