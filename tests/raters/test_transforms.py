"""Distributions of a rater's vote: references in float64, and what holds for any distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from ldl.labels import LabelSpace
from ldl.raters.transforms import TRANSFORMS, confused_posterior, find_transform

KINDS = list(TRANSFORMS)
LABELS = 5


def some(kind: str, raters: int = 4, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Distributions (raters, 3, 5), and parameters (raters, P), in float64."""
    generator = torch.Generator().manual_seed(seed)
    p = torch.randn(raters, 3, LABELS, generator=generator, dtype=torch.float64).mul(2).softmax(-1)
    start = TRANSFORMS[kind].start(LABELS).double()
    return p, start + torch.randn(raters, len(start), generator=generator, dtype=torch.float64)


def reference(kind: str, p: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The definition, for one distribution and one rater."""
    if kind == "bias":
        scores = p * np.exp(theta)
        return scores / scores.sum()
    if kind == "confusion":
        matrix = np.exp(theta[: LABELS**2].reshape(LABELS, LABELS) + theta[LABELS**2 :])
        return p @ (matrix / matrix.sum(1, keepdims=True))
    moved = p * np.exp(0.7 * theta[2:])
    below = (moved / moved.sum()).cumsum()[:-1]
    rated = 1 / (1 + np.exp(-(np.exp(0.5 * theta[1]) * np.log(below / (1 - below)) + 1.5 * theta[0])))
    return np.diff(np.concatenate([[0], rated, [1]]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_transform_is_its_definition(kind: str) -> None:
    p, theta = some(kind)
    rated = TRANSFORMS[kind].apply(p.log(), theta).exp()
    expected = [[reference(kind, row.numpy(), numbers.numpy()) for row in rows] for rows, numbers in zip(p, theta)]
    torch.testing.assert_close(rated, torch.tensor(np.array(expected)))
    torch.testing.assert_close(rated.sum(-1), torch.ones(4, 3, dtype=torch.float64))


@pytest.mark.parametrize("kind", KINDS)
def test_float32_is_near_float64_also_for_tiny_probabilities(kind: str) -> None:
    log_p = torch.tensor([0.0, -20, -40, -60, -1e-3], dtype=torch.float64).log_softmax(-1)[None]
    theta = some(kind)[1]
    exact = TRANSFORMS[kind].apply(log_p, theta)
    torch.testing.assert_close(
        TRANSFORMS[kind].apply(log_p.float(), theta.float()).double(), exact, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_finite_differences(kind: str) -> None:
    p, theta = some(kind, raters=2)
    inputs = p.log().requires_grad_(), theta.requires_grad_()
    assert torch.autograd.gradcheck(TRANSFORMS[kind].apply, inputs)


@pytest.mark.parametrize("kind", ["bias", "bias of ordinal labels"])
def test_the_mean_rater_starts_with_the_distribution_itself(kind: str) -> None:
    p = some(kind)[0].float()
    start = TRANSFORMS[kind].start(LABELS)
    torch.testing.assert_close(TRANSFORMS[kind].apply(p.log(), start).exp(), p)


def test_a_confusion_matrix_starts_near_the_identity() -> None:
    start = TRANSFORMS["confusion"].start(LABELS)
    matrix = TRANSFORMS["confusion"].apply(torch.eye(LABELS).clamp_min(1e-30).log(), start).exp()
    torch.testing.assert_close(matrix.diagonal(), torch.full((LABELS,), float(np.exp(3) / (np.exp(3) + 4))))
    torch.testing.assert_close(matrix.sum(-1), torch.ones(LABELS))


def test_a_positive_shift_moves_mass_to_lower_labels() -> None:
    p = torch.full((1, LABELS), 1 / LABELS)
    labels = torch.arange(LABELS).float()
    shift_thresholds = TRANSFORMS["bias of ordinal labels"].apply
    means = [
        float(shift_thresholds(p.log(), torch.tensor([shift] + [0.0] * (LABELS + 1))).exp() @ labels)
        for shift in (-1.0, 0.0, 1.0)
    ]
    assert means == sorted(means, reverse=True) and means[1] == pytest.approx(2)


def test_the_posterior_is_that_of_bayes() -> None:
    p, theta = some("confusion", raters=2)
    vote = torch.tensor([1, 4])
    matrix, bias = theta.split((LABELS**2, LABELS), -1)
    joint = p[..., None] * (matrix.unflatten(-1, (LABELS, LABELS)) + bias[:, None]).softmax(-1)[:, None]
    column = torch.stack([joint[0, ..., 1], joint[1, ..., 4]])
    torch.testing.assert_close(confused_posterior(p.log(), theta, vote), column / column.sum(-1, keepdim=True))


def test_ordinal_labels_have_a_bias_of_their_own() -> None:
    ordinal, nominal = LabelSpace.ordinal([1, 2, 3]), LabelSpace.nominal(["a", "b", "c"])
    assert find_transform("bias", ordinal) is TRANSFORMS["bias of ordinal labels"]
    assert find_transform("bias", nominal) is TRANSFORMS["bias"]
    assert find_transform("confusion", ordinal) is TRANSFORMS["confusion"]
