"""What the outcome of a cell depends on: the options, but for those of places and of looks, the data, the version."""

from __future__ import annotations

import copy
import hashlib
import inspect
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from jsonargparse import Namespace
from jsonargparse._util import import_object

from ldl.backbones.timm_network import local_weights
from ldl.data.base import LDLDataModule
from ldl.data.column import pieces
from ldl.errors import LDLError
from ldl.protocols import Fold

PLACES = ("path", "root", "cache_dir", "in_memory", "num_workers", "prefetch")
"""Options of data that change nothing where the content is the same."""
LOOKS = ("logger", "enable_progress_bar", "enable_checkpointing", "enable_model_summary")
"""Options of a trainer that change no figure."""
VERSIONED = {"ldl", "torch", "pytorch_lightning", "lightning", "lightning_fabric", "albumentations"}
VERSIONED |= sys.stdlib_module_names
"""Packages whose classes change with their version alone."""
ELSEWHERE = ("wandb", "run_dir", "ckpt_path", "stage", "jobs", "scheduler")


def data_text(text: str) -> str:
    """What data a configuration, as YAML, opens, without the fold."""
    content = yaml.safe_load(text)["data"]
    content.get("init_args", {}).pop("fold", None)
    return json.dumps(content, sort_keys=True)


def depends_on(text: str) -> dict[str, Any]:
    """What the figures of a configuration, as YAML, depend on, but for fold and content of its data."""
    content: dict[str, Any] = yaml.safe_load(text)
    for name in ("fold", *PLACES):
        content["data"].get("init_args", {}).pop(name, None)
    for name in LOOKS:
        content["trainer"].pop(name, None)
    for name in ELSEWHERE:
        content.pop(name, None)
    if files := file_digests(content.get("model")) | source_digests(content):
        content["files"] = files
    return content


def file_digests(part: Any) -> dict[str, str]:
    """Of what is named in a part of a configuration and is a file, such as weights, or is found by a network's name."""
    return {name: _file_digest(file) for name, file in dict(_files(part)).items()}


def _files(part: Any) -> Iterator[tuple[str, str | Path]]:
    if isinstance(part, str) and os.path.isfile(part):
        yield part, part
    elif isinstance(part, list | tuple):
        for each in part:
            yield from _files(each)
    elif isinstance(part, dict):
        yield from _files(list(part.values()))
        # Not by its path, which is another on another machine.
        if part.get("pretrained") and not part.get("weights") and (file := local_weights(str(part.get("name")))):
            yield f"{part['name']}*.safetensors", file


def source_digests(part: Any) -> dict[str, str]:
    """Of the source of classes, and of what they are derived from, in a part of a configuration, by their modules.

    That of packages whose version tells is left out, and so is what else a module imports.
    """
    modules = {name: getattr(sys.modules.get(name), "__file__", None) for name in _modules(part)}
    return {name: _file_digest(file) for name, file in modules.items() if file is not None}


def _modules(part: Any) -> Iterator[str]:
    if isinstance(part, list | tuple):
        for each in part:
            yield from _modules(each)
    elif isinstance(part, dict):
        yield from _modules(list(part.values()))
        path = part.get("class_path")
        if isinstance(path, str) and path.partition(".")[0] not in VERSIONED:
            found = import_object(path)
            owners = inspect.getmro(found) if inspect.isclass(found) else (found,)
            yield from (one.__module__ for one in owners if one.__module__.partition(".")[0] not in VERSIONED)


def _file_digest(file: str | Path) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def content_digest(data: LDLDataModule) -> str:
    """Of inputs and columns of data that are set up, and of the rows of all folds."""
    digest = hashlib.sha256((data.content_key or "").encode())
    if data.content_key is None:
        with torch.random.fork_rng(devices=[]):
            for batch in data.whole_dataloader():
                digest.update(f"{tuple(batch['input'].shape[1:])}".encode() + _bytes(batch["input"]))
    for name in sorted(data.columns):
        digest.update(f"{name} {len(data.columns[name])}".encode())
        for piece in pieces(data.columns[name]):
            digest.update(_bytes(piece))
    with redirect_stdout(io.StringIO()):  # what a set says of a fold is said when it is trained
        for fold in range(data.num_folds) or [data.fold]:
            split = cut(data, fold)
            for rows in (split.train, split.val, split.test):
                digest.update(f"{len(rows)}".encode() + np.asarray(rows, np.int64).tobytes())
    return digest.hexdigest()


def cut(data: LDLDataModule, fold: int) -> Fold:
    """The rows of a fold of data that stay at theirs."""
    other = copy.copy(data)
    other.fold = fold
    return other.cut()


def _bytes(part: torch.Tensor) -> bytes:
    return part.contiguous().numpy().tobytes()


def cell_key(text: str, data: LDLDataModule) -> dict[str, str]:
    """What the folds of a cross-validation have in common: digests of options and data, and the version.

    Args:
        text: The configuration of a fold, as YAML.
        data: Its data, set up.
    """
    options = json.dumps(depends_on(text), sort_keys=True)
    made = {"options": hashlib.sha256(options.encode()).hexdigest(), "data": content_digest(data)}
    return {**{name: value[:16] for name, value in made.items()}, "version": version("ldl")}


def check_one_process(config: Namespace, what: str) -> None:
    """Raise LDLError where the trainer is one of several processes; ``what`` says what is in one alone."""
    devices, nodes = config.trainer.devices, config.trainer.num_nodes
    if nodes > 1 or devices not in ("auto", 1, "1", [0]):
        given = f"--trainer.num_nodes {nodes}" if nodes > 1 else f"--trainer.devices {devices}"
        raise LDLError(f"{what} in one process; leave {given} out, or give --trainer.devices 1")
