"""Heads pooled over bags, trained end to end."""

from __future__ import annotations

import math

import pytest
import torch
from fakes.bags import gm, isr, nor
from torch import Tensor

from ldl.bags import Bagged, MILBoost
from ldl.bags.pooling import Pooling, lse
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import LDLF, Softmax, StructRF
from ldl.labels import KL_FLOOR, LabelSpace
from ldl.testing import check_head

LABELS = LabelSpace.nominal(["negative", "positive"])
KINDS: tuple[Pooling, ...] = ("lse", "gm", "nor", "isr", "lse_score")


def _bags() -> Tensor:
    features = torch.randn(40, 6, 3, generator=torch.Generator().manual_seed(0))
    features[torch.arange(6) > torch.arange(40)[:, None] % 6] = torch.nan
    return features


def _built(head: Bagged) -> Bagged:
    torch.manual_seed(0)
    head.build(3, LABELS)
    return head


def test_contract() -> None:
    check_head(lambda: Bagged(Softmax(hidden=[8])))


@pytest.mark.parametrize("pooling", KINDS)
def test_a_bag_is_the_soft_maximum_of_its_instances(pooling: Pooling) -> None:
    features, head = _bags().double(), _built(Bagged(pooling=pooling, r=7.0)).double()
    p = head.instances(features)[..., 1]
    mask = ~features.isnan().all(-1)
    assert (p.isnan() == ~mask).all()
    pool = {
        "lse": lambda v: lse(v, 7.0), "gm": lambda v: gm(v, 7.0), "nor": nor, "isr": isr,
        "lse_score": lambda v: torch.sigmoid(2 * lse((v / (1 - v)).log() / 2, 7.0)),
    }[pooling]  # fmt: skip
    expected = torch.stack([pool(instances[exists]) for instances, exists in zip(p, mask)])
    torch.testing.assert_close(head(features)[:, 1], expected)


@pytest.mark.parametrize("pooling", KINDS)
def test_missing_instances_reach_no_parameter(pooling: Pooling) -> None:
    features, target = _bags(), torch.eye(2)[torch.arange(40) % 2]
    gradients = []
    for bags in (features, torch.cat([features, torch.full((40, 3, 3), torch.nan)], 1)):
        head = _built(Bagged(Softmax(hidden=[4]), pooling))
        head.loss(bags, target)["loss"].backward()
        gradients.append(torch.cat([p.grad.flatten() for p in head.parameters() if p.grad is not None]))
    assert gradients[0].isfinite().all() and gradients[0].abs().sum() > 0
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("pooling", KINDS)
def test_sure_instances_keep_gradients_finite(pooling: Pooling) -> None:
    features = (1e4 * _bags()).requires_grad_()
    head = _built(Bagged(pooling=pooling))
    loss = head.loss(features, torch.eye(2)[torch.arange(40) % 2])["loss"]
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in head.parameters())


def test_the_loss_is_the_divergence_and_teaches_large_bags() -> None:
    features, head = _bags().double(), _built(Bagged(pooling="nor")).double()
    target = torch.rand(40, 1, generator=torch.Generator().manual_seed(1)).double()
    target = torch.cat([target, 1 - target], -1)
    expected = Head.loss(head, features, target)["loss"]
    torch.testing.assert_close(head.loss(features, target)["loss"], expected)
    many, negative = torch.zeros(1, 200, 3), torch.tensor([[1.0, 0.0]])
    small = _built(Bagged(pooling="nor"))
    loss = small.loss(many, negative)["loss"]
    loss.backward()
    assert float(loss) > -3 * math.log(KL_FLOOR)
    assert max(float(p.grad.abs().max()) for p in small.parameters() if p.grad is not None) > 10
    empty = small.loss(torch.full((1, 4, 3), torch.nan), torch.tensor([[0.0, 1.0]]))["loss"]
    assert float(empty) == pytest.approx(-math.log(KL_FLOOR))


def test_an_empty_bag_is_negative() -> None:
    assert _built(Bagged())(torch.full((1, 4, 3), torch.nan)).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("head", [LDLF(), StructRF(), MILBoost(), Bagged()], ids=lambda head: type(head).__name__)
def test_heads_that_cannot_be_pooled_are_refused(head: Head) -> None:
    with pytest.raises(LDLError, match=rf"Bagged.head {type(head).__name__} must take single instances and learn by"):
        _built(Bagged(head))


def test_objectives_and_labels_that_bags_do_not_have_are_refused() -> None:
    with pytest.raises(LDLError, match="Bagged.head Softmax has the objective 'l1', and bags are trained by 'kl'"):
        Bagged(Softmax("l1")).build(3, LabelSpace.ordinal([0, 1]))
    with pytest.raises(LDLError, match="needs two labels, the negative one first; the data have 3"):
        Bagged().build(3, LabelSpace.nominal(list("abc")))
