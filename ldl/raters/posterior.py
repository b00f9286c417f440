"""Uncertainty of a rater's parameters: a Laplace approximation of their posterior distribution."""

from __future__ import annotations

import torch
from torch import Tensor

from ldl.raters.transforms import Transform

VOTES_AT_ONCE = 4096
"""Votes whose derivatives are computed at a time."""
JITTER = 1e-12
"""Share of the trace that is added to the diagonal, since directions without information may round below 0."""


def fisher_information(transform: Transform, log_p: Tensor, theta: Tensor) -> Tensor:
    """Return the information (P, P) on the parameters of one rater in n votes on items with given distributions.

    It is the expectation, over the rater's votes, of the Hessian of their negative log-likelihood, and equals the
    Hessian itself for a bias per label. Unlike the Hessian, it is never negative, for example for a confusion matrix.

    Args:
        transform: The model of the rater.
        log_p: (n, C) logarithms of the distributions of the items, float64.
        theta: (P,) parameters, float64.
    """

    def roots(theta: Tensor, log_p: Tensor) -> Tensor:
        # sum_c p(c) (d log p(c))^2 is the sum of the squared derivatives of 2 sqrt(p(c)), which stay finite at p = 0.
        return 2 * (transform.apply(log_p, theta) / 2).exp()

    total = theta.new_zeros(len(theta), len(theta))
    for some in log_p.split(VOTES_AT_ONCE):
        jacobian = torch.func.jacfwd(roots)(theta, some).flatten(0, 1)
        total += jacobian.T @ jacobian
    return total


def draw_parameters(
    theta: Tensor, information: Tensor, strength: float, draws: int, generator: torch.Generator
) -> Tensor:
    """Draw parameters (draws, P) of a rater from the normal distribution of the Laplace approximation.

    Its mean is ``theta``, and its precision is the information in the votes plus that of the prior, which is the
    shrinkage. The parameters of the mean rater, and the weights of features, are taken as known.

    Args:
        theta: (P,) trained parameters, float64.
        information: (P, P) information in the rater's votes.
        strength: Strength of the shrinkage, which is the precision of the prior.
        draws: Number of draws.
        generator: Source of randomness, on the CPU.
    """
    precision = information.clone()
    precision.diagonal().add_(strength + JITTER * float(information.trace()))
    noise = torch.randn(len(theta), draws, generator=generator, dtype=theta.dtype)
    spread = torch.linalg.solve_triangular(torch.linalg.cholesky(precision).T, noise, upper=True)
    return theta + spread.T
