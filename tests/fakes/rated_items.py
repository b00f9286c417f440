"""Items with features, and single votes of raters whose distributions are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytorch_lightning as pl
import torch
from torch import Tensor

from ldl.checkpoint import CHECKPOINT_KEY
from ldl.data import TabularLDL
from ldl.head import Head
from ldl.labels import LabelSpace
from ldl.raters import Raters, RaterTable

LABELS = LabelSpace.nominal(["a", "b", "c"])
ORDERED = LabelSpace.ordinal([1, 2, 3, 4])


@dataclass(frozen=True)
class RatedItems:
    """N items with V votes each, by raters of R.

    Attributes:
        features: (N, 3), float32.
        rated: (N, R, C) distribution of each rater's vote on each item.
        rater: (N, V).
        vote: (N, V).
    """

    features: Tensor
    rated: np.ndarray
    rater: Tensor
    vote: Tensor

    @property
    def table(self) -> RaterTable:
        raters = self.rated.shape[1]
        counted = self.rater[(self.rater >= 0) & (self.vote >= 0)]
        return RaterTable([f"r{number}" for number in range(raters)], np.bincount(counted, minlength=raters))

    @property
    def shares(self) -> Tensor:
        """(N, C)."""
        return torch.nn.functional.one_hot(self.vote, self.rated.shape[-1]).float().mean(1)

    @property
    def population(self) -> Tensor:
        """(N, C), mean of the raters with votes."""
        return torch.tensor(self.rated[:, self.table.votes > 0].mean(1), dtype=torch.float32)


def rate(
    rated: Callable[[np.ndarray], np.ndarray],
    items: int = 500,
    each: int = 4,
    labels: int = 3,
    chance: Callable[[np.ndarray, int], np.ndarray] | None = None,
    sharpness: float = 2.0,
    seed: int = 0,
) -> RatedItems:
    """Draw items and votes.

    Args:
        rated: Returns the distributions (N, R, C) of raters from those of the items (N, C).
        items: Number of items N.
        each: Votes on each item.
        labels: Number of labels C.
        chance: Returns the relative chance (N, R) that a rater votes on an item, from the features and R; None is 1.
        sharpness: Scale of the logits.
        seed: Seed.
    """
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(items, 3))
    logits = sharpness * features @ rng.normal(size=(3, labels))
    p = np.exp(logits - logits.max(1, keepdims=True))
    distributions = rated(p / p.sum(1, keepdims=True))
    raters = distributions.shape[1]
    # The largest of these are a draw without replacement, in proportion to the chance (Efraimidis & Spirakis 2006).
    keys = np.log(rng.random((items, raters))) / (np.ones((1, 1)) if chance is None else chance(features, raters))
    rater = np.argsort(-keys, axis=1)[:, :each]
    cumulative = distributions[np.arange(items)[:, None], rater].cumsum(-1)
    vote = (rng.random((items, each, 1)) > cumulative[..., :-1]).sum(-1)
    return RatedItems(
        torch.tensor(features, dtype=torch.float32), distributions, torch.tensor(rater), torch.tensor(vote)
    )


def biased(bias: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Raters who add a bias (R, C) to the logarithms."""

    def rated(p: np.ndarray) -> np.ndarray:
        scores = p[:, None] * np.exp(bias)
        return scores / scores.sum(-1, keepdims=True)

    return rated


def confused(*matrices: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Raters with confusion matrices (C, C)."""
    return lambda p: np.stack([p @ matrix for matrix in matrices], 1)


def learn(head: Head, raters: Raters, items: RatedItems, steps: int = 150, lr: float = 0.05) -> None:
    """Train a head with its model of raters on all items at once."""
    optimizer = torch.optim.Adam([*head.parameters(), *raters.parameters()], lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        raters.loss(head.log_outputs(items.features), items.rater, items.vote)["loss"].backward()
        optimizer.step()


def write_items(items: RatedItems, folder: Path, **options: Any) -> TabularLDL:
    """Write the items and their votes as tables, and return the data module that reads them."""
    keys = [f"n{row}" for row in range(len(items.features))]
    features = pd.DataFrame(items.features.numpy(), columns=list("xyz")).assign(item=keys)
    features.to_csv(folder / "items.csv", index=False)
    each = items.vote.shape[1]
    votes = pd.DataFrame({
        "item": np.repeat(keys, each),
        "rater": [f"r{number}" for number in items.rater.flatten().tolist()],
        "label": ["abcd"[number] for number in items.vote.flatten().tolist()],
    })  # fmt: skip
    votes.to_csv(folder / "votes.csv", index=False)
    usual = {"folds": 4, "val_fraction": 0.25, "batch_size": 32}
    return TabularLDL(path=str(folder / "items.csv"), votes=str(folder / "votes.csv"), **{**usual, **options})


def made_trainer(epochs: int = 2, **options: Any) -> pl.Trainer:
    """A trainer in float64 without files, unless ``options`` change it."""
    usual: dict[str, Any] = {
        "accelerator": "cpu", "logger": False, "enable_progress_bar": False, "enable_model_summary": False,
        "enable_checkpointing": False, "use_distributed_sampler": False, "precision": "64-true",
    }  # fmt: skip
    return pl.Trainer(max_epochs=epochs, **{**usual, **options})


def assert_same(one: Path, two: Path, tolerance: float = 0.0) -> None:
    """Weights, the chosen strength and the replay buffer of two checkpoints are equal."""
    first, second = (torch.load(path, weights_only=True) for path in (one, two))
    assert first[CHECKPOINT_KEY]["raters"] == second[CHECKPOINT_KEY]["raters"]
    assert first["state_dict"].keys() == second["state_dict"].keys()
    for part in ("state_dict", "leaf_update"):
        for name, tensor in first.get(part, {}).items():
            torch.testing.assert_close(second[part][name], tensor, rtol=tolerance, atol=tolerance, msg=name)
