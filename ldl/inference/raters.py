"""Choose the raters whose votes are predicted: by their names, or by features of an unknown rater."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ldl.errors import LDLError, did_you_mean, some
from ldl.raters import Raters
from ldl.raters.table import rater_numbers


def choose_raters(raters: Raters | None, rater: Any, size: int) -> dict[str, Tensor]:
    """Return the columns of batches by which ``Task.predict_step`` predicts the votes of raters.

    Args:
        raters: The model of raters; None if the task has none.
        rater: A name for all instances, a sequence of names, one an instance, or a dict with the features of an unknown
            rater by their columns in training; see ``Predictor.predict``.
        size: Number of instances N.

    Returns:
        ``as_rater`` (N,), the numbers of the raters, or -1 for an unknown one with ``rater_features`` (N, F).

    Raises:
        LDLError: There is no model of raters, a name or a feature is unknown or missing, or there are not N names.
    """
    if raters is None:
        raise LDLError(
            f"rater {rater!r}: the model has no raters; leave rater out, or train with --model.raters bias or confusion"
        )
    if isinstance(rater, Mapping):
        features = torch.from_numpy(_encode(raters, rater))
        return {"as_rater": torch.full((size,), -1), "rater_features": features.expand(size, -1)}
    names = [rater] * size if np.ndim(rater) == 0 else list(rater)
    if len(names) != size:
        raise LDLError(f"rater names {len(names)} raters, and there are {size} instances; give one name, or one each")
    return {"as_rater": torch.from_numpy(rater_numbers(names, raters.names, "rater"))}


def _encode(raters: Raters, features: Mapping[str, Any]) -> np.ndarray:
    """Return the standardised features (1, F) of an unknown rater. Raises LDLError."""
    import pandas

    if (encoding := raters.table.encoding) is None:
        raise LDLError(
            f"rater {dict(features)!r}: the model has no features of raters; give a name, such as {raters.names[0]!r}, "
            "or train with --data.rater_features"
        )
    columns = encoding.encoding.inputs
    if unknown := [name for name in features if name not in columns]:
        near = did_you_mean(str(unknown[0]), columns)
        raise LDLError(f"rater: the model has no feature {some(unknown)} of raters{near}; it has {some(columns)}")
    if missing := [name for name in columns if name not in features]:
        raise LDLError(f"rater: no {some(missing)} of the rater; give all of {some(columns)}, None where unknown")
    return encoding.transform(pandas.DataFrame([dict(features)]), "rater")
