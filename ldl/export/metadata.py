"""What an exported model says of itself: labels, inputs, versions and licences, as texts."""

from __future__ import annotations

import json
import platform
from typing import Any

import torch
from torch import Tensor

import ldl
from ldl.export.deployed import Deployed
from ldl.export.licences import Licences
from ldl.task import Task


def metadata(task: Task, model: Deployed, licences: Licences) -> dict[str, str]:
    """Entries of the file by name; what is no text is JSON.

    ``labels`` (kind, names, axes, unit, ...), ``unit``, ``decoder``, ``temperature``, ``head``, ``backbone``,
    ``input`` (type, and shape, -1 of any size), ``preprocessing`` (what happens inside, and what has to happen before),
    ``outputs``, ``intervals`` (what they hold), ``versions``, ``license_code``, ``license_weights`` and
    ``license_data``.
    """
    texts = {
        "labels": task.labels.to_dict(),
        "unit": task.labels.unit,
        "decoder": task.decoder,
        "temperature": task.temperature,
        "head": type(task.head).__name__,
        "backbone": type(task.backbone).__name__,
        "input": {
            "type": str(model.input_dtype).removeprefix("torch."),
            "shape": [-1, *([-1, model.input_shape[-1]] if len(model.input_shape) == 2 else model.input_shape)],
        },
        "preprocessing": _preprocessing(task, model),
        "outputs": model.outputs,
        "intervals": _intervals(task),
        "versions": {"ldl": ldl.__version__, "torch": str(torch.__version__), "python": platform.python_version()},
        **{f"license_{name}": text for name, text in licences._asdict().items()},
    }
    return {name: text if isinstance(text, str) else json.dumps(text) for name, text in texts.items()}


def _intervals(task: Task) -> str:
    if not task.labels.has_values:
        return "none: labels have no values"
    if task.calibration is None:
        return "central intervals of the distribution, of its mass, whose ends are labels"
    return f"conformal, of rows like the {task.calibration.units} validation rows or groups that calibrated them"


def _preprocessing(task: Task, model: Deployed) -> dict[str, Any]:
    known = {name: value for name, value in (task.preprocessing or {}).items() if name != "scaling"}
    if model.takes_pictures:
        inside, before = "normalisation of pixels", "upright, cropped and resized to the input's size, RGB, 0 to 255"
    else:
        inside, before = f"scaling of features: {model.scaling}", "none"
    return {"inside": inside, "before": before, **{k: v for k, v in known.items() if not isinstance(v, Tensor)}}
