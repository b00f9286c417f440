"""Whether an exported model says what the task says: both asked about inputs that are drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ldl.data.tables.scaling import FeatureScaler
from ldl.export.deployed import LEVELS
from ldl.export.formats import Run
from ldl.inference import Predictions
from ldl.inference.inputs import WHOLE
from ldl.task import Task

BATCHES = (1, 7, 64)
"""Rows that are asked about at once."""
CLOSE = 1e-5
"""Rows that differ by no more are equal but for rounding."""
INSTANCES = 3
"""Of a bag, where the model takes any number."""


class Parity(NamedTuple):
    """How far two models are apart.

    Attributes:
        largest: The largest difference of a row that is close: of probabilities, and of values as shares of the labels'
            range.
        apart: Rows that are not, whose differences are larger than ``CLOSE``.
        rows: Rows that were asked about.
    """

    largest: float
    apart: int
    rows: int


def measure(task: Task, run: Run) -> Parity:
    """Compare an exported model with its task, at three sizes of batches of inputs that are always the same."""
    rng = np.random.default_rng(0)
    differences = np.concatenate([_differences(task, draw(task, rows, rng), run) for rows in BATCHES])
    close = differences <= CLOSE
    return Parity(float(differences[close].max(initial=0)), int((~close).sum()), len(differences))


def draw(task: Task, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Inputs (``rows``, ...) as a :class:`.deployed.Deployed` takes them, spread as those of training are."""
    known, shape = task.preprocessing or {}, task.input_shape
    assert shape is not None
    most = 100 if known.get("dtype") in WHOLE else 1
    if len(shape) > 2:
        if "crop_size" in known or known.get("dtype") == "uint8":
            # Of any size: another one for every size of batches.
            size = (70 - rows // 2, 45 + rows // 2) if task.gives_maps else shape[1:]
            return rng.integers(0, 256, (rows, *size, shape[0]), dtype=np.uint8)
        drawn = most * rng.random((rows, *shape), dtype=np.float32)
        return drawn if most == 1 else drawn.round()
    sizes = (rows, *(INSTANCES if side == -1 else side for side in shape))
    if most > 1:
        return (most * rng.random(sizes)).round()
    inputs = _unscaled(rng.normal(size=sizes), known.get("scaling"))
    if len(shape) == 2:
        inputs[1::2, 1:] = np.nan  # every other bag has one instance
    elif task.head.takes_missing:
        inputs[rng.random(sizes) < 0.05] = np.nan
    return inputs


def predict(task: Task, inputs: np.ndarray) -> Predictions:
    """What the task says of such inputs, scaled by what scales them in training."""
    known, shape = task.preprocessing or {}, task.input_shape
    assert shape is not None
    given = torch.from_numpy(inputs)
    if len(shape) > 2:
        given = given.permute(0, 3, 1, 2) if given.dtype == torch.uint8 and given.ndim == 4 else given
    elif (scaling := known.get("scaling")) is not None:
        flat = FeatureScaler.from_state(scaling).apply(inputs.reshape(-1, shape[-1]), "drawn inputs")
        given = flat.reshape(inputs.shape)
    if given.dtype != torch.uint8:  # pictures are, whether or not their type is known
        trained = known.get("dtype")
        given = given.to(getattr(torch, trained) if trained in WHOLE else torch.float32)
    return _ask(task, given)


@torch.no_grad()
def _ask(task: Task, given: Tensor) -> Predictions:
    batch = {"input": given, "index": torch.arange(len(given)), "weight": torch.ones(len(given))}
    found = {name: part.float().cpu().numpy() for name, part in task.eval().predict_step(batch, 0).items()}
    return Predictions(found["prediction"], found.get("predicted_value"), task.labels, calibration=task.calibration)


def _differences(task: Task, inputs: np.ndarray, run: Run) -> np.ndarray:
    """The largest difference of every row."""
    wanted, found = predict(task, inputs), run(inputs)
    pairs = [(found[0], wanted.distribution, 1.0)]
    if wanted.value is not None:
        span = max(max(axis[-1] - axis[0] for axis in task.labels.axes), 1e-30)
        pairs.append((found[1], wanted.value, span))
        # Of the distributions that were found: rounding alone may move an end to the next label.
        own = Predictions(found[0], found[1], task.labels, calibration=task.calibration)
        pairs += [(ends, own.interval(level), span) for ends, level in zip(found[2:], LEVELS)]
    return np.max([_apart(*pair).reshape(len(inputs), -1).max(1) for pair in pairs], axis=0)


def _apart(found: np.ndarray, wanted: np.ndarray, span: float) -> np.ndarray:
    if found.shape != wanted.shape:
        return np.full((len(wanted), 1), np.inf)
    both = np.isnan(found) & np.isnan(wanted)
    return np.where(both, 0.0, np.nan_to_num(np.abs(found - wanted) / span, nan=np.inf))


def _unscaled(normal: np.ndarray, scaling: dict[str, Tensor] | None) -> np.ndarray:
    """Features that a scaling turns into about these numbers."""
    kind = "none" if scaling is None else scaling["kind"]
    if scaling is None or kind == "none":
        return normal
    if kind in ("standard", "hellinger"):
        features = normal * scaling["scale"].numpy() + scaling["mean"].numpy()
        return np.square(features.clip(0)) if kind == "hellinger" else features
    quantiles = scaling["quantiles"].numpy()
    flat = normal.reshape(-1, normal.shape[-1])
    rank = (1 / (1 + np.exp(-1.7 * flat)) * 1.02 - 0.01) * (len(quantiles) - 1)
    low = np.clip(rank.astype(int), 0, max(len(quantiles) - 2, 0))
    start, end = (np.take_along_axis(quantiles, np.minimum(low + k, len(quantiles) - 1), 0) for k in (0, 1))
    return (start + (rank - low) * (end - start)).reshape(normal.shape)
