"""Heads that learn by gradient, trained without a trainer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ldl.bags import MILBoost
from ldl.collective import Collective
from ldl.data.tables.scaling import FeatureScaler
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import LDLF, Softmax, StructRF, Trained
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.metrics.functional import kl
from ldl.testing import check_head

LABELS = LabelSpace.ordinal([10, 20, 30, 40])
FOREST: dict[str, Any] = {"trees": 3, "depth": 4, "outputs": None, "batches": 3}


def problem(rows: int = 90) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    features = 5 + 3 * torch.randn(rows, 5, generator=generator)
    return features, (features @ torch.randn(5, 4, generator=generator) / 3).softmax(-1)


def fitted(head: Head | None = None, **options: Any) -> Trained:
    trained = Trained(head, **{"epochs": 5, "batch_size": 32, "seed": 3, **options})  # type: ignore[arg-type]
    trained.build(5, LABELS)
    trained.fit(Rows(*problem()), Collective())
    return trained


@pytest.mark.parametrize(
    "make",
    [
        lambda: Trained(epochs=20, lr=0.03),
        lambda: Trained(LDLF(**FOREST), epochs=10, lr=0.03, scaling="quantile_normal", clip=3.0, mixup=0.2),
    ],
    ids=["softmax", "ldlf"],
)
def test_contract(make: Any) -> None:
    check_head(make)


def test_one_batch_an_epoch_is_adam_with_a_cosine() -> None:
    features, target = problem()
    trained = fitted(epochs=7, batch_size=90, lr=0.1, weight_decay=0.02)
    with torch.random.fork_rng():
        torch.manual_seed(hash((3, 0)) % 2**63)
        head = Softmax()
        head.build(5, LABELS)
    first, second = ([torch.zeros_like(p) for p in head.parameters()] for _ in range(2))
    for step in range(7):
        loss = kl(head(features), target).mean()
        rate = 0.1 * (1 + np.cos(np.pi * step / 7)) / 2
        gradients = torch.autograd.grad(loss, list(head.parameters()))
        for p, g, m, v in zip(head.parameters(), gradients, first, second):
            m.mul_(0.9).add_(0.1 * g)
            v.mul_(0.999).add_(0.001 * g**2)
            change = m / (1 - 0.9 ** (step + 1)) / ((v / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8)
            p.data -= rate * (0.02 * p.data + change)
    torch.testing.assert_close(trained(features), head(features), atol=1e-5, rtol=0)


@pytest.mark.parametrize("head", [Softmax(hidden=[8], dropout=0.3), LDLF(**FOREST, hidden=[8], dropout=0.3)])
def test_the_seed_alone_decides(head: Head) -> None:
    features, states = problem()[0], []
    for number in (1, 2):
        torch.manual_seed(number)
        states.append(torch.get_rng_state())
        one = fitted(head, mixup=0.4)(features)
        assert torch.equal(torch.get_rng_state(), states[-1])
        assert torch.equal(one, fitted(head, mixup=0.4)(features))
    assert not torch.equal(one, fitted(head, mixup=0.4, seed=4)(features))
    assert not torch.equal(one, fitted(head)(features))


def test_leaves_are_updated_and_dropout_is_off() -> None:
    trained = fitted(LDLF(**FOREST, hidden=[8], dropout=0.5))
    leaves: Tensor = trained.members[0].leaves  # type: ignore[assignment]
    assert (leaves - 0.25).abs().max() > 0.01
    features = problem()[0]
    assert torch.equal(trained.train()(features), trained.eval()(features))
    assert not any(parameter.requires_grad for parameter in trained.parameters())


@pytest.mark.parametrize("mean", ["arithmetic", "geometric"])
def test_repeats_are_averaged(mean: Any) -> None:
    features, target = problem()
    trained = fitted(Softmax(hidden=[8]), repeats=3, mean=mean)
    each = torch.stack([member(features) for member in trained.members])
    assert len(each.unique(dim=0)) == 3
    assert torch.equal(each[0], fitted(Softmax(hidden=[8]))(features))
    expected = each.mean(0) if mean == "arithmetic" else each.log().mean(0).softmax(-1)
    torch.testing.assert_close(trained(features), expected)
    assert kl(trained(features), target).mean() <= kl(each, target).mean()


@pytest.mark.parametrize("scaling", ["standard", "quantile_normal"])
def test_features_are_scaled_by_what_the_fitted_rows_taught(scaling: Any) -> None:
    features, _ = problem()
    scaler = FeatureScaler(scaling, 2.0)
    scaler.fit(features.double().numpy())
    trained, new = fitted(scaling=scaling, clip=2.0), 2 * features[:20] - 5
    scaled = torch.from_numpy(scaler.transform(new.double().numpy())).float()
    torch.testing.assert_close(trained(new), trained.members[0](scaled))
    before = trained.state_dict()
    for name in trained.exact:  # also where the weights are rounded
        assert torch.equal(trained.bfloat16().state_dict()[name], before[name])


def test_a_value_reaches_the_loss() -> None:
    features, target = problem()
    value = torch.full((90,), 40.0)
    trained = Trained(Softmax("l1"), epochs=60, lr=0.1, seed=0)
    trained.build(5, LABELS)
    trained.fit(Rows(features, target, value=value), Collective())
    assert trained(features)[:, 3].mean() > 0.9


@pytest.mark.parametrize("head", [StructRF(), MILBoost(), Trained()])
def test_heads_of_another_kind_are_refused(head: Head) -> None:
    with pytest.raises(LDLError, match=f"Trained.head {type(head).__name__} must take single rows and learn by grad"):
        fitted(head)


def test_a_loss_that_grows_is_told_with_its_fix() -> None:
    with pytest.raises(LDLError, match="Trained.head Softmax learned numbers that are not finite; lower Trained.lr 1e"):
        fitted(Softmax(hidden=[8]), lr=1e37)


@pytest.mark.parametrize(
    ("buffer", "change", "words"),
    [
        ("scaling_mean", lambda t: t * torch.nan, "mean of the features is no scaling"),
        ("scaling_scale", lambda t: -t, "scale of the features is no scaling"),
        ("scaling_scale", lambda t: t[:3], "scaling_scale has shape"),
        ("members.0.logits.0.weight", lambda t: t / 0, "weight holds"),
    ],
)
def test_a_changed_state_is_refused(buffer: str, change: Any, words: str) -> None:
    state = fitted(scaling="standard").state_dict()
    other = Trained(scaling="standard")
    other.build(5, LABELS)
    with pytest.raises(LDLError, match=words):
        other.load_state_dict(state | {buffer: change(state[buffer])})


@pytest.mark.parametrize(("steps", "epochs"), [(7, 2), (8, 3), (1, 1), (1000, 5)])
def test_so_many_steps_at_most(steps: int, epochs: int) -> None:
    features, _ = problem()  # three batches an epoch
    assert torch.equal(fitted(steps=steps)(features), fitted(epochs=epochs)(features))
