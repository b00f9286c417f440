"""What a distribution says along each axis of its labels."""

from __future__ import annotations

import math

import numpy as np

from ldl.errors import LDLError
from ldl.labels import LabelSpace


def marginals(labels: LabelSpace, prediction: np.ndarray) -> list[np.ndarray]:
    """The distribution along each axis, (N, length of the axis), of distributions (N, C). Raises LDLError: no axes."""
    if not labels.has_values:
        raise LDLError("intervals need labels with values, and these are nominal; take label_set")
    shape = tuple(map(len, labels.axes))
    prediction = np.asarray(prediction)
    if labels.cells is not None:
        whole = np.zeros((len(prediction), math.prod(shape)), prediction.dtype)
        whole[:, list(labels.cells)] = prediction
        prediction = whole
    table = prediction.reshape(len(prediction), *shape)
    return [table.sum(tuple(1 + axis for axis in range(labels.ndim) if axis != own)) for own in range(labels.ndim)]
