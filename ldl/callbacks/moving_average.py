"""An exponential moving average of the weights, which is what is validated, tested and kept."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import WeightAveraging
from pytorch_lightning.trainer.states import TrainerFn
from torch import Tensor

from ldl.errors import LDLError
from ldl.head import FittedHead


class MovingAverage(WeightAveraging):
    """Averages the weights over the last steps, about ``1 / (1 - decay)`` of them; fewer at the start of a run.

    Validation, tests and the ``state_dict`` of checkpoints have the average; a resumed run goes on from the weights
    that were trained, which are in the checkpoint too. Add it to ``trainer.callbacks``.

    Args:
        decay: Share of the average that a step leaves, in [0, 1).

    Raises:
        LDLError: ``decay`` is out of range, or a fitted head takes no steps to average.
    """

    def __init__(self, decay: float = 0.998) -> None:
        if not 0 <= decay < 1:
            raise LDLError(f"MovingAverage.decay {decay!r} must be in [0, 1), such as 0.998")
        self.decay, self._swapped = decay, False
        super().__init__(multi_avg_fn=self._average)

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        # What is measured by itself has its own weights, not the average of a fit before.
        self._average_model, self._swapped = None, False
        # Lightning asks callbacks first, and a Task has no weights before its own setup.
        if stage == "fit":
            # Of a fit before; a resumed one reads its step from the checkpoint afterwards.
            self._latest_update_step = 0
            if isinstance(head := getattr(pl_module, "head", None), FittedHead):
                raise LDLError(
                    f"MovingAverage: {type(head).__name__} is fitted in one go; take it out of the callbacks"
                )
            pl_module.setup(stage)
        super().setup(trainer, pl_module, stage)
        if self._average_model is not None:
            # As the weights will be, once the strategy is set up.
            self._average_model.to(trainer.strategy.root_device)
            trainer.precision_plugin.convert_module(self._average_model)

    def _swap_models(self, pl_module: pl.LightningModule) -> None:
        super()._swap_models(pl_module)
        self._swapped = not self._swapped

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        super().on_save_checkpoint(trainer, pl_module, checkpoint)
        if self._swapped:
            # A run that is told to end while it validates, when the two stand for each other.
            average, current = checkpoint["current_model_state"], checkpoint["state_dict"]
            checkpoint["state_dict"], checkpoint["current_model_state"] = average, current

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        # What is tested is the average, which Lightning has loaded: not the weights to train on from.
        if trainer.state.fn == TrainerFn.FITTING:
            super().on_load_checkpoint(trainer, pl_module, checkpoint)

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # A finished run that is resumed has no training that ends.
        self._copy_average_to_current(pl_module)

    def _average(self, average: list[Tensor], current: list[Tensor], steps: Tensor) -> None:
        """Move some tensors of one type; what cannot be averaged, such as counts, is taken as it is."""
        # The first steps count alike, or the start would be remembered too long.
        decay = min(self.decay, (1 + int(steps)) / (10 + int(steps)))
        if average[0].is_floating_point():
            torch._foreach_lerp_(average, current, 1 - decay)
        else:
            torch._foreach_copy_(average, current)
