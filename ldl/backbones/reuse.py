"""Features of a backbone that never changes: computed once, reused by every fold and every head."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from torch import Tensor

from ldl.backbones.base import Backbone
from ldl.data.base import LDLDataModule
from ldl.data.cache import cache_root
from ldl.data.row_file import RowWriter
from ldl.spec import to_spec


def reuse_features(backbone: Backbone, data: LDLDataModule, device: torch.device) -> None:
    """Let the data serve features in place of inputs, where the backbone is fixed and the data allow it.

    Features are those of evaluation: without random transforms. They are computed on ``device`` and kept under a key
    of the weights, the backbone's options and the inputs: in the data module, for all its folds, and, where it has a
    ``content_key``, on disk, from where they are read as they are asked for; processes that ask at the same time wait
    for the first. A backbone of another key replaces
    them; features that the data module was given by hand stay.
    """
    if data.backbone_features is not None and data.features_key is None:
        return
    key = None
    if backbone.is_fixed and data.columns:
        key = key_of(backbone.state_dict(), f"{to_spec(backbone)} {content_of(data)}")
    if key == data.features_key:
        return
    if key is None:
        data.use_features(None)
    else:
        data.use_features(keep(key, data, "the features", lambda: _extract(backbone, data, device)), key)


def content_of(data: LDLDataModule) -> str:
    """What the inputs of evaluation are made of, as far as it is known."""
    # Inputs of which there is no description are those of this data module, and of one fold where it prepares these.
    own = "" if type(data).prepare_fold is LDLDataModule.prepare_fold else f"fold {data.fold}"
    return data.content_key or own


def keep(key: str, data: LDLDataModule, what: str, make: Callable[[], Iterator[Tensor]]) -> Tensor:
    """What ``make`` gives of all instances, part by part, as one (size, ...).

    Where the data have a ``content_key`` it is kept on disk under ``key``, read as it is asked for, and made but once.
    """
    if data.content_key is None:
        return torch.cat(list(make()))
    folder = cache_root(data.cache_dir) / "features"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{key}.npy"
    with FileLock(folder / f"{key}.lock"):
        if not file.is_file():
            print(f"computing {what} of {data.size} instances into {folder}", flush=True)
            temporary = file.with_suffix(".tmp.npy")
            _write(temporary, data.size, make())
            os.replace(temporary, file)
    return torch.from_numpy(np.load(file, mmap_mode="c", allow_pickle=False))


def _write(file: Path, size: int, parts: Iterator[Tensor]) -> None:
    first = next(parts)
    with RowWriter(file, np.float32, (size, *first.shape[1:])) as writer:
        for part in chain([first], parts):
            writer.append(part.numpy())


@torch.no_grad()
def _extract(backbone: Backbone, data: LDLDataModule, device: torch.device) -> Iterator[Tensor]:
    copied = in_evaluation(backbone, device)
    for batch in data.whole_dataloader():
        yield copied(batch["input"].to(device)).float().cpu()


def in_evaluation(backbone: Backbone, device: torch.device) -> Backbone:
    """A copy on ``device``, in float32 whatever precision a trainer has given it: what is kept is of no precision."""
    return copy.deepcopy(backbone).to(device, torch.float32).eval()


def key_of(state: Mapping[str, Tensor], content: str) -> str:
    """One word for what a backbone with such weights makes of some content."""
    digest = hashlib.sha256(content.encode())
    for name, value in sorted(state.items()):
        value = value.float() if value.is_floating_point() else value
        digest.update(name.encode() + value.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:20]
