"""Arrays in memory as a data module, all of whose rows train."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ldl.data.loaded import Loaded
from ldl.data.tables.scaled import ScaledRows
from ldl.protocols import Fold, with_validation


class ArrayRows(ScaledRows):
    """Rows of features and what is known of them, scaled as those of files are.

    Args:
        features: (N, F), float64; NaN where a value is missing.
        loaded: Labels, targets, and maybe values and groups.
        names: Of the features, or None.
        **options: Those of ``ScaledRows``, such as ``scaling`` and ``val_fraction``.
    """

    protocol = "all rows"

    def __init__(self, features: np.ndarray, loaded: Loaded, names: Iterable[str] | None, **options: object) -> None:
        super().__init__(path="X", missing="keep", **options)  # type: ignore[arg-type]
        self.features = features
        self.feature_names = None if names is None else [str(name) for name in names]
        self._loaded = loaded

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
