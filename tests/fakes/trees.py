"""A problem for heads of trees, and what all of them promise."""

from __future__ import annotations

import io

import pytest
import torch
from torch import Tensor

from ldl.head import Head
from ldl.heads import BoostedTrees, StructRF


def problem(rows: int = 300, width: int = 7, missing: float = 0.0) -> tuple[Tensor, Tensor]:
    """Rows of which four features say the distribution, but for noise; a share of the features may be NaN."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(rows, width, generator=generator)
    scores = 2 * features[:, :4] + 0.3 * torch.randn(rows, 4, generator=generator)
    features[torch.rand(rows, width, generator=generator) < missing] = torch.nan
    return features, torch.softmax(scores, -1)


def check_comes_back(head: StructRF | BoostedTrees, other: Head, features: Tensor) -> None:
    """A head that is not built predicts as a fitted one does, once it has its file."""
    file = io.BytesIO()
    torch.save(head.state_dict(), file)
    file.seek(0)
    other.build(head.in_features, head.labels)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert isinstance(other, type(head))
    assert torch.equal(other(features), head(features)) and other.summary() == head.summary()


def check_importances(head: StructRF | BoostedTrees) -> None:
    """The four features of :func:`problem` that matter are named."""
    importances = head.importances
    assert float(importances.sum()) == pytest.approx(1)
    assert float(importances[:4].min()) > 2 * float(importances[4:].max())
