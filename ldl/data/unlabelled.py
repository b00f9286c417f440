"""The base of data modules of which nothing is known but inputs."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from torch.utils.data import DataLoader

from ldl.data.base import LDLDataModule
from ldl.data.serving import serve
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.options import options
from ldl.protocols import Fold

Trained = tuple[LabelSpace, tuple[int, ...], dict[str, Any]]
"""What a trained task knows: its labels, the shape of one input, and what that goes through before the backbone."""


@options
class Unlabelled(LDLDataModule):
    """Instances for ``--stage predict``, all of them; a trained task says what they are, through ``follow``.

    A subclass refuses tasks that it cannot serve in :meth:`suits`.
    """

    folds, fold, fold_seed, val_fraction = 0, 0, 0, 0.0

    protocol = "none"
    _trained = None  # type: Trained | None

    def suits(self, input_shape: tuple[int, ...], preprocessing: dict[str, Any]) -> None:
        """Raise LDLError for a task that was trained on something else."""

    def follow(
        self, labels: LabelSpace, input_shape: tuple[int, ...] | None, preprocessing: dict[str, Any] | None
    ) -> None:
        """Take what a trained task knows. Raises LDLError where it was trained on something else."""
        known = labels, input_shape or (), preprocessing or {}
        self.suits(*known[1:])
        self._trained = known

    @property
    def trained(self) -> Trained:
        """What a trained task knows. Raises LDLError where there is none."""
        return self._trained or self._refuse()

    def cut(self) -> Fold:
        """All are to be predicted."""
        nothing = np.arange(0)
        return Fold(nothing, nothing, np.arange(self.size))

    def predict_dataloader(self) -> DataLoader[Any]:
        return serve(self, self.split.test, train=False)

    def test_dataloader(self) -> DataLoader[Any]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        name = type(self).__name__
        raise LDLError(f"{name} has no labels to train on or test with; use it with --stage predict")
