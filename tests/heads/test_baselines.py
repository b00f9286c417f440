"""The mean baseline, and AA-kNN against means over the nearest rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.heads import AAKNN, MeanPredictor
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.testing import check_head

LABELS = LabelSpace.nominal(["a", "b"])


def test_a_mean_of_no_rows_is_refused() -> None:
    head = MeanPredictor()
    head.build(3, LABELS)
    with pytest.raises(LDLError, match=r"MeanPredictor is fitted on the targets .*, got \(0, 2\)"):
        head.fit(Rows(torch.zeros(0, 3), torch.zeros(0, 2)), Collective())


def test_aa_knn_keeps_the_contract() -> None:
    check_head(lambda: AAKNN(5))


def test_aa_knn_averages_the_nearest() -> None:
    rng = np.random.default_rng(1)
    features, target, queries = rng.normal(size=(50, 3)), rng.dirichlet(np.ones(4), 50), rng.normal(size=(2, 5, 3))
    head = AAKNN(6)
    head.build(3, LabelSpace.nominal(list("abcd")))
    head.fit(Rows(torch.tensor(features), torch.tensor(target)), Collective())
    order = np.linalg.norm(queries[:, :, None] - features, axis=3).argsort(2)[:, :, :6]
    np.testing.assert_allclose(head(torch.tensor(queries)).numpy(), target[order].mean(2), atol=1e-6)


def test_few_rows_are_all_neighbours() -> None:
    head = AAKNN(5)
    head.build(2, LabelSpace.nominal(["a", "b"]))
    head.fit(Rows(torch.eye(2), torch.eye(2)), Collective())
    torch.testing.assert_close(head(torch.randn(3, 2)), torch.full((3, 2), 0.5))
