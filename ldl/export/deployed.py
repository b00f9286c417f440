"""A trained task as one function of tensors: inputs as users have them to everything that is said of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ldl.backbones.base import Backbone
from ldl.data.tables.scaling_graph import scale
from ldl.errors import LDLError
from ldl.export.intervals import interval
from ldl.head import Head
from ldl.inference.inputs import WHOLE
from ldl.methods.temperature import temper
from ldl.task import Task

LEVELS = (0.5, 0.8, 0.9)
"""Shares of the mass that the intervals hold."""


class Deployed(nn.Module):
    """Preprocessing, backbone, head, temperature and decoder of a task, without anything that only training needs.

    Rows (B, F) and bags (B, J, F) are float64 as they are in the table, not scaled; pictures (B, H, W, channels) uint8,
    of the size that the model takes, or of any where it predicts at every pixel; other inputs (B, ...) float32, as they
    were in training. Where these were of a type of whole numbers they are turned into it, and rows of others are NaN.

    It gives a tuple, named by ``outputs``: ``distribution`` (B, C); and where labels have values ``value`` (B,) and
    ``interval_50``, ``interval_80`` and ``interval_90`` (B, 2), in the labels' unit: on a grid (B, 2) and (B, 2, 2).
    They are those of :class:`ldl.inference.Predictor`, calibrated where the task is. A row for which that raises, such
    as one with a feature that is infinite, or NaN where the head takes none, is NaN.

    Attributes:
        input_shape: Of one input.
        input_dtype: Type of its numbers.

    Raises:
        LDLError: the task is not trained or its weights are not float32, its pictures go through ``eval_transforms``,
            or a head or a backbone says why there can be no graph of it.
    """

    def __init__(self, task: Task) -> None:
        super().__init__()
        if task.input_shape is None:
            raise LDLError("only a trained task can be exported; train it first, or load it from its checkpoint")
        for weight in task.parameters():
            if weight.dtype != torch.float32:
                raise LDLError(f"the weights are {weight.dtype}, and files compute in float32; call task.float() first")
        for part in task.modules():
            if isinstance(part, Head | Backbone) and part.no_graph:
                raise LDLError(f"{type(part).__name__} cannot be exported: {part.no_graph}")
        known, shape = task.preprocessing or {}, task.input_shape
        _check_transforms(known)
        self.head, self.backbone, self.labels = task.head.eval(), task.backbone.eval(), task.labels
        self.decoder, self.temperature, self.calibration = task.decoder, task.temperature, task.calibration
        self.scaling, self.clip = "none", None
        if (scaling := known.get("scaling")) is not None:
            self.scaling, self.clip = scaling["kind"], scaling["clip"]
            self.learned = [name for name, value in scaling.items() if isinstance(value, Tensor)]
            for name in self.learned:
                self.register_buffer(f"scaling_{name}", scaling[name])
        self.takes_pictures = len(shape) == 3 and ("crop_size" in known or known.get("dtype") == "uint8")
        sizes = (-1, -1) if task.gives_maps else shape[1:]
        self.input_shape = (*sizes, shape[0]) if self.takes_pictures else shape
        trained = known.get("dtype")
        self.trained_dtype = getattr(torch, trained) if trained in WHOLE else torch.float32
        self.input_dtype = torch.uint8 if self.takes_pictures else torch.float64 if len(shape) <= 2 else torch.float32

    @property
    def outputs(self) -> list[str]:
        """Names of what it gives."""
        intervals = [f"interval_{round(100 * level)}" for level in LEVELS]
        return ["distribution", *(["value", *intervals] if self.labels.has_values else [])]

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Everything of a batch."""
        prepared = self._prepared(inputs)
        outputs = self._outputs(prepared)
        if len(self.input_shape) > 2:
            return outputs
        refused = self._refused(inputs, prepared)
        return tuple(part.masked_fill(refused.reshape(-1, *[1] * (part.ndim - 1)), torch.nan) for part in outputs)

    def _outputs(self, prepared: Tensor) -> tuple[Tensor, ...]:
        features = self.backbone(prepared)
        features = features.unsqueeze(1) if self.head.takes_bags and features.ndim == 2 else features
        distribution, value = self.head.predict(features)
        distribution = temper(distribution, self.temperature)
        if not self.labels.has_values:
            return (distribution,)
        value = self.labels.decode(distribution, self.decoder) if value is None else value
        return distribution, value, *(interval(self.labels, distribution, level, self.calibration) for level in LEVELS)

    def _refused(self, inputs: Tensor, prepared: Tensor) -> Tensor:
        """Which rows or bags have features that ``Predictor`` refuses, as they are or scaled: (B,) of bool."""
        if not prepared.is_floating_point():
            return (prepared != inputs).flatten(1).any(1)
        known = inputs.float().isfinite() & prepared.isfinite()
        if self.head.takes_missing:
            known = known | inputs.isnan()
        elif inputs.ndim == 3:  # bags may have fewer instances
            known = known | inputs.isnan().all(-1, keepdim=True)
        return ~known.flatten(1).all(1)

    def _prepared(self, inputs: Tensor) -> Tensor:
        if self.takes_pictures:
            return inputs.movedim(-1, 1)
        if self.scaling != "none" or self.clip is not None:
            learned = {name: getattr(self, f"scaling_{name}") for name in self.learned}
            rows = inputs.reshape(-1, self.input_shape[-1])
            inputs = scale(rows, self.scaling, self.clip, learned).reshape(inputs.shape)
        return inputs.to(self.trained_dtype)


def _check_transforms(known: dict[str, Any]) -> None:
    """Raise LDLError for pictures that are transformed before the network sees them, by what is not torch."""
    if "transforms" not in known:
        return
    from ldl.data.faces.transforms import Pipeline  # albumentations takes seconds, and tables do without

    if names := [type(transform).__name__ for transform in Pipeline.from_dict(known["transforms"]).transforms]:
        raise LDLError(
            f"data.eval_transforms {', '.join(names)} cannot be exported: they are albumentations', not "
            "torch's; train without eval_transforms"
        )
