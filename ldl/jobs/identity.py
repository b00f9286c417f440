"""The identity of a result: digests of the configuration, the data, plugin sources and weights, and the version.

Results are reused if nothing changed that decides them. Options whose role changes no result do not count.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import io
import json
import os
import pydoc
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ldl.backbones.base import Backbone
from ldl.backbones.timm_network import local_weights
from ldl.data.base import LDLDataModule
from ldl.data.storage import pieces
from ldl.head import Head
from ldl.jobs.store import digest
from ldl.options import names_with_role, role_of
from ldl.protocols import Fold
from ldl.run.run_options import run_names, trainer_names
from ldl.validation.option import NEUTRAL
from ldl.validation.yaml_text import load_values

VERSIONED_PACKAGES = {"ldl", "torch", "pytorch_lightning", "lightning", "lightning_fabric", "albumentations"}
VERSIONED_PACKAGES |= sys.stdlib_module_names
"""Packages whose classes change only with their version."""


def data_text(text: str) -> str:
    """Return the data part of a YAML configuration without the fold."""
    content = load_values(text)["data"]
    content.get("init_args", {}).pop("fold", None)
    return json.dumps(content, sort_keys=True)


def deciding_options(text: str) -> dict[str, Any]:
    """Return the options of a YAML configuration that decide its results, with digests of the files they name.

    The fold and the content of the data are left out.
    """
    content: dict[str, Any] = load_values(text)
    content["data"].get("init_args", {}).pop("fold", None)
    _remove(content["data"], LDLDataModule, "path", *NEUTRAL)
    for name, base in (("head", Head), ("backbone", Backbone)):
        _remove(content["model"].get(name), base, *NEUTRAL)
    for name in trainer_names(*NEUTRAL):
        content["trainer"].pop(name, None)
    for name in run_names("start", *NEUTRAL):
        content.pop(name, None)
    if files := file_digests(content.get("model")) | source_digests(content):
        content["files"] = files
    return content


def _remove(content: Any, base: type, *roles: str) -> None:
    """Remove the options that have one of some roles from all classes below ``base`` in a part of a configuration.

    An option that its class gives no role has the role of its name in other classes.
    """
    names = names_with_role(base, *roles)
    for value in _values(content):
        if isinstance(value, dict) and isinstance(value.get("class_path"), str):
            cls, options = pydoc.locate(value["class_path"]), value.get("init_args") or {}
            for name in names & options.keys():
                if role_of(cls, name) in ("", *roles):
                    del options[name]


def file_digests(content: Any) -> dict[str, str]:
    """Return digests of the files that a part of a configuration names, also weights found by a network's name."""
    files: dict[str, str | Path] = {}
    for value in _values(content):
        if isinstance(value, str) and os.path.isfile(value):
            files[value] = value
        elif isinstance(value, dict) and (file := _local_weights(value)):
            # The network's name is the key, because the path differs between machines.
            files[f"{value['name']}*.safetensors"] = file
    return {name: _file_digest(file) for name, file in files.items()}


def _local_weights(options: dict[str, Any]) -> Path | None:
    if not options.get("pretrained") or options.get("weights"):
        return None
    return local_weights(str(options.get("name")))


def source_digests(content: Any) -> dict[str, str]:
    """Return digests of the modules of classes, and of their base classes, that a part of a configuration names.

    Modules of versioned packages are left out, and so are the imports of a module.
    """
    modules = set()
    for value in _values(content):
        path = value.get("class_path") if isinstance(value, dict) else None
        if isinstance(path, str) and not _is_versioned(path):
            cls = pydoc.locate(path)
            bases = inspect.getmro(cls) if inspect.isclass(cls) else (cls,)
            modules |= {base.__module__ for base in bases}
    files = {name: getattr(sys.modules.get(name), "__file__", None) for name in modules if not _is_versioned(name)}
    return {name: _file_digest(file) for name, file in files.items() if file is not None}


def _is_versioned(path: str) -> bool:
    return path.partition(".")[0] in VERSIONED_PACKAGES


def _values(content: Any) -> Iterator[Any]:
    yield content
    if isinstance(content, dict | list | tuple):
        for value in content.values() if isinstance(content, dict) else content:
            yield from _values(value)


def _file_digest(file: str | Path) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def content_digest(data: LDLDataModule) -> str:
    """Return a digest of the inputs, the columns and the rows of all folds of a data module after ``setup``."""
    sha = hashlib.sha256((data.content_key or "").encode())
    if data.content_key is None:
        with torch.random.fork_rng(devices=[]):
            for batch in data.whole_dataloader():
                sha.update(f"{tuple(batch['input'].shape[1:])}".encode() + _bytes(batch["input"]))
    for name in sorted(data.columns.keys() - {"rater", "vote"}):  # which are there only once a task asks for them
        sha.update(f"{name} {len(data.columns[name])}".encode())
        for piece in pieces(data.columns[name]):
            sha.update(_bytes(piece))
    if (single := data.single_votes) is not None:
        for part in (single.item, single.rater, single.label):
            sha.update(part.tobytes())
        sha.update("\n".join(map(str, single.names)).encode())
    with redirect_stdout(io.StringIO()):  # lines about a fold are printed when the fold is trained
        for fold in range(data.num_folds) or [data.fold]:
            split = split_of(data, fold)
            for rows in (split.train, split.val, split.test):
                sha.update(f"{len(rows)}".encode() + np.asarray(rows, np.int64).tobytes())
    return sha.hexdigest()


def split_of(data: LDLDataModule, fold: int) -> Fold:
    """Return the rows of a fold without selecting it."""
    other = copy.copy(data)
    other.fold = fold
    return other.cut()


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().numpy().tobytes()


def folds_key(text: str, data: LDLDataModule) -> dict[str, str]:
    """Return the key that the folds of a cross-validation share.

    Args:
        text: The configuration of a fold as YAML.
        data: Its data module after ``setup``.
    """
    return {"options": digest(deciding_options(text)), "data": content_digest(data)[:16], "version": version("ldl")}
