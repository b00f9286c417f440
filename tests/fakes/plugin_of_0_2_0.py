"""Plugins as they were written for version 0.2.0; ``test_rows`` runs this file as it is. Do not bring it up to date."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_diabetes
from torch import Tensor, nn

from ldl.collective import Collective
from ldl.data import LDLDataModule
from ldl.data.base import Loaded
from ldl.head import FittedHead, Head, wanted_of
from ldl.heads import MaxEnt, StructRF
from ldl.labels import LabelSpace
from ldl.metrics import Metric, register
from ldl.metrics.functional import kl, mean_of
from ldl.options import buffer, option, options


@options
class OldPatients(LDLDataModule):
    """The patients of scikit-learn's diabetes data, and how far their disease went.

    Args:
        step: Distance of neighbouring labels.
        weighted: Whether rows have weights.
    """

    step: int = option(default=40, least=1)
    weighted: bool = False

    def load(self) -> Loaded:
        features, values = (part[:120] for part in load_diabetes(return_X_y=True))
        self.features = torch.tensor(features / features.std(0), dtype=torch.float32)
        labels = LabelSpace.ordinal(range(20, 351 + self.step, self.step))
        columns = {"target": labels.encode(torch.tensor(values, dtype=torch.float32), 20.0)}
        if self.weighted:
            columns["weight"] = torch.arange(120) % 3 + 1.0
        self.tell_taken("ten features and the value of a year later")
        return Loaded(labels, columns, values=values, groups=np.arange(120) // 2)

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        return self.features[torch.from_numpy(rows)]


@options
class OldOdds(Head):
    """Proportional odds, which also learn from the values.

    Args:
        share: Weight of the error of the expectation.
    """

    uses_value: ClassVar[bool] = True
    uses_weight: ClassVar[bool] = True

    share: float = option(default=0.01, least=0)

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.score = nn.Linear(in_features, len(labels))

    def forward(self, features: Tensor) -> Tensor:
        scores = self.score(features)
        return torch.softmax(scores.to(torch.promote_types(scores.dtype, torch.float32)), -1)

    def loss(
        self, features: Tensor, target: Tensor, value: Tensor | None = None, weight: Tensor | None = None, **extra: Any
    ) -> dict[str, Tensor]:
        prediction = self(features)
        divergence = mean_of(kl(prediction, target), weight)
        if value is None:
            return {"loss": divergence}
        error = mean_of((self.labels.decode(prediction) - value).abs(), weight)
        return {"loss": divergence + self.share * error, "loss_kl": divergence}


@options
class OldSquares(FittedHead):
    """Partial least squares from features to distributions; negative shares are cut off.

    Args:
        components: Directions of the features that are kept; never more than there are.
    """

    components: int = option(default=8, least=1)
    weight: Tensor = buffer()
    bias: Tensor = buffer()

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.register_buffer("weight", torch.zeros(len(labels), in_features))
        self.register_buffer("bias", torch.full((len(labels),), 1 / len(labels)))

    def fit(self, features: Tensor, target: Tensor, collective: Collective) -> None:
        most = min(self.components, *features.shape)
        model = PLSRegression(most, scale=False).fit(features.double().cpu().numpy(), target.double().cpu().numpy())
        self.weight.copy_(torch.from_numpy(model.coef_))
        self.bias.copy_(torch.from_numpy(model.predict(features[:1].double().cpu().numpy())[0]))
        self.bias -= self.weight @ features[0].to(self.weight)

    def forward(self, features: Tensor) -> Tensor:
        with torch.autocast(features.device.type, enabled=False):
            shares = (features.to(self.weight) @ self.weight.T + self.bias).clamp_min(1e-6)
            return shares / shares.sum(-1, keepdim=True)


class OldMean(FittedHead):
    """The mean of the weighted targets, which takes every column and counts the groups."""

    uses_value: ClassVar[bool] = True
    uses_group: ClassVar[bool] = True
    uses_weight: ClassVar[bool] = True
    mean: Tensor
    columns: Tensor

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.register_buffer("mean", torch.full((len(labels),), 1 / len(labels)))
        self.register_buffer("columns", torch.zeros(3, dtype=torch.long))

    def fit(
        self,
        features: Tensor,
        target: Tensor,
        collective: Collective,
        value: Tensor | None = None,
        weight: Tensor | None = None,
        group: Tensor | None = None,
    ) -> None:
        self.mean.copy_(mean_of(target.T, None) if weight is None else weight.to(target) @ target / weight.sum())
        self.columns = torch.tensor([0 if column is None else len(column) for column in (value, weight, group)])

    def forward(self, features: Tensor) -> Tensor:
        return self.mean.expand(*features.shape[:-1], -1)


class OldForest(StructRF):
    """A forest on the signs of the features."""

    def fit(
        self,
        features: Tensor,
        target: Tensor,
        collective: Collective,
        group: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> None:
        super().fit(features.sign(), target, collective, group=group, weight=weight)

    def forward(self, features: Tensor) -> Tensor:
        return super().forward(features.sign())


@options
class OldWrapper(FittedHead):
    """Another head on the squares of the features.

    Args:
        head: The head; None is ``MaxEnt``.
    """

    uses_value: ClassVar[bool] = True
    uses_group: ClassVar[bool] = True
    uses_weight: ClassVar[bool] = True

    head: Head = option(default=None)

    def __post_init__(self) -> None:
        if self.head is None:
            self.head = MaxEnt()

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.head.build(in_features, labels)

    def fit(self, features: Tensor, target: Tensor, collective: Collective, **columns: Tensor | None) -> None:
        self.head.fit(features.square(), target, collective, **wanted_of(self.head, columns))

    def forward(self, features: Tensor) -> Tensor:
        return self.head(features.square())


def agreement(prediction: Tensor, target: Tensor) -> Tensor:
    """Whether the likeliest label is the true one, of distributions (..., C): 0 or 1 for every row."""
    return (prediction.argmax(-1) == target.argmax(-1)).double()


register(Metric("old_agreement", agreement, higher_is_better=True))
