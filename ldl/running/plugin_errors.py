"""Errors that come out of a user's own class: in one line that names it, the method and the place."""

from __future__ import annotations

import traceback
from types import FrameType

import pytorch_lightning as pl
import torch
from torch import nn

from ldl.data.base import LDLDataModule

KNOWN = (
    "ldl", "torch", "torchvision", "torchmetrics", "timm", "pytorch_lightning", "lightning_fabric", "jsonargparse",
    "albumentations", "sklearn", "numpy", "scipy", "wandb", "rich",
)  # fmt: skip
"""Packages whose errors are not a plugin's."""

KINDS = (nn.Module, LDLDataModule, pl.Callback, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)
"""What a plugin may bring."""

LONGEST = 240


def plugin_error(error: BaseException) -> str | None:
    """What to say of an error inside a method of a plugin's class; None where it came from elsewhere."""
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if owner := _owner(frame):
            file = frame.f_code.co_filename
            found = f"{owner}.{frame.f_code.co_name} raised {_said(error)} ({file}:{line})"
    return found and f"{found}; LDL_TRACEBACK=1 shows the whole traceback"


def _owner(frame: FrameType) -> str | None:
    """The class, of a plugin, whose method a frame runs."""
    if str(frame.f_globals.get("__name__")).partition(".")[0] in KNOWN:
        return None
    first = frame.f_locals.get("self", frame.f_locals.get("cls"))
    cls = first if isinstance(first, type) else type(first)
    return cls.__name__ if issubclass(cls, KINDS) else None


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text if len(text) <= LONGEST else f'{text[:LONGEST]} ...'}".rstrip(": ")
