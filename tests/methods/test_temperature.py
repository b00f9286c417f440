"""The temperature against a search over a fine grid, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fakes.process_pairs import in_two_threads
from scipy.optimize import minimize_scalar
from torch import Tensor

from ldl.methods.temperature import fit_temperature, temper


def _rows(seed: int, scale: float, noise: float) -> tuple[Tensor, Tensor]:
    """Targets, and predictions whose logits are those of the targets, ``scale`` times and with noise."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(40, 5, generator=generator, dtype=torch.float64)
    off = noise * torch.randn(40, 5, generator=generator, dtype=torch.float64)
    return (scale * (logits + off)).softmax(-1), logits.softmax(-1)


def _reference(prediction: Tensor, target: Tensor, temperature: float) -> float:
    total = 0.0
    for p, d in zip(prediction.numpy(), target.numpy()):
        q = p ** (1 / temperature)
        total += float((d * (np.log(d) - np.log(q / q.sum()))).sum())
    return total / len(target)


@pytest.mark.parametrize(("seed", "scale", "noise"), [(0, 1.0, 0.0), (1, 4.0, 0.0), (2, 0.2, 0.3), (3, 2.0, 1.0)])
def test_it_minimises_the_divergence(seed: int, scale: float, noise: float) -> None:
    prediction, target = _rows(seed, scale, noise)
    found = fit_temperature(prediction, target)
    best = minimize_scalar(
        lambda log: _reference(prediction, target, float(np.exp(log))), bounds=(-4, 4), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    assert found == pytest.approx(float(np.exp(best.x)), rel=1e-4)
    if not noise:
        assert found == pytest.approx(scale, rel=1e-9)
        torch.testing.assert_close(temper(prediction, found), target)


def test_tempering() -> None:
    prediction, _ = _rows(0, 1.0, 0.0)
    assert temper(prediction, 1.0) is prediction
    q = prediction ** (1 / 2.5)
    torch.testing.assert_close(temper(prediction, 2.5), q / q.sum(-1, keepdim=True))
    assert temper(prediction.float(), 2.5).dtype == torch.float32
    zero = temper(torch.tensor([0.0, 1.0]), 2.0)
    assert bool(zero.isfinite().all()) and float(zero.sum()) == pytest.approx(1)


def test_what_no_temperature_changes_is_left_alone() -> None:
    _, target = _rows(0, 1.0, 0.0)
    assert fit_temperature(torch.full_like(target, 0.2), target) == 1.0
    assert fit_temperature(target[:0], target[:0]) == 1.0


def test_it_stays_in_its_range() -> None:
    _, target = _rows(0, 1.0, 0.0)
    sharp = torch.eye(5, dtype=torch.float64)[target.argmax(-1)]
    assert fit_temperature(target, sharp) == pytest.approx(0.01)
    assert fit_temperature(target, torch.full_like(target, 0.2)) == pytest.approx(100)


@pytest.mark.parametrize("cut", [0, 13])
def test_processes_share_their_rows(cut: int) -> None:
    prediction, target = _rows(4, 3.0, 0.5)
    rows = slice(cut), slice(cut, None)
    found = in_two_threads(lambda each: fit_temperature(prediction[rows[each.rank]], target[rows[each.rank]], each))
    assert found[0] == found[1] == pytest.approx(fit_temperature(prediction, target), rel=1e-9)


def test_a_weight_is_copies_of_the_row() -> None:
    prediction, target = _rows(3, 2.0, 1.0)
    weight = torch.arange(40) % 4
    found = [fit_temperature(prediction, target, weight=scale * weight) for scale in (1.0, 0.3)]
    copies = torch.arange(40).repeat_interleave(weight)
    assert found == [pytest.approx(fit_temperature(prediction[copies], target[copies]), rel=1e-9)] * 2
    assert found[0] != pytest.approx(fit_temperature(prediction, target), rel=1e-3)
