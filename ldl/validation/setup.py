"""Check the parts of a task against each other, and its data, before training: options, inputs, starting weights."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import torch
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor, nn

from ldl.batch import INPUTS, with_counts
from ldl.checkpoint import CHECKPOINT_KEY, check_same_class, in_words, read_checkpoint
from ldl.errors import LDLError, did_you_mean, naming
from ldl.head import AlternatingHead, FittedHead, Head, ImageHead
from ldl.labels import Decoder, LabelSpace
from ldl.validation.checkpoint import check_weights

TARGET_TOLERANCE = 1e-3
"""Largest distance of the sum of a target from 1."""


def check_settings(head: Head, mixup: float, decoder: str) -> None:
    """Raise LDLError for options of a task that are out of range or do not fit its head."""
    if not 0 <= mixup <= 1000:
        raise LDLError(f"model.mixup {mixup!r} must be in 0..1000, 0 for none")
    if mixup and head.takes_bags and not isinstance(head, FittedHead):
        # An instance that only one of two bags has would become NaN, which means that it is missing.
        raise LDLError(
            f"model.mixup {mixup!r} mixes single instances, and {type(head).__name__} takes bags; set it to 0"
        )
    if decoder not in (decoders := get_args(Decoder)):
        raise LDLError(f"model.decoder {decoder!r} must be one of {', '.join(decoders)}")


def task_arguments(cls: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a task among the arguments of ``load_from_checkpoint``, without Lightning's own.

    Raises LDLError: An argument is unknown, or would weaken the checks of ldl.
    """
    taken = {"strict": (None, True), "weights_only": (None, True), "hparams_file": (None,)}
    known = list(inspect.signature(cls).parameters)
    for name, value in given.items():
        if name in taken and value not in taken[name]:
            raise LDLError(
                f"load_from_checkpoint cannot take {name}={value!r}: it loads all weights, unpickles nothing, and "
                "finds the options in the checkpoint; leave it out"
            )
        if name not in taken and name not in known:
            raise LDLError(
                f"{cls.__name__} has no argument {name!r}{did_you_mean(name, known)}; it has {', '.join(known)}"
            )
    return {name: value for name, value in given.items() if name not in taken}


def check_images(head: Head, backbone: nn.Module, whole: bool) -> None:
    """Raise LDLError unless a head takes the backbone's output: ``whole`` images, or features."""
    if isinstance(head, ImageHead) != whole:
        raise LDLError(
            f"{type(head).__name__} cannot use the backbone {type(backbone).__name__}; heads fitted on images, and "
            "they alone, take WholeImages; leave model.backbone out, or null"
        )


def check_features_of(head: Head, backbone: Any) -> None:
    """Raise LDLError for a head that cannot learn from what a built backbone returns: bags, or members."""
    name = type(head).__name__
    if backbone.gives_bags and not head.takes_bags:
        by_gradient = not isinstance(head, AlternatingHead | FittedHead)
        pooled = f"pool it with --model.head Bagged --model.head.head {name}, or use" if by_gradient else "use"
        raise LDLError(f"{name} takes single instances, and the data are bags; {pooled} MILBoost")
    if backbone.gives_members and (isinstance(head, FittedHead) or head.takes_bags):
        how = "takes bags" if head.takes_bags else "is fitted in one go"
        raise LDLError(
            f"{name} {how}, and the members of {type(backbone).__name__} learn with a head by gradient; use the "
            "backbone Identity"
        )


def check_missing(head: Head, missing: bool) -> None:
    """Raise LDLError for a head that takes no missing features if the data have some."""
    if missing and not head.takes_missing:
        raise LDLError(
            f"{type(head).__name__} takes no missing features, and the data have some; fill them, or use a head that "
            "takes them, such as BoostedTrees"
        )


def warn_of_bf16(precision: str, device: torch.device) -> None:
    """Warn that bf16 may give NaN on a CPU with AVX-512.

    There oneDNN's gradient of a convolution kernel may read unwritten memory. This was seen with a 3x3 kernel on a 1x1
    map, in about half of all runs, in torch 2.14 with AMX and in torch 2.15 also without it.
    """
    if "bf16" in precision and device.type == "cpu" and torch.cpu._is_avx512_supported():
        rank_zero_warn(
            f"trainer.precision {precision} on a processor with AVX-512: convolutions over very small maps may give "
            "NaN; use --trainer.precision 32-true if the loss does",
            category=UserWarning,
        )


class PlainBatches:
    """Complete the batches of plain DataLoaders to batches as ``ldl.batch`` describes them."""

    def __init__(self) -> None:
        self._full = 0

    def complete(self, batch: Any, batch_idx: int, classes: int, train: bool, wants_target: bool) -> dict[str, Any]:
        """Return a batch with its counts, ``weight`` (B,), by default 1, and ``index`` (B,), by default the position.

        Args:
            batch: A dict, or the tuple (input, target). A batch of a data module of ldl is returned as it is.
            batch_idx: Number of the batch in the epoch.
            classes: Number of labels C.
            train: Whether the batch is for training.
            wants_target: Whether the batch must have distributions over C labels.

        Returns:
            The batch. If it is wrong, its entry ``error`` states why, and all processes raise it together.
        """
        if isinstance(batch, list | tuple) and len(batch) == 2 and all(isinstance(part, Tensor) for part in batch):
            batch = dict(zip(("input", "target"), batch))
        if not isinstance(batch, dict) or "rows" in batch or "error" in batch:
            return with_counts(batch, train)
        given: Any = next((batch[name] for name in INPUTS if name in batch), None)
        target = batch.get("target")
        for name, column in (("input", given), ("target", target)):
            if not isinstance(column, Tensor) and (name == "input" or wants_target):
                columns = ", ".join(map(str, batch))
                return {"error": f"a batch has the columns {columns}, and needs a tensor {name!r} (B, ...)"}
        if isinstance(target, Tensor) and (error := _wrong_target(target, classes)):
            return {"error": error}
        self._full = max(len(given), self._full if batch_idx else 0)
        index = batch_idx * self._full + torch.arange(len(given), device=given.device)
        return with_counts({"weight": torch.ones(len(given), device=given.device), "index": index, **batch}, train)


def _wrong_target(target: Tensor, classes: int) -> str | None:
    if target.shape[-1:] != (classes,) or target.ndim < 2 or not target.is_floating_point():
        return (
            f"the target of a batch is {tuple(target.shape)} of {target.dtype}, and must be distributions "
            f"(B, ..., {classes}) of floats; encode labels with LabelSpace.encode"
        )
    rows = target.double().flatten(1, -2) if target.ndim > 2 else target.double()[:, None]
    sums, least = rows.sum(-1), rows.amin(-1)
    # A comparison with NaN is false.
    wrong = ~(((sums - 1).abs() <= TARGET_TOLERANCE) & (least >= 0))
    if not bool(wrong.any()):
        return None
    row, place = wrong.nonzero()[0].tolist()
    if bool(sums[row, place].isnan()):
        return f"the target of row {row} of a batch is NaN; leave the row out"
    return (
        f"the target of row {row} of a batch has the sum {float(sums[row, place]):g} and the least entry "
        f"{float(least[row, place]):g}; a distribution has the sum 1, and no entry below 0"
    )


def begin_from(path: str | Path, head: Head, backbone: nn.Module, labels: LabelSpace) -> None:
    """Load the weights of a checkpoint into a built head and backbone of the same classes, for fine-tuning.

    Options that change no shape, such as learning rates, dropout and freezing, may differ from the checkpoint.

    Raises:
        LDLError: The file is no checkpoint of ldl, the head is fitted in one go, or head, backbone, sizes or label
            space differ.
    """
    if isinstance(head, FittedHead):
        raise LDLError(
            f"{type(head).__name__} is always fitted from scratch and cannot begin from {path}; give that file to "
            "--model.backbone.weights"
        )
    checkpoint = read_checkpoint(path)
    described, state = checkpoint[CHECKPOINT_KEY], checkpoint["state_dict"]
    if (known := LabelSpace.from_dict(described["labels"])) != labels:
        raise LDLError(
            f"{path} has the labels {in_words(known, labels)}, and the data have {in_words(labels, known)}; give "
            "the data the same, such as by data.min_age and data.max_age, or use only its backbone: "
            "--model.backbone.weights"
        )
    for part, module in (("backbone", backbone), ("head", head)):
        check_same_class(path, part, described[part], module)
        own = {name.removeprefix(f"{part}."): held for name, held in state.items() if name.startswith(f"{part}.")}
        own = _renumbered(own, module)
        with naming(f"{path} does not fit model.{part}"):
            check_weights(module, own)
        module.load_state_dict(own)


def _renumbered(state: dict[str, Tensor], module: nn.Module) -> dict[str, Tensor]:
    """Return ``state`` with the names of ``module`` if the names differ only by numbers: dropout layers count too."""

    def form(names: Iterable[str]) -> list[str]:
        return [re.sub(r"\.\d+\.", ".", name) for name in names]

    names = list(module.state_dict())
    return dict(zip(names, state.values())) if form(names) == form(state) else state
