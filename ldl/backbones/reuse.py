"""Features of a backbone that never changes: computed once, reused by every fold and every head."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from torch import Tensor

from ldl.backbones.base import Backbone
from ldl.data.base import LDLDataModule
from ldl.data.cache import cache_root
from ldl.spec import to_spec


def reuse_features(backbone: Backbone, data: LDLDataModule, device: torch.device) -> None:
    """Let the data serve features in place of inputs, where the backbone is fixed and the data allow it.

    Features are those of evaluation: without random transforms. They are kept under a key of the weights, the
    backbone's options and the inputs: in the data module, for all its folds, and, where it has a ``content_key``, on
    disk; processes that ask at the same time wait for the first. A backbone of another key replaces them; features
    that the data module was given by hand stay.

    Args:
        backbone: The backbone, built.
        data: The data module, set up.
        device: Where the features are computed.
    """
    if data.backbone_features is not None and data.features_key is None:
        return
    content = data.content_key
    key = _key(backbone, content or _inputs(data)) if backbone.is_fixed and data.columns else None
    if key == data.features_key:
        return
    if key is None:
        data.use_features(None)
    elif content is None:
        data.use_features(_extract(backbone, data, device), key)
    else:
        data.use_features(_from_disk(key, backbone, data, device), key)


def _inputs(data: LDLDataModule) -> str:
    """What tells the inputs of a data module, of which there is no description, from its others."""
    learns = type(data).prepare_fold is not LDLDataModule.prepare_fold
    return f"fold {data.fold}" if learns else ""


def _from_disk(key: str, backbone: Backbone, data: LDLDataModule, device: torch.device) -> Tensor:
    folder = cache_root(data.cache_dir) / "features"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{key}.npy"
    with FileLock(folder / f"{key}.lock"):
        if not file.is_file():
            print(f"computing the features of {data.size} instances into {folder}", flush=True)
            _save(file, _extract(backbone, data, device).numpy())
    return torch.from_numpy(np.load(file))


@torch.no_grad()
def _extract(backbone: Backbone, data: LDLDataModule, device: torch.device) -> Tensor:
    training, place = backbone.training, next((p.device for p in backbone.parameters()), device)
    backbone.to(device).eval()
    parts = [backbone(batch["input"].to(device)).float().cpu() for batch in data.whole_dataloader()]
    backbone.to(place).train(training)
    return torch.cat(parts)


def _key(backbone: Backbone, content: str) -> str:
    digest = hashlib.sha256(f"{to_spec(backbone)} {content}".encode())
    for name, value in sorted(backbone.state_dict().items()):
        digest.update(name.encode() + value.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:20]


def _save(file: Path, features: np.ndarray) -> None:
    temporary = file.with_suffix(".tmp.npy")
    np.save(temporary, features)
    os.replace(temporary, file)
