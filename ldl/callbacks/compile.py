"""Compile the computation of a training step."""

from __future__ import annotations

from typing import Any, Literal, get_args

import pytorch_lightning as pl
import torch
from torch import nn
from typing_extensions import override

from ldl.errors import LDLError
from ldl.head import FittedHead, Head

Compiled = Literal["none", "head", "all"]


class Compile(pl.Callback):
    """Compile the loss of a head, or backbone and loss, during training; ``Task`` adds the callback.

    The callback compiles functions, not modules, so weights keep their names. Every batch size has its own graph, which
    a resumed run compiles in the same way. Maps share one graph, since their number of pixels varies.

    Args:
        scope: ``head``, or ``all`` for the backbone too; with ``none``, ``Task`` adds no callback.
        head: The head.
        backbone: The backbone.

    Raises:
        LDLError: There is nothing to compile, or the backbone compiles itself.
    """

    def __init__(self, scope: Compiled, head: Head, backbone: nn.Module) -> None:
        if scope not in (scopes := get_args(Compiled)):
            raise LDLError(f"model.compile {scope!r} must be one of {', '.join(scopes)}")
        if scope != "none" and isinstance(head, FittedHead):
            name = type(head).__name__
            raise LDLError(f"model.compile {scope}: {name} is fitted and takes no steps to compile; set none")
        if scope == "all" and getattr(backbone, "compiled", False):
            raise LDLError("model.compile all compiles the backbone already; set model.backbone.compiled false")
        self.scope = scope

    @override
    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        head, backbone = pl_module.head, pl_module.backbone
        # A function in the instance's dict overrides the method.
        name = "loss" if pl_module.raters is None else "log_outputs"
        vars(head)[name] = torch.compile(getattr(head, name), dynamic=pl_module.gives_maps)
        if self.scope == "all":
            plain = backbone.forward
            compiled = torch.compile(plain, dynamic=pl_module.gives_maps)
            vars(backbone)["forward"] = lambda *inputs: (compiled if backbone.training else plain)(*inputs)

    @override
    def on_train_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        for name in ("loss", "log_outputs"):
            vars(pl_module.head).pop(name, None)
        vars(pl_module.backbone).pop("forward", None)

    @override
    def on_exception(self, trainer: pl.Trainer, pl_module: Any, exception: BaseException) -> None:
        self.on_train_end(trainer, pl_module)
