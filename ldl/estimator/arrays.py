"""Arrays in memory as a data module, all of whose rows train."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ldl.data.loaded import Loaded
from ldl.data.tables.scaled import ScaledRows
from ldl.protocols import Fold, with_validation


class ArrayRows(ScaledRows):
    """Rows of features and what is known of them, scaled as those of files are.

    Args:
        features: (N, F), float64; NaN where a value is missing.
        loaded: Labels, targets, and maybe values.
        groups: (N,) of any type that sorts, or None.
        **options: Those of ``ScaledRows``, such as ``scaling`` and ``val_fraction``.
    """

    protocol = "all rows"

    def __init__(self, features: np.ndarray, loaded: Loaded, groups: np.ndarray | None, **options: object) -> None:
        super().__init__(path="X", missing="keep", **options)  # type: ignore[arg-type]
        self.features = features
        self._loaded = replace(loaded, groups=groups)

    def load(self) -> Loaded:
        """What was given."""
        return self._loaded

    def cut(self) -> Fold:
        """No test part."""
        rows = np.arange(self.size)
        groups = None if self.groups is None else np.unique(self.groups, return_inverse=True)[1]
        return with_validation(rows, rows[:0], self.val_fraction, self.fold_seed, groups=groups)

    @property
    def leak(self) -> None:
        """Unknown, for there is no test part."""
        return
