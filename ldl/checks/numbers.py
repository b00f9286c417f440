"""Losses that are not finite and predictions that are no distributions, in one line each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from ldl.checks.watch import Watch

SHOWN = 10
"""Rows that are named."""

LARGE = 1e6
"""Inputs above it are likely to be at fault."""

EXACT, COARSE = 1e-4, 2e-2
"""How far a sum may be from 1; more where 16 bits hold what was learned or is predicted."""


def is_distribution(head: nn.Module, prediction: Tensor, value: Tensor | None = None) -> Tensor:
    """Whether all of (..., C) are at least 0 and sum to 1, and all values are finite: () bool, on the device."""
    good = _on_simplex(head, prediction).all()
    return good if value is None else good & value.isfinite().all()


def _on_simplex(head: nn.Module, prediction: Tensor) -> Tensor:
    mixed = torch.is_autocast_enabled(prediction.device.type)
    coarse = mixed or any(tensor.itemsize == 2 for tensor in (prediction, *_learned(head)))
    near = (prediction.sum(-1) - 1).abs() <= (COARSE if coarse else EXACT)
    return (prediction >= 0).all(-1) & near


def without_nan(head: nn.Module) -> Tensor:
    """Whether there is no NaN among what a head has learned: () bool, on the device."""
    return ~torch.stack([tensor.isnan().any() for tensor in _learned(head)]).any()


def _learned(head: nn.Module) -> list[Tensor]:
    return [tensor for tensor in head.state_dict().values() if tensor.is_floating_point()]


def watch_loss(watch: Watch, loss: Tensor, batch: dict[str, Tensor], trainer: pl.Trainer) -> None:
    """Note the loss of a batch."""
    rates = [group["lr"] for optimizer in trainer.optimizers for group in optimizer.param_groups]
    explain = partial(explain_loss, loss, batch, trainer.global_step, trainer.current_epoch, rates)
    watch.note(loss.isfinite(), explain)


def watch_prediction(watch: Watch, head: nn.Module, prediction: Tensor, value: Tensor | None, index: Tensor) -> None:
    """Note the predictions (B, ..., C) of the instances ``index`` (B,)."""
    watch.note(is_distribution(head, prediction, value), partial(explain_prediction, head, prediction, value, index))


def explain_loss(loss: Tensor, batch: dict[str, Tensor], step: int, epoch: int, rates: Sequence[float]) -> str:
    """Why a loss may not be finite: the inputs of a batch (B, ...), or the learning rates."""
    text = f"loss is {float(loss):g} at step {step} (epoch {epoch}), on {_rows(batch['index'])}"
    inputs = batch.get("features", batch.get("maps", batch.get("input")))
    if inputs is not None and inputs.is_floating_point() and inputs.numel():
        flat = inputs.detach().flatten(1)
        # Missing instances of a bag are NaN.
        spoilt = flat.isinf().any(1) if inputs.ndim > 2 else ~flat.isfinite().all(1)
        if bool(spoilt.any()):
            return f"{text}: the inputs of {_rows(batch['index'][spoilt])} are not finite; correct or leave out these"
        largest = float(flat.nan_to_num(0.0).abs().max())
        if largest > LARGE:
            return f"{text}: the inputs reach {largest:.3g}; scale them"
    rate = f"a learning rate of {max(rates):g}" if rates else "this learning rate"
    return (
        f"{text}: training diverges at {rate}; lower model.optimizer.lr, set trainer.gradient_clip_val or use "
        "trainer.precision 32-true (model.check_finite false goes on regardless)"
    )


def explain_prediction(head: nn.Module, prediction: Tensor, value: Tensor | None, index: Tensor) -> str:
    """Which of the predictions (B, ..., C) of the instances ``index`` (B,) is no distribution, and why."""
    name = type(head).__name__
    bad = ~_on_simplex(head, prediction)
    if value is not None and not bool(bad.any()):
        number = (~value.isfinite()).nonzero()[0, 0]
        return f"{name}.point_estimate is not finite for row {int(index[number])} of the data"
    entries = prediction[bad][0]
    text = (
        f"{name}.forward gives no distribution for row {int(index[bad.nonzero()[0, 0]])} of the data: "
        f"smallest entry {float(entries.min()):.3g}, sum {float(entries.sum()):.5g}"
    )
    if bool(entries.isfinite().all()):
        return f"{text}; entries must be at least 0 and sum to 1 along the last dimension, as after a softmax"
    if all(bool(tensor.isfinite().all()) for tensor in _learned(head)):
        return f"{text}; it divides by zero, or its inputs are too large: scale these"
    return f"{text}; what it has learned is not finite: train anew, with a lower model.optimizer.lr or other options"


def _rows(index: Tensor) -> str:
    shown = ", ".join(str(int(row)) for row in index[:SHOWN])
    more = f" and {len(index) - SHOWN} more" if len(index) > SHOWN else ""
    return f"row{'s' if len(index) > 1 else ''} {shown}{more} of the data"
