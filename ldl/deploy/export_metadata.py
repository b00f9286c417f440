"""Metadata of an exported model: labels, inputs, versions, and the licences of code, weights and data."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import torch
import yaml
from torch import Tensor

import ldl
from ldl.data.sources import SOURCES
from ldl.deploy.export_columns import number_names, text_names, token_names
from ldl.deploy.export_graph import Deployed
from ldl.reports.card import CODE, of_weights
from ldl.task import Task
from ldl.validation.yaml_text import load_values

TOKENIZE = (
    "numbers of tokens by the tokenizer of wordllama, its file tokenizers/l2_supercat_tokenizer_config.json, without "
    "special tokens, of texts in lower case without blanks around them, padded with -1; other columns as they are"
)
"""What a user of the file does with columns of text."""
UNKNOWN_DATA = "unknown: no file beside the checkpoint names its training data; contact its author"


def metadata(task: Task, model: Deployed, checkpoint: str | Path | None = None) -> dict[str, str]:
    """Return the entries of the file by name, as text or JSON.

    ``labels`` (kind, names, axes, unit, ...), ``unit``, ``decoder``, ``temperature``, ``head``, ``backbone``,
    ``input`` (type, and shape, -1 of any size), ``preprocessing`` (what happens inside, and what has to happen before),
    ``outputs``, ``intervals`` (what they hold), ``versions``, ``license_code``, ``license_weights`` and
    ``license_data``. The configuration of the run beside the checkpoint names the data.
    """
    steps = (task.preprocessing or {}).items()
    plain = {name: step for name, step in steps if name != "scaling" and not isinstance(step, Tensor)}
    if model.takes_pictures:
        inside, before = "normalisation of pixels", "upright, cropped and resized to the input's size, RGB, 0 to 255"
    else:
        inside, before = f"scaling of features: {model.scaling}", "none"
    if model.encoding is not None:
        before = "none: the file encodes columns, and takes numbers and texts"
        plain["columns"] = {"numbers": number_names(model.encoding), "texts": text_names(model.encoding)}
        if tokens := token_names(model.encoding):
            before = TOKENIZE
            plain["columns"]["tokens"] = {f"tokens_{number}": name for number, name in enumerate(tokens)}
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
        "preprocessing": {"inside": inside, "before": before, **plain},
        "outputs": model.outputs,
        "intervals": _intervals(task),
        "versions": {"ldl": ldl.__version__, "torch": str(torch.__version__), "python": platform.python_version()},
        "license_code": CODE,
        "license_weights": of_weights(task.backbone),
        "license_data": UNKNOWN_DATA if checkpoint is None else _of_data(Path(checkpoint)),
    }
    return {name: text if isinstance(text, str) else json.dumps(text) for name, text in texts.items()}


def _intervals(task: Task) -> str:
    if not task.labels.has_values:
        return "none: labels have no values"
    if task.calibration is None:
        return "central intervals of the distribution, of its mass, whose ends are labels"
    return f"conformal, of rows like the {task.calibration.units} validation rows or groups that calibrated them"


def _of_data(checkpoint: Path) -> str:
    configs = (folder / "config.yaml" for folder in checkpoint.absolute().parents[:3])
    try:
        data = load_values(next(file for file in configs if file.is_file()).read_text(encoding="utf-8"))["data"]
        kind, path = data["class_path"].rpartition(".")[2], Path(data.get("init_args", {}).get("path") or "").name
    except (yaml.YAMLError, StopIteration, OSError, KeyError, TypeError, AttributeError):
        return UNKNOWN_DATA
    if source := SOURCES.get(path) or SOURCES.get(kind):
        return f"{source.name}: {source.licence}"
    return f"unknown: {kind} {path}".rstrip() + ", whose licence is not known to ldl; contact the author"
