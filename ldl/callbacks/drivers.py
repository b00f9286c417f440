"""Which callbacks drive a head."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl

from ldl.callbacks.compile import Compile
from ldl.callbacks.fit_head import FitHead
from ldl.callbacks.leaf_update import LeafUpdate
from ldl.head import AlternatingHead, FittedHead, Head


def drivers(head: Head, compiled: Compile, trainer: Any = None) -> list[pl.Callback]:
    """What drives an alternating or a fitted head, or one that is compiled.

    ``trainer`` loses what has driven the head that it trained before.
    """
    if trainer is not None:
        trainer.callbacks = [each for each in trainer.callbacks if type(each) not in (Compile, FitHead, LeafUpdate)]
    drives: list[pl.Callback] = [LeafUpdate()] if isinstance(head, AlternatingHead) else []
    drives += [FitHead()] if isinstance(head, FittedHead) else []
    return [*drives, compiled] if compiled.what != "none" else drives
