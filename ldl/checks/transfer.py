"""Whether a trained model can be begun from, and doing so: fine-tuning on other data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from torch import Tensor, nn

from ldl.checkpoint import CHECKPOINT_KEY, check_same_class, read_checkpoint
from ldl.errors import LDLError
from ldl.head import FittedHead, Head
from ldl.labels import LabelSpace
from ldl.trust.schema import check_weights


def begin_from(path: str | Path, head: Head, backbone: nn.Module, labels: LabelSpace) -> None:
    """Give a head and a backbone, both built, the weights that a checkpoint has of their like.

    Options that change no shape, such as learning rates, dropout and what is frozen, may differ from the checkpoint's.

    Raises:
        LDLError: no checkpoint of ldl, one of another head, backbone, size or label space, or a fitted head.
    """
    if isinstance(head, FittedHead):
        raise LDLError(
            f"{type(head).__name__} is fitted anew and cannot begin from {path}; give that file to "
            "--model.backbone.weights"
        )
    checkpoint = read_checkpoint(path)
    described, state = checkpoint[CHECKPOINT_KEY], checkpoint["state_dict"]
    if (known := LabelSpace.from_dict(described["labels"])) != labels:
        raise LDLError(
            f"{path} knows the labels {known.names[0]} to {known.names[-1]}, and the data have {labels.names[0]} to "
            f"{labels.names[-1]}; give the data the same, such as by data.min_age and data.max_age, or take its "
            "backbone alone: --model.backbone.weights"
        )
    for part, module in (("backbone", backbone), ("head", head)):
        check_same_class(path, part, described[part], module)
        own = {name.removeprefix(f"{part}."): held for name, held in state.items() if name.startswith(f"{part}.")}
        own = _renumbered(own, module)
        try:
            check_weights(module, own)
        except LDLError as error:
            raise LDLError(f"{path} does not fit model.{part}: {error}") from error
        module.load_state_dict(own)


def _renumbered(state: dict[str, Tensor], module: nn.Module) -> dict[str, Tensor]:
    """``state`` by the names of ``module``, where the two differ by numbers alone: dropout is a layer, and counts."""

    def form(names: Iterable[str]) -> list[str]:
        return [re.sub(r"\.\d+\.", ".", name) for name in names]

    names = list(module.state_dict())
    return dict(zip(names, state.values())) if form(names) == form(state) else state
