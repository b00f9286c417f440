"""A trained task into a file, which is then asked whether it says the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from ldl.backbones.split import evaluating
from ldl.checkpoint import MENDED_OUT, replacing
from ldl.errors import LDLError, did_you_mean
from ldl.export.deployed import Deployed
from ldl.export.formats import FORMATS, quietly
from ldl.export.licences import licences
from ldl.export.metadata import metadata
from ldl.export.parity import CLOSE, Parity, draw, measure
from ldl.head import FittedHead
from ldl.task import Task

SHARE_APART = 0.05
"""Of rows that lie so near to a threshold of a tree, or between two neighbours, that rounding decides."""


class Exported(NamedTuple):
    """A file that was written.

    Attributes:
        file: Where it lies.
        size: Its bytes.
        parity: How far it is from the task; None where nothing that could run it is installed.
    """

    file: Path
    size: int
    parity: Parity | None


def export(source: Task | str | Path, file: str | Path, to: str = "onnx", force: bool = False) -> Exported:
    """Write a trained model as one file that runs without ldl: see :class:`Deployed` for inputs and outputs.

    The file is run before it is kept, at three sizes of batches, and held against the task.

    Args:
        source: A trained task, or the path of a checkpoint.
        file: Where to write.
        to: ``onnx``, for any runtime of ONNX; ``torchscript`` or ``exported``, which torch loads alone
            (``torch.jit.load``, ``torch.export.load``).
        force: Replace a file that is there.

    Raises:
        LDLError: another format, a file that is there, a task that :class:`Deployed` refuses, a package that is not
            installed, or a file that does not say what the task says.
    """
    if to not in FORMATS:
        raise LDLError(f"format {to!r} is none of {', '.join(FORMATS)}{did_you_mean(to, FORMATS)}")
    file = Path(file)
    if file.exists() and not force:
        raise LDLError(f"{file} is there already; give --force to replace it, or another --out")
    task = source if isinstance(source, Task) else Task.load_from_checkpoint(source)
    with _lent(task):
        model = Deployed(task).eval()
        example = torch.from_numpy(draw(task, 7, np.random.default_rng(1)))
        facts = metadata(task, model, licences(task, None if isinstance(source, Task) else source))
        with quietly():
            data = _written(model, example, facts, to)
            parity = _measured(task, data, to)
    if parity is not None and parity.apart > (SHARE_APART * parity.rows if _jumps(task) else 0):
        raise LDLError(
            f"the {to} file of {type(task.head).__name__} is not kept: {parity.apart} of {parity.rows} rows differ "
            f"from torch by more than {CLOSE:g}; please report it with the checkpoint's options"
        )
    with replacing(file, MENDED_OUT) as opened:
        opened.write(data)
    return Exported(file, len(data), parity)


@contextmanager
def _lent(task: Task) -> Iterator[None]:
    """The task on the CPU and in evaluation, for a while; then it is where and as it was."""
    device = task.device
    with evaluating(task):
        try:
            task.cpu()
            yield
        finally:
            task.to(device)


def _written(model: Deployed, example: torch.Tensor, facts: dict[str, str], to: str) -> bytes:
    try:
        return FORMATS[to].write(model, example, facts)
    except LDLError:
        raise
    except Exception as error:  # those of torch's several recorders have no common base
        reason = " ".join((str(error).strip() or type(error).__name__).split())[:200]
        raise LDLError(
            f"{type(model.head).__name__} on {type(model.backbone).__name__} cannot be recorded as {to}: {reason}"
        ) from error


def _measured(task: Task, data: bytes, to: str) -> Parity | None:
    try:
        run = FORMATS[to].load(data)
    except LDLError:
        return None
    return measure(task, run)


def _jumps(task: Task) -> bool:
    """Whether a prediction may jump where a feature moves by its last digit, as those of trees and neighbours do."""
    return any(isinstance(part, FittedHead) for part in task.modules())
