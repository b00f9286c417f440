"""A data module with votes, whose features are those of other raters, and a head that predicts its features."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.data.annotated import Annotated
from ldl.data.base import Loaded
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.options import option, options


@options
class VotedRows(Annotated):
    """Made-up items with 3 labels, whose features are the votes of some raters who are not among those counted.

    Args:
        items: Number of items.
        least: Fewest votes on an item.
        most: Most votes on an item.
        seen: Raters whose votes are the features, as shares with the mean of the prior added.
        subjects: Number of groups; 0 for none.
    """

    items: int = option(default=300, least=1)
    least: int = option(default=5, least=1)
    most: int = option(default=9, least=1)
    seen: int = option(default=2, least=0)
    subjects: int = option(default=0, least=0)

    def load(self) -> Loaded:
        rng = np.random.default_rng(0)
        alpha = np.array([0.6, 0.9, 1.2])
        truth = rng.dirichlet(alpha, self.items)
        votes = rng.integers(self.least, self.most + 1, self.items)
        counts = np.stack([rng.multinomial(number, row) for number, row in zip(votes, truth)])
        others = np.stack([rng.multinomial(self.seen, row) for row in truth])
        self.features = torch.tensor((others + alpha) / (self.seen + alpha.sum()), dtype=torch.float32)
        table = pd.DataFrame(counts, columns=["label:calm", "label:happy", "label:sad"])
        found, kept = self.annotate(table, range(self.items), "made-up votes")
        self.features = self.features[kept]
        columns = {
            "target": torch.from_numpy(found.shares).float(),
            "votes": torch.from_numpy(found.votes).float(),
        }
        groups = np.arange(self.items)[kept] % self.subjects if self.subjects else None
        return Loaded(found.labels, columns, groups=groups)

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        return self.features[torch.from_numpy(rows)]


class Seen(FittedHead):
    """Predicts its features, which are distributions."""

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)

    def fit(self, rows: Rows, collective: Collective) -> None:
        pass

    def forward(self, features: Tensor) -> Tensor:
        return features
