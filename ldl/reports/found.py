"""Charts of what boosted heads found in pictures by themselves: groups, and places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from ldl import charts
from ldl.backbones.haar import Haar, locate
from ldl.data.base import LDLDataModule
from ldl.data.instances import Guarded, collate
from ldl.data.sampler import Draw
from ldl.data.trials.trials import Trials
from ldl.heads.boosted import BoostedBags

MOST_GROUPED, MOST_MAPPED = 300, 8
"""Pictures that are parted into groups, and that are shown with their maps."""


@torch.no_grad()
def draw_found(folder: Path, task: Any, data: Any, rows: dict[str, np.ndarray]) -> dict[str, Path]:
    """The likelihood per round of a boosted head, and its groups and places in the likeliest pictures.

    Args:
        folder: Where the PNGs go.
        task: The task; other heads draw nothing.
        data: The data module, or None; only grey pictures (1, H, W) of 0 to 255 show groups and places.
        rows: ``index`` (n,) and ``prediction`` (n, 2).
    """
    head, haar = task.head, task.backbone
    if not isinstance(head, BoostedBags):
        return {}
    drawn = {}
    if len(head.curve) > 1:
        drawn["likelihood"] = charts.likelihood(folder / "likelihood.png", head.curve.cpu().numpy())
    positive = rows["index"][np.argsort(-rows["prediction"][:, 1], kind="stable")]
    positive = positive[: (rows["prediction"][:, 1] > 0.5).sum()]
    maps = isinstance(haar, Haar) and haar.window is not None
    index = positive[: MOST_MAPPED if maps else MOST_GROUPED]
    pictures = _grey(data, index)
    if pictures is None:
        return drawn
    scores = head.scores(task.features({"input": pictures.to(task.device)}))
    grey = pictures[:, 0].numpy()
    if head.groups > 1:
        group = scores.amax(1).argmax(-1).cpu().numpy()
        drawn["groups"] = charts.groups(folder / "groups.png", grey, group)
    if maps:
        found = scores.amax(-1).reshape(len(index), *haar.grid(tuple(pictures.shape[1:]))).cpu().numpy()
        places = locate(found) * haar.stride
        true = data.truth[index] if isinstance(data, Trials) and data.truth.ndim == 2 else None
        path = folder / "score_maps.png"
        drawn["score_maps"] = charts.score_maps(path, grey, found, places, haar.window, haar.stride, true)
    return drawn


def _grey(data: Any, index: np.ndarray) -> torch.Tensor | None:
    """The inputs of instances, (n, 1, H, W), where those of the data module are grey pictures; else None."""
    if not isinstance(data, LDLDataModule) or len(data.input_shape) != 3 or data.input_shape[0] != 1 or not len(index):
        return None
    batch = collate(
        Guarded(data.dataset(index, train=False)).__getitems__([Draw(row, 1.0, 0) for row in range(len(index))])
    )
    images = batch.get("input")
    return None if images is None or images.dtype != torch.uint8 else images
