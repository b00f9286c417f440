"""Features of frozen layers, of inputs and of augmented images, computed once and reused by every fold and head."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor

from ldl.backbones.base import Backbone
from ldl.batch import run_seed
from ldl.data.base import LDLDataModule
from ldl.data.cache import cache_root, cached_folder
from ldl.data.loader import Guarded, collate
from ldl.data.sampler import Draws
from ldl.data.storage import RowWriter
from ldl.spec import to_spec

SIDES = 2
"""Views of evaluation: the image and its mirror image."""


def serve_frozen(backbone: Backbone, trainer: pl.Trainer) -> None:
    """Let a trainer's data serve features, or cached augmentations, of the backbone's current weights.

    Existing features of the same weights are reused. Prediction uses every instance once, so it caches nothing. Raises
    LDLError if the network cannot be split after the frozen layers.
    """
    data, device = getattr(trainer, "datamodule", None), trainer.strategy.root_device
    if not isinstance(data, LDLDataModule):
        return
    predicts = trainer.state.fn == "predict"
    if not predicts or data.features_key is not None:
        cache_features(backbone, data, device)
    data.views = None if predicts else cache_augmentations(backbone, data, device)


def cache_features(backbone: Backbone, data: LDLDataModule, device: torch.device) -> None:
    """Let the data serve features in place of inputs, if the backbone is frozen and the data support it.

    Features are those of evaluation, without augmentation. They are computed on ``device`` and stored under a key of
    the weights, the backbone's options and the inputs: in the data module, for all its folds, and, if the data have a
    ``content_key``, on disk, where concurrent processes wait for the first one. Features of another key replace
    them. Features that were passed to the data module by hand stay.
    """
    if data.backbone_features is not None and data.features_key is None:
        return
    key = None
    if backbone.is_frozen and data.columns:
        key = _key(backbone.state_dict(), f"{to_spec(backbone)} {_content(data)}")
    if key == data.features_key:
        return
    if key is None:
        data.use_features(None)
    else:
        data.use_features(_cached(key, data, "the features", lambda: _features(backbone, data, device)), key)


@torch.no_grad()
def _features(backbone: Backbone, data: LDLDataModule, device: torch.device) -> Iterator[Tensor]:
    copied = _in_evaluation(backbone, device)
    for batch in data.whole_dataloader():
        yield copied(batch["input"].to(device)).float().cpu()


@dataclass
class CachedAugmentations:
    """Cached maps of frozen layers, which the data serve in place of images.

    Attributes:
        maps: (size, 2 + views, ...) of every instance: unchanged, mirrored, and in augmented copies.
        key: Identifies the weights, the inputs and the augmentation of the maps.
    """

    maps: Tensor
    key: str
    serves = "maps"

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """Return maps of the instances ``rows`` (B,).

        In training (B, 1, ...), of an augmented copy chosen by ``seeds``; else (B, 2, ...), of the image and its mirror
        image.
        """
        index = torch.from_numpy(rows)
        if not train:
            return self.maps[index, :SIDES]
        return self.maps[index, torch.from_numpy(SIDES + seeds % (self.maps.shape[1] - SIDES))].unsqueeze(1)


def cache_augmentations(backbone: Backbone, data: LDLDataModule, device: torch.device) -> CachedAugmentations | None:
    """Return the cached augmentations of ``backbone``; None if the backbone uses none.

    They are stored like features, with the augmentation and the seed of the run in the key. If ``data`` already serve
    augmentations with this key, these are returned.
    """
    if not backbone.views:
        return None
    made = f"{backbone.views} views, seed {run_seed()}, by {type(backbone).__name__}"
    made += f", enlarged by {backbone.enlarge:g}" if backbone.enlarge != 1 else ""
    key = _key(_frozen_state(backbone), f"{_content(data)} {data.augmentation_key} {made}")
    if data.views is not None and data.views.key == key:
        return data.views
    return CachedAugmentations(
        _cached(key, data, f"{backbone.views} views", lambda: _augmented(backbone, data, device)), key
    )


def _frozen_state(backbone: Backbone) -> dict[str, Tensor]:
    """Return the parameters that are not trained, and the buffers of their layers; all others change between folds."""
    layers = {name.rpartition(".")[0] for name, held in backbone.named_parameters() if not held.requires_grad}
    return {name: value for name, value in backbone.state_dict().items() if name.rpartition(".")[0] in layers}


@torch.no_grad()
def _augmented(backbone: Backbone, data: LDLDataModule, device: torch.device) -> Iterator[Tensor]:
    """Yield maps (B, 2 + views, ...) of all instances in order, batch by batch."""
    copied = _in_evaluation(backbone, device)
    numbers = np.arange(data.size)
    whole, random = (Guarded(data.dataset(numbers, train)) for train in (False, True))
    seeds = np.random.default_rng([run_seed(), 2]).integers(2**31, size=(backbone.views, data.size))
    step = data.eval_batch_size
    for start in range(0, data.size, step):
        rows = numbers[start : start + step]
        plain = collate(whole.__getitems__(Draws(rows)))["input"].to(device)
        views = [plain, plain.flip(-1)]
        views += [
            collate(random.__getitems__(Draws(rows, seeds=row_seeds[rows])))["input"].to(device) for row_seeds in seeds
        ]
        yield torch.stack([copied.frozen_maps(view).float().cpu() for view in views], 1)


def _content(data: LDLDataModule) -> str:
    # Inputs without a description belong to this data module, and to one fold if folds are prepared.
    fold = "" if type(data).prepare_fold is LDLDataModule.prepare_fold else f"fold {data.fold}"
    return data.content_key or fold


def _key(state: Mapping[str, Tensor], content: str) -> str:
    digest = hashlib.sha256(content.encode())
    for name, value in sorted(state.items()):
        value = value.float() if value.is_floating_point() else value
        digest.update(name.encode() + value.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:20]


def _cached(key: str, data: LDLDataModule, content: str, make: Callable[[], Iterator[Tensor]]) -> Tensor:
    """Return the parts of ``make`` for all instances as one tensor (size, ...).

    If the data have a ``content_key``, they are computed once, stored on disk under ``key`` and memory-mapped.
    """
    if data.content_key is None:
        return torch.cat(list(make()))

    def write(folder: Path) -> None:
        blocks = make()
        first = next(blocks)
        with RowWriter(folder / "features.npy", np.float32, (data.size, *first.shape[1:])) as writer:
            for block in chain([first], blocks):
                writer.append(block.numpy())

    path = cache_root(data.cache_dir) / "features" / key
    folder = cached_folder(path, write, f"computing {content} of {data.size} instances")
    return torch.from_numpy(np.load(folder / "features.npy", mmap_mode="c", allow_pickle=False))


def _in_evaluation(backbone: Backbone, device: torch.device) -> Backbone:
    # In float32 for any precision of the trainer, because the key of the cache does not name a precision.
    return copy.deepcopy(backbone).to(device, torch.float32).eval()
