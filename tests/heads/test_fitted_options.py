"""Options of heads of trees reach what grows them: one that differs gives other trees."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fakes.trees import problem

from ldl.collective import Collective
from ldl.heads import BoostedTrees, StructRF
from ldl.labels import LabelSpace
from ldl.methods.forest.boosting import CDF, derive
from ldl.methods.rows import Rows

BOOSTED = {
    "rounds": 5, "learning_rate": 0.2, "depth": 3, "sampling": 1.0, "features": 1.0, "search": "histogram",
    "patience": None, "seed": 0, "threads": 1,
}  # fmt: skip
FOREST = {"trees": 3, "depth": 5, "out_of_bag": False, "seed": 0, "threads": 1}
ADAPTIVE, HISTOGRAM = ({**FOREST, "search": search} for search in ("adaptive", "histogram"))


def fitted(kind: type[BoostedTrees | StructRF], **options: object) -> BoostedTrees | StructRF:
    features, target = problem()
    head = kind(**options)  # type: ignore[arg-type]
    head.build(features.shape[1], LabelSpace.ordinal(range(4)))
    head.fit(Rows(features, target), Collective())
    return head


@pytest.mark.parametrize(
    ("kind", "options", "option", "other"),
    [
        (BoostedTrees, BOOSTED, "leaves", 3),
        (BoostedTrees, BOOSTED, "l2", 30.0),
        (BoostedTrees, BOOSTED, "min_leaf", 60),
        (BoostedTrees, BOOSTED, "min_hessian", 40.0),
        (BoostedTrees, BOOSTED, "sampling", 0.5),
        (BoostedTrees, BOOSTED, "features", 0.5),
        (BoostedTrees, BOOSTED, "bins", 8),
        (StructRF, FOREST, "features", 0.5),
        (StructRF, FOREST, "min_samples", 60),
        (StructRF, FOREST, "min_leaf", 20),
        (StructRF, FOREST, "min_gain", 0.2),
        (StructRF, ADAPTIVE, "alpha", 1.0),
        (StructRF, ADAPTIVE, "beta", 0.0),
        (StructRF, HISTOGRAM, "bins", 8),
    ],
)
def test_another_value_gives_other_trees(
    kind: type[BoostedTrees | StructRF], options: dict[str, object], option: str, other: object
) -> None:
    plain, changed = fitted(kind, **options), fitted(kind, **{**options, option: other})
    assert not all(torch.equal(one, two) for one, two in zip(plain.forest[:5], changed.forest[:5]))


def test_the_objective_cdf_is_what_is_boosted() -> None:
    """The first step is a Newton step by its derivatives at the mean."""
    features, target = problem()
    stump = fitted(BoostedTrees, **{**BOOSTED, "rounds": 1, "depth": 1, "objective": "cdf"})
    assert isinstance(stump, BoostedTrees)
    derivatives = np.empty((300, 8), np.float32)
    derive(np.tile(stump.start, (300, 1)), target.numpy(), CDF, derivatives)
    left = features[:, int(stump.feature[0])] <= stump.threshold[0]
    for side, leaf in ((left, 1), (~left, 2)):
        gradient, hessian = torch.from_numpy(derivatives)[side].sum(0).chunk(2)
        step = -0.2 * gradient / (hessian + 1)
        torch.testing.assert_close(stump.values[stump.child[leaf]], step, rtol=1e-4, atol=1e-6)
