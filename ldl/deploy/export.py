"""Export a trained task as an ONNX file that runs without ldl, and compare the file with the task."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ldl.backbones.timm import evaluating
from ldl.checkpoint import OUTPUT_ADVICE, replacing
from ldl.data.tables.columns import Encoding
from ldl.data.tables.scaling import FeatureScaler
from ldl.deploy.export_columns import draw_columns
from ldl.deploy.export_graph import LEVELS, Deployed
from ldl.deploy.export_metadata import metadata
from ldl.deploy.export_onnx import Run, load_onnx, quietly, write_onnx
from ldl.errors import LDLError, explaining
from ldl.head import FittedHead
from ldl.inference import Predictions
from ldl.inference.inputs import INTEGER_TYPES
from ldl.task import Task

SHARE_APART = 0.05
"""Allowed share of rows so close to a threshold, or between two neighbours, that rounding decides."""
BATCHES = (1, 7, 64)
"""Batch sizes of the comparison."""
CLOSE = 1e-5
"""Largest difference that counts as rounding."""
DRAWN_INSTANCES = 3
"""Instances of a bag, if the model takes any number."""


class Parity(NamedTuple):
    """Differences between the predictions of two models.

    Attributes:
        largest: Largest difference of rows within ``CLOSE``, of probabilities and of values as shares of their range.
        apart: Number of rows with a larger difference.
        rows: Number of rows compared.
    """

    largest: float
    apart: int
    rows: int


class Exported(NamedTuple):
    """An exported file.

    Attributes:
        file: Path of the file.
        size: Bytes of the file.
        parity: Differences from the task; None if onnxruntime is not installed.
    """

    file: Path
    size: int
    parity: Parity | None


def export(source: Task | str | Path, file: str | Path, to: str = "onnx", force: bool = False) -> Exported:
    """Write a trained model as an ONNX file that runs without ldl; see :class:`Deployed` for inputs and outputs.

    Before it is kept, the file is run with three batch sizes and compared with the task.

    Args:
        source: A trained task, or the path of a checkpoint.
        file: Path of the new file.
        to: Format of the file, ``onnx``.
        force: Whether to replace an existing file.

    Raises:
        LDLError: The format is not ONNX, the file exists, the task cannot be exported, a package is not installed, or
            the predictions of the file differ from the task.
    """
    if to != "onnx":
        raise LDLError(f"format {to!r} is not onnx, the only format of exported models")
    file = Path(file)
    if not isinstance(source, Task) and file.exists() and file.samefile(source):
        raise LDLError(f"{file} is the checkpoint that is read; give another --out")
    if file.exists() and not force:
        raise LDLError(f"{file} is there already; give --force to replace it, or another --out")
    task = source if isinstance(source, Task) else Task.load_from_checkpoint(source)
    device = task.device
    with evaluating(task), quietly():
        try:
            model = Deployed(task.cpu()).eval()
            example = torch.from_numpy(draw(task, 7, np.random.default_rng(1)))
            data = _written(model, example, metadata(task, model, None if isinstance(source, Task) else source))
            parity = _measured(task, data)
        finally:
            task.to(device)
    # With trees and neighbours, rounding of a feature may change a prediction a lot.
    jumps = any(isinstance(module, FittedHead) for module in task.modules())
    if parity is not None and parity.apart > (SHARE_APART * parity.rows if jumps else 0):
        raise LDLError(
            f"the ONNX file of {type(task.head).__name__} is not kept: {parity.apart} of {parity.rows} rows differ "
            f"from torch by more than {CLOSE:g}; please report it with the checkpoint's options"
        )
    with replacing(file, OUTPUT_ADVICE) as opened:
        opened.write(data)
    return Exported(file, len(data), parity)


def _written(model: Deployed, example: torch.Tensor, facts: dict[str, str]) -> bytes:
    names = f"{type(model.head).__name__} on {type(model.backbone).__name__}"
    with explaining(f"{names} cannot be recorded as ONNX"):
        return write_onnx(model, example, facts)


def _measured(task: Task, data: bytes) -> Parity | None:
    try:
        run = load_onnx(data)
    except LDLError:  # onnxruntime is not installed
        return None
    return measure(task, run)


def measure(task: Task, run: Run) -> Parity:
    """Compare an exported model with its task on fixed random inputs, in three batch sizes.

    Args:
        task: The task.
        run: Runs the model, on ``export_columns.ColumnArrays`` if the task encodes them.
    """
    rng, state = np.random.default_rng(0), (task.preprocessing or {}).get("encoding")
    differences = []
    for rows in BATCHES:
        inputs: Any = draw(task, rows, rng)
        columns = inputs
        if state is not None:
            columns, inputs = draw_columns(Encoding.from_state(state), inputs, rng)
        differences.append(_differences(task, inputs, run(columns)))
    difference = np.concatenate(differences)
    close = difference <= CLOSE
    return Parity(float(difference[close].max(initial=0)), int((~close).sum()), len(difference))


def draw(task: Task, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Draw inputs (``rows``, ...) as a :class:`Deployed` takes them, spread as those of training are."""
    preprocessing, shape = task.preprocessing or {}, task.input_shape
    assert shape is not None
    if len(shape) > 2 and ("crop_size" in preprocessing or preprocessing.get("dtype") == "uint8"):
        # A model of maps takes images of any size: another one for every size of batches.
        size = (70 - rows // 2, 45 + rows // 2) if task.gives_maps else shape[1:]
        return rng.integers(0, 256, (rows, *size, shape[0]), dtype=np.uint8)
    sizes = (rows, *(DRAWN_INSTANCES if side == -1 else side for side in shape))
    if preprocessing.get("dtype") in INTEGER_TYPES:
        return rng.integers(0, 101, sizes).astype(np.float32 if len(shape) > 2 else np.float64)
    if len(shape) > 2:
        return rng.random(sizes, dtype=np.float32)
    inputs = _unscaled(rng.normal(size=sizes), preprocessing.get("scaling") or {"kind": "none"})
    if len(shape) == 2:
        inputs[1::2, 1:] = np.nan  # every other bag has one instance
    elif task.head.takes_missing:
        inputs[rng.random(sizes) < 0.05] = np.nan
    return inputs


@torch.no_grad()
def predict(task: Task, inputs: np.ndarray) -> Predictions:
    """Predict such inputs with the task, scaled as in training."""
    preprocessing, shape = task.preprocessing or {}, task.input_shape
    assert shape is not None
    tensor = torch.from_numpy(inputs)
    if len(shape) > 2:
        tensor = tensor.permute(0, 3, 1, 2) if tensor.dtype == torch.uint8 and tensor.ndim == 4 else tensor
    elif (scaling := preprocessing.get("scaling")) is not None:
        flat = FeatureScaler.from_state(scaling).apply(inputs.reshape(-1, shape[-1]), "drawn inputs")
        tensor = flat.reshape(inputs.shape)
    if tensor.dtype != torch.uint8:  # images are uint8, whether or not their type is known
        trained = preprocessing.get("dtype")
        tensor = tensor.to(getattr(torch, trained) if trained in INTEGER_TYPES else torch.float32)
    batch = {"input": tensor, "index": torch.arange(len(tensor)), "weight": torch.ones(len(tensor))}
    outputs = {name: output.float().cpu().numpy() for name, output in task.eval().predict_step(batch, 0).items()}
    return Predictions(outputs["prediction"], outputs.get("predicted_value"), task.labels, calibration=task.calibration)


def _differences(task: Task, inputs: np.ndarray, outputs: list[np.ndarray]) -> np.ndarray:
    """Return the largest difference of every row."""
    wanted = predict(task, inputs)
    pairs = [(outputs[0], wanted.distribution, 1.0)]
    if wanted.value is not None:
        span = max(max(axis[-1] - axis[0] for axis in task.labels.axes), 1e-30)
        pairs.append((outputs[1], wanted.value, span))
        # Intervals of the found distributions: rounding of these may move an end to the next label.
        predictions = Predictions(outputs[0], outputs[1], task.labels, calibration=task.calibration)
        pairs += [(ends, predictions.interval(level), span) for ends, level in zip(outputs[2:], LEVELS)]
    return np.max([_apart(*pair).reshape(len(inputs), -1).max(1) for pair in pairs], axis=0)


def _apart(output: np.ndarray, wanted: np.ndarray, span: float) -> np.ndarray:
    if output.shape != wanted.shape:
        return np.full((len(wanted), 1), np.inf)
    both = np.isnan(output) & np.isnan(wanted)
    return np.where(both, 0.0, np.nan_to_num(np.abs(output - wanted) / span, nan=np.inf))


def _unscaled(normal: np.ndarray, scaling: dict[str, Any]) -> np.ndarray:
    """Return features that the scaling maps to about these numbers, or to others within the range of training."""
    if "quantiles" not in scaling and "mean" not in scaling:
        return normal
    if "mean" in scaling:
        features = normal * scaling["scale"].numpy() + scaling["mean"].numpy()
        return np.square(features.clip(0)) if scaling["kind"] == "hellinger" else features
    quantiles = scaling["quantiles"].numpy()
    numbers = np.arange(len(quantiles))
    ranks = (0.5 + normal / 4) * numbers[-1]
    return np.stack(
        [np.interp(rank, numbers, column) for rank, column in zip(np.moveaxis(ranks, -1, 0), quantiles.T)], -1
    )
