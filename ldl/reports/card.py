"""``model_card.md``: description, evaluation, limits and use of a trained model."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from ldl.backbones.timm_network import TimmNetwork, local_weights, not_on_hub
from ldl.checkpoint import replacing
from ldl.data.base import LDLDataModule
from ldl.data.sources import known_source
from ldl.labels import LabelSpace
from ldl.metrics import metrics_for
from ldl.reports.files import ESCAPED, as_text, markdown
from ldl.reports.raters import rater_model_in_words
from ldl.reports.votes import raters_in_words
from ldl.spec import to_spec
from ldl.task import Task

DATA = "`{data}`, {title}: {size:,} instances, {groups}.{taken}{source}"

PROTOCOL = "`{protocol}`, {seed}. {leaks}\n\nSizes of the sets: {sizes}."

MODEL = """\
- Head: {head}
- Backbone: {backbone}
- Size: {parameters:,} parameters, and {buffers:,} numbers in the head's buffers
- Input: {inputs}"""

CODE = "MIT (ldl)"
"""Licence of the code."""

LICENCES = "- Code: {code}.\n- Weights: {weights}.\n- Data: {data}."

USAGE = "How to use it"
"""Title of the section with the snippet."""

SNIPPET = """\
{opening}:

```python
from ldl.inference import Predictor

found = Predictor.{load}.predict({inputs})
print(found.distribution)  # (N, {n_labels})
```

{command}; `ldl export {path} --to onnx --out model.onnx` makes a file that runs without ldl."""

SETS = ("train", "val", "test")

LABELS_SHOWN = 8
"""Largest number of nominal labels whose names are all listed."""


class FinishedRun(NamedTuple):
    """A tested run, as ``results.json`` and ``model_card.md`` describe it.

    Attributes:
        folder: The run directory.
        results: Content of ``results.json``.
        task: The task; of a cross-validation that of any fold.
        data: Its data module.
        checkpoint: The tested checkpoint of another folder; the card names it if ``folder`` has no checkpoint.
        select: Name of the tested checkpoint of ``folder``.
    """

    folder: Path
    results: dict[str, Any]
    task: Task
    data: LDLDataModule
    checkpoint: str | None = None
    select: str = "last"


def write_card(run: FinishedRun) -> None:
    """Write a whole ``model_card.md`` or none into the folder of a run."""
    file = f"checkpoints/{run.select}.ckpt"
    checkpoints = sorted(run.folder.glob(file)) or sorted(run.folder.glob(f"fold_*/{file}"))
    checkpoint = checkpoints[0].relative_to(run.folder).as_posix() if checkpoints else run.checkpoint
    with replacing(run.folder / "model_card.md") as stream:
        stream.write(model_card(run.results, run.task, run.data, checkpoint).encode(errors=ESCAPED))


def model_card(results: dict[str, Any], task: Task, data: LDLDataModule, checkpoint: str | None = None) -> str:
    """Return the card of a run in Markdown.

    Args:
        results: The content of ``results.json``.
        task: The trained task; of a cross-validation the task of the last fold.
        data: Its data module, set up.
        checkpoint: Path of the checkpoint from the card's folder, or None if none was kept.
    """
    folds, source, groups = results["folds"], known_source(data), getattr(data, "groups", None)
    run_sections = {
        "Data": DATA.format(
            data=results["data"],
            title=as_text(data.title),
            size=data.size,
            groups="groups (such as persons) unknown" if groups is None else f"in {len(set(groups)):,} groups",
            taken=f" Taken from the file: {data.taken}." if data.taken else "",
            source="" if source is None else f" {source.name}: {source.where}.",
        ),
        "Protocol": PROTOCOL.format(
            protocol=results["protocol"],
            seed="no seed" if results["seed"] is None else f"seed {results['seed']}",
            leaks=about_leaks(results),
            sizes=", ".join(f"{name} {_range([fold[f'n_{name}'] for fold in folds])}" for name in SETS),
        ),
        "Results": f"On {sum(fold['n_test'] for fold in folds):,} test instances.\n\n{_results(results, task)}",
    }
    if modelled := [fold for fold in folds if "rater_model" in fold]:
        run_sections["Raters"] = rater_model_in_words(modelled, task.labels)
    usage = "No checkpoint was kept: train again to use it."
    if checkpoint is not None:
        path = json.dumps(checkpoint, ensure_ascii=False)
        opening = "From this folder" + (", with the model of the first fold" if len(folds) > 1 else "")
        usage = how_to_use(task, opening, f"from_checkpoint({path})", checkpoint)
    title = f"{results['head']} on {as_text(data.title)}"
    opening = "ldl wrote this file with `results.json`, from the run itself."
    licence = None if source is None else source.licence
    return _card(title, opening, task, usage, run_sections, licence, _limits(results, task.labels), results["versions"])


def card_without_run(task: Task, usage: str, versions: dict[str, str]) -> str:
    """Return the card in Markdown of a model whose data and results are unknown."""
    opening = "ldl wrote this file from the model alone, so its data, evaluation and results are not described."
    limits = "\n".join(["- The errors of the model are unknown.", *_limits_of_labels(task.labels)])
    return _card(type(task.head).__name__, opening, task, usage, {}, None, limits, versions)


def _card(
    title: str,
    opening: str,
    task: Task,
    usage: str,
    about: dict[str, str],
    licence: str | None,
    limits: str,
    versions: dict[str, str],
) -> str:
    labels = task.labels
    where = "at every pixel of an image" if task.gives_maps else "for each instance"
    unit = f"in {as_text(labels.unit)}, " if labels.unit else ""
    value = f" Also a value, {unit}by the head's own estimate or the {task.decoder}." if labels.has_values else ""
    sections = {
        "What it predicts": f"A distribution over {len(labels):,} labels ({labels.kind}), {where}: "
        f"{labels_in_words(labels)}.{value}",
        **about,
        "Model": MODEL.format(
            head=_describe_module(task.head),
            backbone=_describe_module(task.backbone),
            parameters=sum(tensor.numel() for tensor in task.parameters()),
            buffers=sum(tensor.numel() for tensor in task.head.buffers()),
            inputs=" x ".join("any" if side == -1 else f"{side:,}" for side in task.input_shape or ()),
        ),
        "Preprocessing": _preprocessing(task.preprocessing or {}),
        "Calibration": _calibration(task),
        "Licences": LICENCES.format(
            code=CODE,
            weights=of_weights(task.backbone),
            data=licence or "unknown to ldl; contact the authors of the data",
        ),
        USAGE: usage,
        "Limits": limits,
        "Versions": ", ".join(f"{name} {number}" for name, number in versions.items()) + ".",
    }
    text = "\n\n".join(f"## {name}\n\n{section}" for name, section in sections.items())
    return f"# {title}\n\n{opening}\n\n{text}\n"


def labels_in_words(labels: LabelSpace) -> str:
    """Return the range of ordinal labels, or the first names of others."""
    if labels.kind == "ordinal":
        axis = labels.axes[0]
        return f"{axis[0]:g} to {axis[-1]:g} {as_text(labels.unit)}".rstrip()
    names = list(map(as_text, labels.names))
    return ", ".join(names if len(names) <= LABELS_SHOWN else [*names[: LABELS_SHOWN - 2], "...", names[-1]])


def about_leaks(results: dict[str, Any]) -> str:
    """Return the results of the audits for group leakage and for copied files."""
    leaks = [fold["leak"] for fold in results["folds"]]
    if None not in leaks:
        share = f"{max(leaks):.1%} of the test instances share a group with the training set"
        warning = f"**This protocol leaks: {share}. The results are too good for new groups.**"
        text = warning if max(leaks) > 0 else f"Audited: {share}."
    elif results["leaky"] is False:
        text = "Its sets have nothing in common, as published."
    else:
        text = (
            "**The groups of the instances (such as persons) are unknown**, so that leakage between training and test "
            "sets cannot be counted: the results may be too good for new persons."
        )
    if copied := [fold["copied"] for fold in results["folds"] if "copied" in fold]:
        sentence = f" **{max(copied):.1%} of the test instances are also in the training set, byte for byte.**"
        text += sentence if max(copied) > 0 else " No test instance is also in the training set, byte for byte."
    return text


def _range(sizes: list[int]) -> str:
    low, high = min(sizes), max(sizes)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def main_results(results: dict[str, Any], task: Task) -> dict[str, float]:
    """Return the means over folds by metric, without metrics marked ``detail`` and without NaN and infinities."""
    details = {metric.name for metric in metrics_for(task.labels, task.gives_maps) if metric.detail}
    means = {name: mean for name, mean in results["mean"].items() if name not in details}
    return {name: mean for name, mean in means.items() if mean is not None and math.isfinite(mean)}


def _results(results: dict[str, Any], task: Task) -> str:
    in_unit = {metric.name for metric in metrics_for(task.labels, task.gives_maps) if metric.unit and task.labels.unit}
    several, rows = len(results["folds"]) > 1, []
    for name, mean in main_results(results, task).items():
        unit = f" ({as_text(task.labels.unit)})" if name in in_unit else ""
        rows.append([f"{name}{unit}", f"{mean:.4g}", *([f"{results['std'][name]:.2g}"] if several else [])])
    columns = ("mean over folds", "standard deviation") if several else ("test",)
    table = markdown(("metric", *columns), rows)
    return f"{table}\n\n{raters_in_words(results['raters'])}." if "raters" in results else table


def _describe_module(module: nn.Module) -> str:
    options = to_spec(module)["init_args"]
    text = ", ".join(f"{name} {_describe_option(value)}" for name, value in options.items() if value is not None)
    return f"`{type(module).__name__}` ({text})" if text else f"`{type(module).__name__}`"


def _describe_option(value: Any) -> str:
    if isinstance(value, dict) and "class_path" in value:
        return str(value["class_path"]).rpartition(".")[2]
    return f"[{', '.join(map(_describe_option, value))}]" if isinstance(value, list) else as_text(str(value))


def _preprocessing(steps: dict[str, Any]) -> str:
    if isinstance(scaling := steps.get("scaling"), dict):
        subject = (
            "Columns of categories, dates and gaps are encoded, and features" if "encoding" in steps else "Features"
        )
        kind = scaling.get("kind", "none")
        texts = [_text_encoding(column) for column in steps.get("encoding", ()) if column["kind"] == "text"]
        scaled = f"{subject} are scaled (`{kind}`) by the training set; `Predictor` does the same."
        return " ".join([*texts, scaled])
    if "crop_size" in steps:
        how = "fitted into a square" if steps.get("alignment") == "none" else "cropped to the face"
        return f"Images are rotated upright, {how} and resized to {steps['crop_size']} pixels."
    return "None."


def _text_encoding(column: dict[str, Any]) -> str:
    name, text = as_text(column["name"]), column["text"]
    return (
        f"Text in the column `{name}` becomes {text['width']} features by the frozen encoder "
        f"`{as_text(text['encoder'])}`, from its first {text['tokens']} tokens."
    )


def _calibration(task: Task) -> str:
    lines = []
    if task.temperature != 1:
        lines.append(f"Distributions have the temperature {task.temperature:.3g}, fitted on the validation set.")
    if task.calibration is not None:
        units = task.calibration.units
        lines.append(
            f"Intervals and sets are calibrated on {units:,} validation rows or groups (conformal prediction)."
        )
    return " ".join(lines) or "None: intervals are those of the predicted distributions."


def how_to_use(task: Task, opening: str, load: str, checkpoint: str) -> str:
    """Return the section with the snippet.

    Args:
        task: The task.
        opening: First words.
        load: Call of a class method of ``Predictor``.
        checkpoint: Path of the checkpoint, for commands.
    """
    shape, images = task.input_shape or (), "crop_size" in (task.preprocessing or {}) or task.gives_maps
    inputs, command = "inputs", f"`inputs` is an array (N, {', '.join(map(str, shape))})"
    if images or len(shape) <= 2:
        path, data = ("pictures/", "--data PictureFolder ") if images else ("new.csv", "")
        inputs, command = f'"{path}"', f"`ldl --stage predict --ckpt_path {checkpoint} {data}--data.path {path}`"
    return SNIPPET.format(
        opening=opening, load=load, inputs=inputs, n_labels=len(task.labels), command=command, path=checkpoint
    )


def _limits(results: dict[str, Any], labels: LabelSpace) -> str:
    folds, leaks = results["folds"], [fold["leak"] for fold in results["folds"]]
    lines = ["- The results hold for instances like those of the data. What the data represent is not examined here."]
    if results["leaky"] is not False and (None in leaks or max(leaks) > 0):
        lines.append("- **Errors for new groups, such as persons, may be larger than in the table.**")
    if len(folds) == 1:
        lines.append("- One fold was tested: the variation between folds is unknown.")
    return "\n".join(lines + _limits_of_labels(labels))


def _limits_of_labels(labels: LabelSpace) -> list[str]:
    range_limit = f"- Values outside of the labels, {labels_in_words(labels)}, cannot be predicted."
    use_limit = "- The model was not examined for decisions about people; examine it for yours before you use it."
    return [range_limit, use_limit] if labels.kind == "ordinal" else [use_limit]


def of_weights(backbone: nn.Module) -> str:
    """Describe the licences of the weights with which a backbone's timm networks began."""
    licences = []
    for network in backbone.modules():
        if not isinstance(network, TimmNetwork):
            continue
        if file := getattr(network, "weights", None):
            licences.append(f"unknown: {network.name} began with the file {file}")
        elif network.pretrained and network.name not in not_on_hub:
            import timm  # imported late, because the import takes seconds

            config, file = timm.get_pretrained_cfg(network.model), local_weights(network.model)
            licence = getattr(config, "license", None) or "a licence that it does not name"
            where = f"the file {file.name}" if file else "pretrained weights"
            licences.append(
                f"{network.name} began with {where}; timm gives its own under {licence}, and the images that "
                "they were trained on, such as ImageNet (research only), may allow less"
            )
    return "; ".join(licences) or "none but those of the data: no weights of others were loaded"
