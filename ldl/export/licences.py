"""The three licences of a trained model: of its code, the weights it began with, and the data it learned from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import yaml
from torch import nn

from ldl.backbones.timm_network import TimmNetwork, local_weights, not_on_hub
from ldl.data.sources import SOURCES
from ldl.task import Task

CODE = "MIT (ldl)"
UNKNOWN_DATA = "unknown: nothing beside the checkpoint says what data it was trained on; ask whoever trained it"


class Licences(NamedTuple):
    """What may be done with the parts of a model, each in words."""

    code: str
    weights: str
    data: str


def licences(task: Task, checkpoint: str | Path | None = None) -> Licences:
    """The licences of a task.

    Args:
        task: Its backbone says whether it began with the weights of somebody else.
        checkpoint: Its file: the run's configuration, which lies beside it, names the data.
    """
    return Licences(CODE, of_weights(task.backbone), _of_data(checkpoint))


def of_weights(backbone: nn.Module) -> str:
    """The licences of the weights that timm networks in a backbone began with."""
    said = []
    for part in backbone.modules():
        if not isinstance(part, TimmNetwork):
            continue
        if file := getattr(part, "weights", None):
            said.append(f"unknown: {part.name} began with the file {file}")
        elif part.pretrained and part.name not in not_on_hub:
            licence, file = _timm_licence(part), local_weights(part.name)
            where = f"the file {file.name}" if file else "pretrained weights"
            said.append(
                f"{part.name} began with {where}; timm gives its own under {licence}, and the pictures that "
                "they were trained on, such as ImageNet (research only), may allow less"
            )
    return "; ".join(said) or "none but those of the data: no weights of others were loaded"


def _timm_licence(part: TimmNetwork) -> str:
    import timm

    config = timm.get_pretrained_cfg(part.name)
    return str(getattr(config, "license", None) or "a licence that it does not name")


def _of_data(checkpoint: str | Path | None) -> str:
    data = None if checkpoint is None else _data_of_run(Path(checkpoint))
    if data is None:
        return UNKNOWN_DATA
    kind, file = data
    known = SOURCES.get(file) or SOURCES.get(kind)
    if known is None:
        return f"unknown: {kind} {file}".rstrip() + ", of which ldl knows no licence; ask whoever trained it"
    return f"{known.name}: {known.licence}"


def _data_of_run(checkpoint: Path) -> tuple[str, str] | None:
    """Class and file of the data, by the configuration of the run that wrote the checkpoint."""
    for folder in checkpoint.absolute().parents[:3]:
        if (file := folder / "config.yaml").is_file():
            try:
                data: Any = yaml.safe_load(file.read_text(encoding="utf-8"))["data"]
                path = (data.get("init_args") or {}).get("path") or ""
                return str(data["class_path"]).rpartition(".")[2], Path(path).name
            except (yaml.YAMLError, OSError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
                return None
    return None
