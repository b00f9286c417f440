"""Where BoostedTrees stops on rows it watches: before the first round where no round helps."""

from __future__ import annotations

import pytest
import torch
from some_trees import problem

from ldl.collective import Collective
from ldl.heads import BoostedTrees
from ldl.labels import LabelSpace
from ldl.methods.forest.boosting_loss import Loss
from ldl.metrics.functional import kl


@pytest.mark.parametrize("objective", ["kl", "cdf"])
@pytest.mark.parametrize("refit", [True, False])
def test_of_noise_the_mean_remains(objective: Loss, refit: bool) -> None:
    features, target = problem()
    noise = target[torch.randperm(300, generator=torch.Generator().manual_seed(8))]
    head = BoostedTrees(rounds=60, learning_rate=0.5, seed=3, threads=1, objective=objective, refit=refit)
    head.build(7, LabelSpace.ordinal(range(4)))
    head.fit(features, noise, Collective())
    train, watched = head._set_aside(300, None)
    mean = noise[train].mean(0)
    torch.testing.assert_close(head(features), (noise.mean(0) if refit else mean).expand(300, -1))
    far = (mean.cumsum(0) - noise[watched].cumsum(1)).square().sum(1)
    start = float((far if objective == "cdf" else kl(mean, noise[watched])).mean())
    assert head.summary() == {"rounds": 0, "validation_loss": pytest.approx(start, rel=1e-5)}
