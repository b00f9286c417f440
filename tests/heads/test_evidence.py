"""What a prediction rests on adds up to it."""

from __future__ import annotations

import pytest
import torch

from ldl.collective import Collective
from ldl.head import FittedHead, Head
from ldl.heads import AAKNN, DSNA, LDLF, CostSensitiveForest, MaxEnt, StructRF
from ldl.labels import LabelSpace
from ldl.methods.dsna.clusters import onto_simplex
from ldl.methods.rows import Rows

LABELS = {"ordinal": LabelSpace.ordinal(range(6), "years"), "nominal": LabelSpace.nominal(list("abcdef"))}


def _learned(head: Head, labels: LabelSpace) -> tuple[Head, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    features = torch.randn(60, 4)
    target = (features @ torch.randn(4, 6)).softmax(1)
    head.build(4, labels)
    if isinstance(head, FittedHead):
        head.fit(Rows(features, target), Collective())
    elif isinstance(head, LDLF):
        head.leaves.copy_(torch.rand_like(head.leaves).softmax(-1))
    return head.eval(), features, target


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize(
    "head",
    [
        AAKNN(neighbours=7),
        LDLF(trees=3, depth=4),
        StructRF(trees=9),
        CostSensitiveForest(trees=9, min_samples=10),
        DSNA(trees=2, min_samples=20),
    ],
    ids=lambda head: type(head).__name__,
)
def test_parts_add_up(head: Head, kind: str) -> None:
    head, features, _ = _learned(type(head)(**{name: getattr(head, name) for name in _given(head)}), LABELS[kind])
    for row in torch.randn(2, 4):
        found = head.evidence(row)
        assert found is not None and len(found.names) == len(found.weights) == len(found.distributions)
        assert (found.weights.abs().diff() <= 0).all() and (found.weights != 0).all()
        combined = found.weights @ found.distributions
        combined = onto_simplex(combined[None])[0] if isinstance(head, DSNA) else combined
        torch.testing.assert_close(combined.float(), head(row[None])[0].float(), atol=1e-5, rtol=1e-4)
        assert float(found.weights.sum()) == pytest.approx(1, abs=1e-5)


def _given(head: Head) -> list[str]:
    return [name for name in ("neighbours", "trees", "depth", "min_samples") if hasattr(head, name)]


def test_rows_are_those_of_training() -> None:
    near = DSNA(trees=1, sampling=1.0, replace=False, min_samples=20, clusters=1, sparsity=1e-4, attraction=0.0)
    for head in (AAKNN(neighbours=1), near):
        head, features, target = _learned(head, LABELS["ordinal"])
        found = head.evidence(features[17])
        assert found is not None and found.names[0] == "row 17"
        torch.testing.assert_close(found.distributions[0].float(), target[17])
        assert len(found.first(3).names) == len(found.first(3).weights) <= 3


def test_others_cannot_tell() -> None:
    head, features, _ = _learned(MaxEnt(), LABELS["ordinal"])
    assert head.evidence(features[0]) is None
