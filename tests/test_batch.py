"""Mixup of inputs, distributions and values."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pytorch_lightning.plugins.precision import HalfPrecision

from ldl.batch import learned_rows, loss_scale, mixup
from ldl.labels import LabelSpace
from ldl.metrics.functional import mean_of


def test_mixes_pairs_by_one_share() -> None:
    torch.manual_seed(0)
    labels = LabelSpace.ordinal(range(41), "years")
    value = torch.linspace(12, 28, 20)
    batch = {"input": torch.eye(20), "target": labels.encode(value, 2.0), "value": value, "index": torch.arange(20)}
    mixed = mixup(batch, 0.4)
    share = mixed["input"].diagonal().min()
    assert 0 < share < 1
    torch.testing.assert_close(mixed["input"].sum(1), torch.ones(20))
    torch.testing.assert_close(mixed["target"], mixed["input"] @ batch["target"])
    torch.testing.assert_close(mixed["value"], mixed["input"] @ value)
    torch.testing.assert_close(labels.decode(mixed["target"]), mixed["value"], atol=1e-3, rtol=0)
    assert torch.equal(mixed["index"], batch["index"])
    assert mixed["input"].unique().numel() <= 4


def test_keeps_what_it_was_given() -> None:
    batch = {"input": torch.randn(1, 3), "target": torch.tensor([[0.2, 0.8]])}
    mixed = mixup(batch, 1.0)
    torch.testing.assert_close(mixed["input"], batch["input"])
    torch.testing.assert_close(mixed["target"], batch["target"])
    assert mixed.keys() == batch.keys()


def test_pixels_are_rounded() -> None:
    torch.manual_seed(0)
    batch = {"input": torch.tensor([[0], [255]], dtype=torch.uint8), "target": torch.eye(2)}
    assert all(int(mixup(batch, 1.0)["input"].sum()) == 255 for _ in range(20))


@pytest.mark.parametrize("alpha", [1.0])
def test_networks_of_16_bits_mix_by_the_same_shares(alpha: float) -> None:
    torch.manual_seed(0)
    expected = mixup({"target": torch.eye(9)}, alpha)["target"]
    torch.manual_seed(0)
    with HalfPrecision("bf16-true").forward_context():
        assert torch.equal(mixup({"target": torch.eye(9, dtype=torch.float32)}, alpha)["target"], expected)


@pytest.mark.parametrize("alpha", [0.01])
def test_a_low_alpha_mixes_little(alpha: float) -> None:
    torch.manual_seed(0)
    mixed = torch.stack([mixup({"target": torch.eye(2)}, alpha)["target"] for _ in range(200)])
    # Shares between .1 and .9 have a probability of about 2.2 alpha, those of .01 of .022.
    assert ((mixed.amin((1, 2)) > 0.1) & (mixed.amax((1, 2)) < 0.9)).double().mean() < 0.05
    assert torch.equal(mixed.sum(2), torch.ones(200, 2))


def test_rows_with_weights_are_mixed_like_copies() -> None:
    """In expectation; the first two moments of the mixed targets."""
    torch.manual_seed(0)
    weighted = {"target": torch.eye(3), "weight": torch.tensor([8.0, 1.0, 1.0])}
    repeated = {"target": torch.eye(3)[[0] * 8 + [1, 2]], "weight": torch.ones(10), "weighted": False}

    def moments(batch: Any) -> torch.Tensor:
        mixed = [mixup(batch, 1.0) for _ in range(2000)]
        target, weight = (torch.cat([each[name] for each in mixed]) for name in ("target", "weight"))
        return torch.stack([target.T, target.T**2]) @ weight / weight.sum()

    found = moments(weighted)
    torch.testing.assert_close(found, moments(repeated), atol=0.02, rtol=0)
    torch.testing.assert_close(found[0], weighted["weight"] / 10, atol=0.02, rtol=0)


@pytest.mark.parametrize("cut", [0, 1, 3, 5])
def test_processes_of_unequal_weight_average_to_the_loss_of_the_batch(cut: int) -> None:
    losses, weight = torch.rand(6), torch.tensor([0.2, 3.0, 1.0, 0.5, 0.0, 7.0])
    scaled = 0.0
    for part in (slice(cut), slice(cut, None)):
        rows = learned_rows({"weight": weight[part]})
        # A process without rows has the loss of its padding.
        own = mean_of(losses[part], weight[part]) if rows else torch.tensor(9.0)
        scaled += float(loss_scale(rows, learned_rows({"weight": weight}), 2) * own) / 2  # as DDP averages
    assert scaled == pytest.approx(float(mean_of(losses, weight)), rel=1e-5)
