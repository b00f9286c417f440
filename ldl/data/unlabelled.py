"""The base of data without labels, which a trained task describes."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from torch.utils.data import DataLoader

from ldl.data.base import LDLDataModule
from ldl.data.loader import serve
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.options import options
from ldl.protocols import Fold

TrainedInputs = tuple[LabelSpace, tuple[int, ...], dict[str, Any]]
"""A trained task's labels, shape of one input, and preprocessing of an input."""


@options
class Unlabelled(LDLDataModule):
    """Instances without labels for ``--stage predict``; a trained task describes them through ``follow``.

    A subclass rejects unsuitable tasks in :meth:`suits`.
    """

    folds, fold, fold_seed, val_fraction = 0, 0, 0, 0.0

    protocol = "none"
    _trained = None  # type: TrainedInputs | None

    def suits(self, input_shape: tuple[int, ...], preprocessing: dict[str, Any]) -> None:
        """Raise LDLError for a task that was trained on other inputs."""

    def follow(
        self, labels: LabelSpace, input_shape: tuple[int, ...] | None, preprocessing: dict[str, Any] | None
    ) -> None:
        """Take over the description of a trained task. Raises LDLError if it was trained on other inputs."""
        trained = labels, input_shape or (), preprocessing or {}
        self.suits(*trained[1:])
        self._trained = trained

    @property
    def trained(self) -> TrainedInputs:
        """Description of the trained task. Raises LDLError if there is none."""
        return self._trained or self._refuse()

    def cut(self) -> Fold:
        """Return all rows as the test set."""
        nothing = np.arange(0)
        return Fold(nothing, nothing, np.arange(self.size))

    def predict_dataloader(self) -> DataLoader[Any]:
        """Return the batches of all instances, in order."""
        return serve(self, self.split.test, train=False)

    def test_dataloader(self) -> DataLoader[Any]:
        """Raise LDLError, because a test needs labels."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        name = type(self).__name__
        raise LDLError(f"{name} has no labels to train on or test with; use it with --stage predict")
