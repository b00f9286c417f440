"""Heads that break the contract. With the underscore they are not among those that a misspelt name may mean."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ldl.collective import Collective
from ldl.head import FittedHead, Head
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows


class _Plain(Head):
    """A linear layer and a softmax: what the others spoil."""

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.layer = nn.Linear(in_features, len(labels))

    def forward(self, features: Tensor) -> Tensor:
        return self.layer(features).softmax(-1)


class _NoInit(_Plain):
    def __init__(self, width: int = 1) -> None:
        self.width = width


class _NotStored(_Plain):
    def __init__(self, width: int = 1) -> None:
        super().__init__()


class _NoBuild(_Plain):
    def build(self, in_features: int, labels: LabelSpace) -> None:
        self.layer = nn.Linear(in_features, len(labels))


class _GivesNaN(_Plain):
    def forward(self, features: Tensor) -> Tensor:
        return super().forward(features) * torch.nan

    def loss(self, features: Tensor, target: Tensor, **extra: Any) -> dict[str, Tensor]:
        return {"loss": self.layer(features).square().mean()}


class _GivesNegative(_GivesNaN):
    def forward(self, features: Tensor) -> Tensor:
        return _Plain.forward(self, features) * 4 - 1


class _GivesTooMuch(_GivesNaN):
    def forward(self, features: Tensor) -> Tensor:
        return _Plain.forward(self, features) * 2


class _WrongShape(_Plain):
    def forward(self, features: Tensor) -> Tensor:
        return super().forward(features).sum(-1)


class _NoTensor(_Plain):
    def forward(self, features: Tensor) -> Any:
        return [super().forward(features)]


class _LossIsNumber(_Plain):
    def loss(self, features: Tensor, target: Tensor, **extra: Any) -> Any:
        return super().loss(features, target)["loss"]


class _LossOfRows(_Plain):
    def loss(self, features: Tensor, target: Tensor, **extra: Any) -> dict[str, Tensor]:
        return {"loss": self(features).sum(-1)}


class _LossWithoutGradient(_Plain):
    def loss(self, features: Tensor, target: Tensor, **extra: Any) -> dict[str, Tensor]:
        return {"loss": super().loss(features, target)["loss"].detach()}


class _RaisesInBuild(_Plain):
    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.sizes[0]


class _RaisesInForward(_Plain):
    def forward(self, features: Tensor) -> Tensor:
        return self.layer(features.mT).softmax(-1)


class _RaisesInLoss(_Plain):
    def loss(self, features: Tensor, target: Tensor, **extra: Any) -> dict[str, Tensor]:
        return {"loss": features[:, {}["what"]]}


class _RaisesInInit(_Plain):
    def __init__(self) -> None:
        super().__init__()
        raise OSError("no licence")


class _RaisesInFit(FittedHead):
    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.register_buffer("mean", torch.full((len(labels),), 1 / len(labels)))

    def fit(self, rows: Rows, collective: Collective) -> None:
        torch.linalg.cholesky(-rows.features.T @ rows.features)

    def forward(self, features: Tensor) -> Tensor:
        return self.mean.expand(*features.shape[:-1], -1)


class _FitsNaN(_RaisesInFit):
    def fit(self, rows: Rows, collective: Collective) -> None:
        self.mean /= self.mean - self.mean


class _KeepsAnObject(_RaisesInFit):
    """As one would write it after scikit-learn: the model is an attribute."""

    def fit(self, rows: Rows, collective: Collective) -> None:
        self.model_ = torch.linalg.lstsq(rows.features, rows.target).solution

    def forward(self, features: Tensor) -> Tensor:
        return (features @ self.model_).softmax(-1)


class _FillsAList(_RaisesInFit):
    """It is there from the beginning, and filled in place."""

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self._table: list[Tensor] = [torch.zeros(len(labels))]

    def fit(self, rows: Rows, collective: Collective) -> None:
        self._table[0] = rows.target.mean(0)

    def forward(self, features: Tensor) -> Tensor:
        return self._table[0].softmax(-1).expand(*features.shape[:-1], -1)


class _MakesALayer(_RaisesInFit):
    """Its state_dict has what build does not make."""

    def fit(self, rows: Rows, collective: Collective) -> None:
        self.layer = nn.Linear(rows.features.shape[1], rows.target.shape[1]).requires_grad_(False)

    def forward(self, features: Tensor) -> Tensor:
        return self.layer(features).softmax(-1)
