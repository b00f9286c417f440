"""What a model card says of the model itself: its output, its parts, its licences, its use."""

from __future__ import annotations

from typing import Any

from torch import nn

from ldl.backbones.base import Identity
from ldl.data.base import LDLDataModule
from ldl.data.sources import known_source
from ldl.export.licences import CODE, of_weights
from ldl.labels import LabelSpace
from ldl.spec import to_spec
from ldl.task import Task

SHOWN = 8
"""Labels that are named."""


def about_output(task: Task) -> str:
    where = "at every pixel of a picture" if task.gives_maps else "of each instance"
    kinds = {"nominal": "without an order", "ordinal": "on a line", "grid": "on a plane"}
    count, said = len(task.labels), labels_in_words(task.labels)
    text = f"A distribution over {count:,} labels {kinds[task.labels.kind]}, {where}: {said}."
    if task.labels.has_values:
        unit = f", in {task.labels.unit}" if task.labels.unit else ", in the unit of the labels"
        text += f" A value besides{unit}: the {task.decoder} of the distribution, or the head's own estimate."
    return text


def labels_in_words(labels: LabelSpace) -> str:
    names = list(labels.names)
    if labels.kind == "ordinal":
        axis, unit = labels.axes[0], f" {labels.unit}".rstrip()
        return f"{axis[0]:g} to {axis[-1]:g}{unit}" if len(axis) > SHOWN else f"{', '.join(names)}{unit}"
    return ", ".join(names if len(names) <= SHOWN else [*names[: SHOWN - 2], "...", names[-1]])


def about_model(task: Task) -> str:
    lines = [f"- Head: {_component(task.head)}"]
    if not isinstance(task.backbone, Identity):
        lines.append(f"- Backbone: {_component(task.backbone)}")
    count = sum(part.numel() for part in task.parameters())
    kept = sum(part.numel() for part in task.head.buffers())
    lines.append(f"- Size: {count:,} parameters, and {kept:,} numbers in the head's buffers")
    lines.append(f"- Input: {_shape(task.input_shape or ())}")
    return "\n".join(lines)


def _component(part: nn.Module) -> str:
    given = to_spec(part)["init_args"]
    said = ", ".join(f"{name} {_short(value)}" for name, value in given.items() if value is not None)
    return f"`{type(part).__name__}` ({said})" if said else f"`{type(part).__name__}`"


def _short(value: Any) -> str:
    if isinstance(value, dict) and "class_path" in value:
        return str(value["class_path"]).rpartition(".")[2]
    return f"[{', '.join(map(_short, value))}]" if isinstance(value, list) else str(value)


def _shape(shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return f"rows of {shape[0]:,} features"
    if len(shape) == 2:
        return f"bags of instances of {shape[1]:,} features"
    return "pictures of " + " x ".join("any" if side == -1 else str(side) for side in shape)


def about_preprocessing(task: Task) -> str:
    known = task.preprocessing or {}
    if isinstance(scaling := known.get("scaling"), dict):
        return (
            f"Features are scaled (`{scaling.get('kind', 'none')}`) by what the training rows taught; `Predictor` does."
        )
    if "crop_size" in known:
        margin = "the usual margin" if known.get("margin") is None else f"a margin of {known['margin']:g}"
        return (
            f"Pictures are turned upright, cut out around the face with {margin}, and brought to {known['crop_size']} "
            f"x {known['crop_size']} pixels; the backbone normalises them."
        )
    return "None."


def about_calibration(task: Task) -> str:
    lines = []
    if task.temperature != 1:
        lines.append(f"Distributions are tempered by {task.temperature:.3g}, which was fitted on the validation part.")
    if (found := getattr(task, "calibration", None)) is not None:
        what = "Intervals" if task.labels.has_values else "Sets of labels"
        lines.append(f"{what} are calibrated on {found.units:,} validation rows or groups (conformal).")
    return " ".join(lines) or "None: intervals are those of the distributions, as they are."


def about_licences(task: Task, data: LDLDataModule) -> str:
    source = known_source(data)
    return "\n".join(
        [
            f"- Code: {CODE}.",
            f"- Weights: {of_weights(task.backbone)}.",
            f"- Data: {'not known to ldl; ask whoever collected them' if source is None else source.licence}.",
        ]
    )


def about_usage(task: Task, checkpoint: str | None, folds: int) -> str:
    """How to predict with it."""
    if checkpoint is None:
        return "No checkpoint was kept: train again to use it."
    shape, is_picture = task.input_shape or (), "crop_size" in (task.preprocessing or {}) or task.gives_maps
    if is_picture or len(shape) <= 2:
        given = "pictures/" if is_picture else "new.csv"
        loaded, asked = f'"{given}"', f"{'--data PictureFolder ' if is_picture else ''}--data.path {given}"
        command = f"`ldl --stage predict --ckpt_path {checkpoint} {asked}`"
    else:
        loaded, command = "inputs", f"`inputs` is an array {('N', *shape)}".replace("'", "")
    one = " Every fold has a model of its own; this is that of the first." if folds > 1 else ""
    return (
        f"From this folder:{one}\n\n```python\nfrom ldl.inference import Predictor\n\n"
        f'found = Predictor.from_checkpoint("{checkpoint}").predict({loaded})\n'
        f"print(found.distribution)  # (N, {len(task.labels)})\n```\n\n{command}; "
        f"`ldl export {checkpoint} --to onnx --out model.onnx` makes a file that runs without ldl."
    )
