"""The objectives of Softmax against formulas in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ldl.errors import LDLError
from ldl.heads import Softmax
from ldl.heads.softmax import Objective
from ldl.labels import LabelSpace

AGES = LabelSpace.ordinal([0, 1, 3, 7, 8])
POSE = LabelSpace.grid([-30, 0, 30], [-10, 10])
OBJECTIVES: list[Objective] = ["kl", "dldl_v2", "ce", "mean_variance", "sord", "l1"]


def made(objective: Objective, labels: LabelSpace, **options: float) -> Softmax:
    torch.manual_seed(0)
    head = Softmax(objective, **options)  # type: ignore[arg-type]
    head.build(4, labels)
    return head.double()


def batch(labels: LabelSpace) -> tuple[Tensor, Tensor, Tensor]:
    """Features, targets, and values that are not the targets' expectations."""
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    target = torch.softmax(2 * torch.randn(6, len(labels), generator=generator, dtype=torch.float64), -1)
    low, high = (torch.tensor([axis[end] for axis in labels.axes], dtype=torch.float64) for end in (0, -1))
    value = low + (high - low) * torch.rand(6, labels.ndim, generator=generator, dtype=torch.float64)
    return features, target, value.squeeze(-1)


def reference(objective: Objective, head: Softmax, features: Tensor, target: Tensor, value: Tensor) -> float:
    """The mean objective, sample by sample and label by label."""
    layer = head.logits[-1]
    total = 0.0
    points = [[float(x) for x in point] for point in head.labels.points]
    for x, d, y in zip(features, target, value.reshape(len(value), -1).tolist()):
        logits = layer.weight @ x + layer.bias
        p = (logits.exp() / logits.exp().sum()).tolist()
        labels = range(len(p))
        mean = [sum(p[c] * points[c][axis] for c in labels) for axis in range(len(y))]
        gap = sum(abs(m - t) for m, t in zip(mean, y))
        distance = [sum((a - t) ** 2 for a, t in zip(points[c], y)) for c in labels]
        ce = -torch.tensor(p[distance.index(min(distance))], dtype=torch.float64).log().item()
        soft = torch.softmax(-torch.tensor(distance, dtype=torch.float64) / head.sord_scale, 0)
        log_p = torch.tensor(p, dtype=torch.float64).log()
        kl = float((d * (d.log() - log_p)).sum())
        if objective == "kl":
            total += kl
        elif objective == "dldl_v2":
            total += kl + head.expectation_weight * gap
        elif objective == "ce":
            total += ce + head.expectation_weight * gap
        elif objective == "l1":
            total += gap
        elif objective == "sord":
            total += float((torch.xlogy(soft, soft) - soft * log_p).sum())
        else:
            squared = sum((m - t) ** 2 for m, t in zip(mean, y))
            variance = sum(p[c] * sum((a - m) ** 2 for a, m in zip(points[c], mean)) for c in labels)
            total += ce + head.mean_weight * squared / 2 + head.variance_weight * variance
    return total / len(features)


@pytest.mark.parametrize("labels", [AGES, POSE], ids=["ordinal", "grid"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_objective_equals_its_formula(objective: Objective, labels: LabelSpace) -> None:
    options = {"expectation_weight": 0.7, "mean_weight": 0.3, "variance_weight": 0.1, "sord_scale": 5.0}
    head = made(objective, labels, **options)
    features, target, value = batch(labels)
    losses = head.loss(features, target, value=value)
    assert losses["loss"].item() == pytest.approx(reference(objective, head, features, target, value), rel=1e-9)
    assert sum(loss.item() for name, loss in losses.items() if name != "loss") == pytest.approx(losses["loss"].item())


@pytest.mark.parametrize("labels", [AGES, POSE], ids=["ordinal", "grid"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_without_a_value_the_expectation_of_the_target_is_used(objective: Objective, labels: LabelSpace) -> None:
    head = made(objective, labels)
    features, target, value = batch(labels)
    implied = head.loss(features, target)["loss"]
    torch.testing.assert_close(implied, head.loss(features, target, value=labels.decode(target))["loss"])
    given = head.loss(features, target, value=value)["loss"]
    assert (given.item() == implied.item()) == (objective == "kl")


def test_nominal_labels_refuse_objectives_of_values() -> None:
    with pytest.raises(LDLError, match="'l1' needs labels with values; use 'kl'"):
        made("l1", LabelSpace.nominal("abcde"))


def test_autocast_gives_float32_distributions() -> None:
    head = made("dldl_v2", AGES).float()
    features = torch.randn(8, 4)
    with torch.autocast("cpu", torch.bfloat16):
        p = head(features)
        loss = head.loss(features, torch.full((8, 5), 0.2))["loss"]
    assert p.dtype == loss.dtype == torch.float32
    torch.testing.assert_close(p.sum(-1), torch.ones(8))


def test_a_confident_mistake_keeps_its_gradient() -> None:
    head = made("kl", AGES).float()
    layer = head.logits[-1]
    with torch.no_grad():
        layer.bias[0] += 200
    head.loss(torch.zeros(1, 4), torch.eye(5)[3:4])["loss"].backward()
    torch.testing.assert_close(layer.bias.grad, torch.eye(5)[0] - torch.eye(5)[3])
