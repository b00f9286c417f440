"""What the fixed layers of a backbone make of random views of the training pictures: computed once for all folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ldl.backbones.base import Backbone
from ldl.backbones.reuse import content_of, in_evaluation, keep, key_of
from ldl.batch import run_seed
from ldl.data.base import LDLDataModule
from ldl.data.instances import Guarded, collate
from ldl.data.sampler import Draws

SIDES = 2
"""Views of evaluation: the picture and its mirror image."""


@dataclass
class KeptViews:
    """Serves maps of fixed layers in place of pictures.

    Attributes:
        maps: (size, 2 + views, ...) of every instance: as it is, mirrored, and in random views.
        key: What they are made of, in one word.
    """

    maps: Tensor
    key: str
    serves = "maps"

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """Maps of the instances ``rows`` (B,): (B, 1, ...), views that ``seeds`` choose, or (B, 2, ...), both sides."""
        index = torch.from_numpy(rows)
        if not train:
            return self.maps[index, :SIDES]
        return self.maps[index, torch.from_numpy(SIDES + seeds % (self.maps.shape[1] - SIDES))].unsqueeze(1)


def keep_views(backbone: Backbone, data: LDLDataModule, device: torch.device) -> KeptViews | None:
    """The views that ``backbone`` asks for, those that ``data`` has where they are the same; None where none.

    They are kept as features are (:mod:`ldl.backbones.reuse`), under a key that has the random transforms and the seed
    of the run in it, too.
    """
    if not backbone.views:
        return None
    made = f"{backbone.views} views, seed {run_seed()}, by {type(backbone).__name__}"
    made += f", enlarged by {backbone.enlarge:g}" if backbone.enlarge != 1 else ""
    key = key_of(_fixed_state(backbone), f"{content_of(data)} {data.augmentation_key} {made}")
    if data.views is not None and data.views.key == key:
        return data.views
    return KeptViews(keep(key, data, f"{backbone.views} views", lambda: _extract(backbone, data, device)), key)


def _fixed_state(backbone: Backbone) -> dict[str, Tensor]:
    """Parameters that do not learn, and what else their layers keep; all others change from fold to fold."""
    layers = {name.rpartition(".")[0] for name, held in backbone.named_parameters() if not held.requires_grad}
    return {name: value for name, value in backbone.state_dict().items() if name.rpartition(".")[0] in layers}


@torch.no_grad()
def _extract(backbone: Backbone, data: LDLDataModule, device: torch.device) -> Iterator[Tensor]:
    """Maps (B, 2 + views, ...) of all instances in order, batch by batch."""
    copied = in_evaluation(backbone, device)
    numbers = np.arange(data.size)
    whole, random = (Guarded(data.dataset(numbers, train)) for train in (False, True))
    seeds = np.random.default_rng([run_seed(), 2]).integers(2**31, size=(backbone.views, data.size))
    for start in range(0, data.size, data.batch_size):
        rows = numbers[start : start + data.batch_size]
        plain = collate(whole.__getitems__(Draws(rows)))["input"].to(device)
        views = [plain, plain.flip(-1)]
        views += [collate(random.__getitems__(Draws(rows, seeds=own[rows])))["input"].to(device) for own in seeds]
        yield torch.stack([copied.kept(view).float().cpu() for view in views], 1)
