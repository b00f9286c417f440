"""Compiles what a training step computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import pytorch_lightning as pl
import torch
from torch import nn

from ldl.errors import LDLError, SharedError
from ldl.head import FittedHead, Head

Compiled = Literal["none", "head", "all"]


class Compile(pl.Callback):
    """Has torch compile the head's loss, or all that leads to it, while a model is trained; ``Task`` adds it by itself.

    Functions are compiled, not modules, so weights keep their names. Every size of batch gets a graph of its own, which
    a resumed run makes anew alike; maps, where the number of pixels is another one every time, share one.

    Args:
        what: The ``head`` or ``all``, the backbone too; of ``none`` there is no callback.
        head: The head.
        backbone: The backbone.

    Raises:
        LDLError: there is nothing to compile, or it would be compiled twice.
    """

    def __init__(self, what: Compiled, head: Head, backbone: nn.Module) -> None:
        if what not in (known := get_args(Compiled)):
            raise LDLError(f"model.compile {what!r} must be one of {', '.join(known)}")
        if what != "none" and isinstance(head, FittedHead):
            name = type(head).__name__
            raise LDLError(f"model.compile {what}: {name} is fitted and takes no steps to compile; set none")
        if what == "all" and getattr(backbone, "compiled", False):
            raise LDLError("model.compile all compiles the backbone already; set model.backbone.compiled false")
        self.what = what

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        head, backbone = pl_module.head, pl_module.backbone
        # In the instance's own dict, where a function hides the method.
        vars(head)["loss"] = _compiled(head.loss, pl_module.gives_maps)
        if self.what == "all":
            plain, compiled = backbone.forward, _compiled(backbone.forward, pl_module.gives_maps)
            vars(backbone)["forward"] = lambda *inputs: (compiled if backbone.training else plain)(*inputs)

    def on_train_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        vars(pl_module.head).pop("loss", None)
        vars(pl_module.backbone).pop("forward", None)

    def on_exception(self, trainer: pl.Trainer, pl_module: Any, exception: BaseException) -> None:
        self.on_train_end(trainer, pl_module)


def _compiled(function: Callable[..., Any], dynamic: bool) -> Callable[..., Any]:
    from torch._dynamo.exc import TorchDynamoException  # here: it takes a second

    compiled = torch.compile(function, dynamic=dynamic)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return compiled(*args, **kwargs)
        except TorchDynamoException as error:
            reason = " ".join(str(error).split())[:200]
            raise SharedError(
                f"model.compile: torch cannot compile this here: {reason}; install a C++ compiler (for CUDA: Triton), "
                "or set model.compile none"
            ) from error

    return call
