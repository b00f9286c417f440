"""Detect losses that are not finite and predictions that are not distributions, without waiting for the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from ldl.collective import Collective
from ldl.errors import SharedError

MAX_ROWS_NAMED = 10
LARGE_INPUT = 1e6
"""Inputs above this size are likely to be the cause of a loss that is not finite."""
SUM_TOLERANCE, SUM_TOLERANCE_16_BIT = 1e-4, 2e-2
"""Allowed distance of a sum from 1. The second holds where weights or predictions have 16 bits."""


class Flag:
    """Result of a check, () bool, on its way to the host.

    Args:
        good: Whether the check passed.
        explain: Returns the error message. It is called only if the check failed.
    """

    def __init__(self, good: Tensor, explain: Callable[[], str]) -> None:
        self.explain = explain
        self._good = good.detach().to("cpu", non_blocking=True)
        self._copied = None if good.device.type == "cpu" else torch.Event(good.device)
        if self._copied is not None:
            self._copied.record()

    @property
    def is_late(self) -> bool:
        """Whether the flag comes from another device than the CPU."""
        return self._copied is not None

    def wait(self) -> bool:
        """Wait for the flag and return it."""
        if self._copied is not None:
            self._copied.synchronize()
        return bool(self._good)


class DeferredChecks:
    """Checks of the last steps of this process.

    If a step on the CPU fails a check, the run stops before the next step, on all processes together. The flag of a
    step on another device is read one batch later, so that the device never waits for the host.
    """

    def __init__(self) -> None:
        self._noted: list[Flag] = []
        self._due: list[Flag] = []

    def note(self, good: Tensor, explain: Callable[[], str]) -> None:
        """Add a check; see :class:`Flag` for the arguments."""
        self._noted.append(Flag(good, explain))

    def first_failure(self, at_all: bool = False) -> Flag | None:
        """Return the first failed check that is due before the next batch, or None.

        Args:
            at_all: Also read flags that are still on their way. All flags that were read are dropped.
        """
        late = [] if at_all else [flag for flag in self._noted if flag.is_late]
        due = [*self._due, *(flag for flag in self._noted if at_all or not flag.is_late)]
        self._due, self._noted = late, []
        return next((flag for flag in due if not flag.wait()), None)

    def check_finite(self, device: torch.device, collective: Collective) -> None:
        """Read all flags now, because no batch follows. Every process calls it. Raises SharedError."""
        bad = self.first_failure(at_all=True)
        if collective.sum_numbers([bad is not None])[0]:
            raise_together(bad.explain() if bad else "", device, collective)


def raise_together(message: str, device: torch.device, collective: Collective) -> None:
    """Raise SharedError with the first message that is not empty. Every process calls it."""
    texts = collective.gather(torch.tensor(list(message.encode()), dtype=torch.uint8, device=device))
    raise SharedError(next(bytes(text.tolist()).decode() for text in texts if len(text)))


def note_loss(checks: DeferredChecks, loss: Tensor, batch: dict[str, Tensor], trainer: pl.Trainer) -> None:
    """Check that the loss of a batch is finite."""
    rates = [group["lr"] for optimizer in trainer.optimizers for group in optimizer.param_groups]
    explain = partial(explain_loss, loss, batch, trainer.global_step, trainer.current_epoch, rates)
    checks.note(loss.isfinite(), explain)


def note_prediction(
    checks: DeferredChecks, head: nn.Module, prediction: Tensor, value: Tensor | None, index: Tensor
) -> None:
    """Check that predictions (B, ..., C) of the instances ``index`` (B,) are distributions and values are finite."""
    good = _on_simplex(head, prediction).all()
    good = good if value is None else good & value.isfinite().all()
    checks.note(good, partial(_explain_prediction, head, prediction, value, index))


def without_nan(head: nn.Module) -> Tensor:
    """Return whether the state of a head has no NaN: () bool, on the device."""
    return ~torch.stack([tensor.isnan().any() for tensor in _floats(head)]).any()


def explain_loss(loss: Tensor, batch: dict[str, Tensor], step: int, epoch: int, rates: Sequence[float]) -> str:
    """Return why a loss may not be finite: the inputs of the batch (B, ...), or the learning rates."""
    text = f"loss is {float(loss):g} at step {step} (epoch {epoch}), on {_rows(batch['index'])}"
    inputs = batch.get("features", batch.get("maps", batch.get("input")))
    if inputs is not None and inputs.is_floating_point() and inputs.numel():
        flat = inputs.detach().flatten(1)
        # Missing instances of a bag are NaN.
        spoilt = flat.isinf().any(1) if inputs.ndim > 2 else ~flat.isfinite().all(1)
        if bool(spoilt.any()):
            return f"{text}: the inputs of {_rows(batch['index'][spoilt])} are not finite; correct or leave out these"
        largest = float(flat.nan_to_num(0.0).abs().max())
        if largest > LARGE_INPUT:
            return f"{text}: the inputs reach {largest:.3g}; scale them"
    rate = f"a learning rate of {max(rates):g}" if rates else "this learning rate"
    return (
        f"{text}: training diverges at {rate}; lower model.optimizer.lr, set trainer.gradient_clip_val or use "
        "trainer.precision 32-true (model.check_finite false continues regardless)"
    )


def _explain_prediction(head: nn.Module, prediction: Tensor, value: Tensor | None, index: Tensor) -> str:
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
    if all(bool(tensor.isfinite().all()) for tensor in _floats(head)):
        return f"{text}; it divides by zero, or its inputs are too large: scale the inputs"
    return f"{text}; its learned tensors are not finite: train again, with a lower model.optimizer.lr or other options"


def _on_simplex(head: nn.Module, prediction: Tensor) -> Tensor:
    mixed = torch.is_autocast_enabled(prediction.device.type)
    coarse = mixed or any(tensor.itemsize == 2 for tensor in (prediction, *_floats(head)))
    near = (prediction.sum(-1) - 1).abs() <= (SUM_TOLERANCE_16_BIT if coarse else SUM_TOLERANCE)
    return (prediction >= 0).all(-1) & near


def _floats(head: nn.Module) -> list[Tensor]:
    return [tensor for tensor in head.state_dict().values() if tensor.is_floating_point()]


def _rows(index: Tensor) -> str:
    shown = ", ".join(str(int(row)) for row in index[:MAX_ROWS_NAMED])
    more = f" and {len(index) - MAX_ROWS_NAMED} more" if len(index) > MAX_ROWS_NAMED else ""
    return f"row{'s' if len(index) > 1 else ''} {shown}{more} of the data"
