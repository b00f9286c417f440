"""The map of CostSensitiveForest and DSNA by a kernel: one for all threads and processes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from fakes.process_pairs import First, Second
from torch import Tensor

from ldl.collective import Collective
from ldl.heads import DSNA, CostSensitiveForest
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows

AGES = LabelSpace.ordinal(range(0, 61), "years")
RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.normal(size=(120, 8)))
Y = (30 + 6 * X[:, 0]).round()


def fitted(head: CostSensitiveForest, x: Tensor = X, collective: Collective | None = None) -> dict[str, Tensor]:
    head.build(x.shape[1], AGES)
    head.fit(Rows(x, AGES.encode(Y, 2.0), Y), collective or Collective())
    return head.state_dict()


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("kernel", ["rbf", "sum"])
def test_threads_change_nothing(kernel: str, two_threads: None) -> None:
    two = fitted(DSNA(trees=1, depth=1, kernel=kernel, seed=0))
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    one = fitted(DSNA(trees=1, depth=1, kernel=kernel, seed=0))
    assert [name for name in one if not torch.equal(one[name], two[name])] == []


def test_processes_have_the_map_of_the_first() -> None:
    """On another machine last bits differ, and so may the number of directions: here by other features."""

    def forest() -> CostSensitiveForest:
        return CostSensitiveForest(trees=2, depth=1, kernel="rbf", gamma=0.01, seed=0)

    first, other = First(), X + 0.1 * torch.from_numpy(np.random.default_rng(1).normal(size=X.shape))
    one, alone = fitted(forest(), X, first), fitted(forest(), other)
    assert one["root"].shape[1] != alone["root"].shape[1]
    second = fitted(forest(), other, Second(first.said))
    for name in ("centre", "scale", "root"):
        assert torch.equal(second[name], one[name]), name
