"""Votes drawn from known distributions, and the power curve by its definition."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import log

import numpy as np

from ldl.annotations import (
    DirichletMixture,
    DirichletMultinomial,
)

ORDINAL = DirichletMixture(
    np.array([0.5, 0.3, 0.2]), np.array([[9, 4, 0.4, 0.1, 0.1], [0.3, 4, 9, 4, 0.3], [0.1, 0.1, 0.6, 5, 8]])
)
"""Neighbouring labels lie together."""
NOMINAL = DirichletMixture(
    np.array([0.4, 0.35, 0.25]), np.array([[7, 0.2, 6, 0.2], [0.3, 9, 0.2, 0.4], [0.2, 2, 0.2, 8]])
)
"""The first and the third label lie together."""


def votes_of_mixture(truth: DirichletMixture, items: int, *votes: int, seed: int = 0) -> list[np.ndarray]:
    """Independent sets of votes (N, C) on the same items, one for each number of votes."""
    rng = np.random.default_rng(seed)
    component = rng.choice(truth.size, items, p=truth.weights)
    shares = np.stack([rng.dirichlet(truth.alphas[number]) for number in component])
    return [np.stack([rng.multinomial(number, row) for row in shares]).astype(np.float64) for number in votes]


@cache
def fitted_mixture(nominal: bool) -> DirichletMixture:
    """A mixture that is fitted to 1,000 items with 8 votes."""
    return DirichletMixture.fit(votes_of_mixture(NOMINAL if nominal else ORDINAL, 1000, 8, seed=1)[0])


def nll_of_all_choices(counts: np.ndarray, combiner: DirichletMixture | DirichletMultinomial, raters: int) -> float:
    """Every vote, predicted from every choice of others."""
    votes, losses = np.repeat(np.arange(len(counts)), counts.astype(int)), []
    for held, label in enumerate(votes):
        for others in combinations(np.delete(votes, held), raters):
            seen = np.bincount(np.array(others, int), minlength=len(counts))[None]
            losses.append(-log(combiner.posterior_mean(seen)[0, label]))
    return float(np.mean(losses))


def votes_of_dirichlet(items: int, votes: int, alpha: list[float], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """True distributions of items, and votes drawn from them."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(alpha, items)
    return truth, np.stack([rng.multinomial(votes, row) for row in truth]).astype(np.float64)
