"""A trained task as one function of tensors: preprocessing, network, decoder and intervals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ldl.backbones.base import Backbone
from ldl.data.tables.columns import Encoding
from ldl.data.tables.scaling import scale
from ldl.data.text.options import WORDLLAMA
from ldl.errors import LDLError, some
from ldl.head import Head
from ldl.inference.inputs import INTEGER_TYPES
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal
from ldl.methods.conformal.scores import HAIR, LEAST_PROBABILITY
from ldl.methods.temperature import temper
from ldl.tables.entries import LARGEST
from ldl.task import Task

LEVELS = (0.5, 0.8, 0.9)
"""Levels of the intervals."""


class Deployed(nn.Module):
    """Preprocessing, backbone, head, temperature and decoder of a task, without anything that only training needs.

    Rows (B, F) and bags (B, J, F) are unscaled float64, as in the table. Images are (B, H, W, channels) uint8, of the
    size of training, or of any size for a model of maps. Other inputs (B, ...) are float32, as in training. If training
    used integers, inputs are converted to them, and rows with other numbers become NaN.

    The output is a tuple, named by ``outputs``: ``distribution`` (B, C) and, for labels with values, ``value`` (B,) and
    ``interval_50``, ``interval_80`` and ``interval_90`` (B, 2), in the labels' unit; on a grid (B, 2) and (B, 2, 2).
    They equal the results of :class:`ldl.inference.Predictor`, calibrated if the task is. A row for which ``Predictor``
    raises an error, such as an infinite feature, is NaN.

    Attributes:
        input_shape: Shape of one input.
        input_dtype: Type of its numbers.
        encoding: Encoding of columns as features, applied before the graph and stored in ONNX files; None for numbers.

    Raises:
        LDLError: The task is not trained, its weights are not float32, its images need ``eval_transforms``, or a head
            or backbone has ``no_graph``.
    """

    largest: Tensor

    def __init__(self, task: Task) -> None:
        super().__init__()
        if task.input_shape is None:
            raise LDLError("only a trained task can be exported; train it first, or load it from its checkpoint")
        for weight in task.parameters():
            if weight.dtype != torch.float32:
                raise LDLError(f"the weights are {weight.dtype}, and files compute in float32; call task.float() first")
        for module in task.modules():
            if isinstance(module, Head | Backbone) and module.no_graph:
                raise LDLError(f"{type(module).__name__} cannot be exported: {module.no_graph}")
        preprocessing, shape = task.preprocessing or {}, task.input_shape
        _check_transforms(preprocessing)
        self.encoding = Encoding.from_state(preprocessing["encoding"]) if "encoding" in preprocessing else None
        columns = [] if self.encoding is None else self.encoding.columns
        if texts := [column.name for column in columns if column.text and column.text.encoder != WORDLLAMA]:
            raise LDLError(
                f"a model of columns of text, {some(texts)}, can be exported with the encoder {WORDLLAMA} alone; serve "
                "it with ldl.Predictor or ldl demo"
            )
        self.head, self.backbone, self.labels = task.head.eval(), task.backbone.eval(), task.labels
        self.raters = task.raters
        self.decoder, self.temperature, self.calibration = task.decoder, task.temperature, task.calibration
        self.scaling, self.clip, self.learned = "none", None, list[str]()
        if (scaling := preprocessing.get("scaling")) is not None:
            self.scaling, self.clip = scaling["kind"], scaling["clip"]
            self.learned = [name for name, value in scaling.items() if isinstance(value, Tensor)]
            for name in self.learned:
                self.register_buffer(f"scaling_{name}", scaling[name])
        # The exporter of ONNX would write the number itself as infinity, in float32.
        self.register_buffer("largest", torch.tensor(LARGEST, dtype=torch.float64), persistent=False)
        of_images = "crop_size" in preprocessing or preprocessing.get("dtype") == "uint8"
        self.takes_pictures = len(shape) == 3 and of_images
        sizes = (-1, -1) if task.gives_maps else shape[1:]
        self.input_shape = (*sizes, shape[0]) if self.takes_pictures else shape
        trained = preprocessing.get("dtype")
        self.trained_dtype = getattr(torch, trained) if trained in INTEGER_TYPES else torch.float32
        self.input_dtype = torch.uint8 if self.takes_pictures else torch.float64 if len(shape) <= 2 else torch.float32

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs."""
        intervals = [f"interval_{round(100 * level)}" for level in LEVELS]
        return ["distribution", *(["value", *intervals] if self.labels.has_values else [])]

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Return all outputs of a batch."""
        prepared = self._prepared(inputs)
        outputs = self._outputs(prepared)
        if len(self.input_shape) > 2:
            return outputs
        invalid = self._invalid(inputs, prepared)
        return tuple(output.masked_fill(invalid.reshape(-1, *[1] * (output.ndim - 1)), torch.nan) for output in outputs)

    def _outputs(self, prepared: Tensor) -> tuple[Tensor, ...]:
        features = self.backbone(prepared)
        features = features.unsqueeze(1) if self.head.takes_bags and features.ndim == 2 else features
        distribution, value = self.head.predict(features)
        if self.backbone.gives_members:
            distribution, value = distribution.mean(1), None if value is None else value.mean(1)
        if self.raters is not None:
            distribution, value = self.raters.population(distribution), None
        distribution = temper(distribution, self.temperature)
        if not self.labels.has_values:
            return (distribution,)
        value = self.labels.decode(distribution, self.decoder) if value is None else value
        return distribution, value, *(interval(self.labels, distribution, level, self.calibration) for level in LEVELS)

    def _invalid(self, inputs: Tensor, prepared: Tensor) -> Tensor:
        """Return whether each row or bag has features for which ``Predictor`` raises an error, (B,) bool."""
        if not prepared.is_floating_point():
            return (prepared != inputs).flatten(1).any(1)
        valid = (inputs.double().abs() <= self.largest) & prepared.isfinite()
        absent = inputs.isnan().all(-1, keepdim=True)
        if self.head.takes_missing:
            valid = valid | inputs.isnan()
        elif inputs.ndim == 3:  # bags may have fewer instances
            valid = valid | absent
        invalid = ~valid.flatten(1).all(1)
        return invalid | absent.flatten(1).all(1) if inputs.ndim == 3 else invalid

    def _prepared(self, inputs: Tensor) -> Tensor:
        if self.takes_pictures:
            return inputs.movedim(-1, 1)
        if self.learned or self.clip is not None:
            learned = {name: getattr(self, f"scaling_{name}") for name in self.learned}
            rows = inputs.reshape(-1, self.input_shape[-1])
            inputs = scale(rows, self.scaling, self.clip, learned).reshape(inputs.shape)
        return inputs.to(self.trained_dtype)


def _check_transforms(preprocessing: dict[str, Any]) -> None:
    """Raise LDLError for evaluation transforms outside torch."""
    if "transforms" not in preprocessing:
        return
    from ldl.data.images.transforms import Pipeline  # albumentations takes seconds, and tables do without

    if names := [type(transform).__name__ for transform in Pipeline.from_dict(preprocessing["transforms"]).transforms]:
        raise LDLError(
            f"data.eval_transforms {', '.join(names)} cannot be exported: they are transforms of "
            "albumentations, not of torch; train without eval_transforms"
        )


def interval(labels: LabelSpace, distribution: Tensor, level: float, calibration: Conformal | None) -> Tensor:
    """Return lower and upper ends (..., 2), on a grid (..., 2 axes, 2), in the labels' unit; float32.

    Args:
        labels: The label space, with values.
        distribution: (..., C).
        level: Share of the rows if calibrated, else of the mass.
        calibration: Calibration on validation rows; None gives the central interval, whose ends are labels.
    """
    distribution = distribution.double()
    if calibration is None:
        tail = (1 - level) / 2
        ends = [labels.quantile(distribution, probability) for probability in (tail, 1 - tail)]
        return torch.stack(ends, -1).float()
    parts = zip(_marginals(labels, distribution), labels.axes, calibration.scores)
    intervals = [_on_line(marginal, axis, score.threshold(level)) for marginal, axis, score in parts]
    return (intervals[0] if len(intervals) == 1 else torch.stack(intervals, -2)).float()


def _marginals(labels: LabelSpace, distribution: Tensor) -> list[Tensor]:
    shape = [len(axis) for axis in labels.axes]
    if labels.cells is not None:
        places = torch.zeros(len(labels.cells), math.prod(shape), dtype=distribution.dtype)
        places[range(len(labels.cells)), list(labels.cells)] = 1
        distribution = distribution @ places
    table = distribution.unflatten(-1, shape)
    others = [[axis - labels.ndim for axis in range(labels.ndim) if axis != kept] for kept in range(labels.ndim)]
    return [table.sum(axes) if axes else table for axes in others]


def _on_line(p: Tensor, axis: tuple[float, ...], score: float) -> Tensor:
    """Return the values with at most this score: see ``ldl.methods.conformal.scores.line_intervals``."""
    values = np.asarray(axis)
    middles = (values[1:] + values[:-1]) / 2
    ends = [2 * values[0] - middles[0], 2 * values[-1] - middles[-1]] if len(middles) else [-0.5, 0.5] + values
    edges = torch.from_numpy(np.concatenate([ends[:1], middles, ends[1:]]))
    p = p / p.sum(-1, keepdim=True)
    p = torch.where(p < LEAST_PROBABILITY, 0.0, p)
    p = p / p.sum(-1, keepdim=True)
    tail, more = (
        max((1 - score - HAIR) / 2, 0.0),
        max(score + HAIR - 1, 0.0) * float(values[-1] - values[0] or 1),
    )
    if math.isinf(more):
        return torch.zeros_like(p[..., :2]) + torch.from_numpy(values[[0, -1]])
    lower = _quantile(p, edges, tail) - more
    upper = more - _quantile(p.flip(-1), -edges.flip(0), tail)
    return torch.stack([lower, upper], -1).clamp(axis[0], axis[-1])


def _quantile(p: Tensor, edges: Tensor, tail: float) -> Tensor:
    """Return the lowest value with at least ``tail`` of the mass below it; for 0 the start of the mass."""
    total = p.cumsum(-1)
    short, begin = (total < tail).sum(-1).clamp_max(p.shape[-1] - 1), (total <= 0).sum(-1)
    label = torch.maximum(short, begin)
    mass, sum_to = (column.gather(-1, label.unsqueeze(-1)).squeeze(-1) for column in (p, total))
    share = ((tail - sum_to + mass) / torch.where(mass > 0, mass, 1.0)).clamp(0, 1)
    return edges[label] + share * edges.diff()[label]
