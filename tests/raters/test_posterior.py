"""The Laplace approximation: information by its definition, and the distribution of draws."""

from __future__ import annotations

import pytest
import torch

from ldl.raters.posterior import draw_parameters, fisher_information
from ldl.raters.transforms import TRANSFORMS

LABELS = 4


@pytest.mark.parametrize("kind", list(TRANSFORMS))
def test_information_is_the_expected_hessian(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldl.raters.posterior.VOTES_AT_ONCE", 3)
    generator = torch.Generator().manual_seed(0)
    transform = TRANSFORMS[kind]
    log_p = torch.randn(8, LABELS, generator=generator, dtype=torch.float64).log_softmax(-1)
    theta = transform.start(LABELS).double()
    theta = theta + 0.5 * torch.randn(len(theta), generator=generator, dtype=torch.float64)
    expected = torch.zeros(len(theta), len(theta), dtype=torch.float64)
    for row in log_p:
        chance = transform.apply(row[None], theta)[0].exp()
        for label in range(LABELS):

            def nll(theta: torch.Tensor, row: torch.Tensor = row, label: int = label) -> torch.Tensor:
                return -transform.apply(row[None], theta)[0, label]

            expected += chance[label] * torch.func.hessian(nll)(theta)
    torch.testing.assert_close(fisher_information(transform, log_p, theta), expected)


def test_draws_have_the_precision_of_votes_and_prior() -> None:
    root = torch.randn(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    information, theta = root @ root.T, torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    drawn = draw_parameters(theta, information, 0.5, 40_000, torch.Generator().manual_seed(0))
    covariance = torch.linalg.inv(information + 0.5 * torch.eye(3, dtype=torch.float64))
    torch.testing.assert_close(drawn.mean(0), theta, atol=0.03, rtol=0)
    torch.testing.assert_close(drawn.T.cov(), covariance, atol=0.05, rtol=0)


def test_directions_without_information_are_those_of_the_prior() -> None:
    """Adding a constant to a row of a confusion matrix changes nothing."""
    transform = TRANSFORMS["confusion"]
    log_p = torch.full((500, 3), 1 / 3, dtype=torch.float64).log()
    theta = transform.start(3).double()
    drawn = draw_parameters(theta, fisher_information(transform, log_p, theta), 1e-3, 2000, torch.Generator())
    assert float(drawn[:, :9].unflatten(-1, (3, 3)).sum(-1).std(0).min()) > 0.8 * (3 / 1e-3) ** 0.5
