"""The Dirichlet-multinomial distribution of votes: how much items differ, and effective numbers of votes.

The votes on an item are draws from a distribution over the labels, which itself is drawn from a Dirichlet distribution
with parameters alpha = s m. The mean m (C,) is common to all items. The concentration s states how much they
differ: with a small s the votes on one item agree, with a large s every item has the distribution m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import digamma, gammaln

from ldl.annotations.checks import as_votes, check_several

LOG_ALPHA_RANGE = (-12.0, 12.0)
"""Range of the logarithm of every parameter. Beyond it the likelihood is flat."""


@dataclass(frozen=True)
class DirichletMultinomial:
    """A Dirichlet prior over the label distributions of items.

    Attributes:
        alpha: Parameters (C,) for all items, or (N, C) for each item, above 0.

    Examples:
        >>> import numpy as np
        >>> from ldl.annotations import DirichletMultinomial
        >>> prior = DirichletMultinomial(np.array([1.0, 1.0]))
        >>> prior.posterior_mean(np.array([[3, 1], [0, 0]])).round(2)
        array([[0.67, 0.33],
               [0.5 , 0.5 ]])
    """

    alpha: np.ndarray

    @property
    def concentration(self) -> float:
        """The sum s of the parameters of an item."""
        return float(self.alpha.sum(-1).mean())

    @property
    def mean(self) -> np.ndarray:
        """The distribution of the first vote on an item, of the shape of ``alpha``."""
        return self.alpha / self.alpha.sum(-1, keepdims=True)

    @classmethod
    def fit(cls, counts: np.ndarray) -> DirichletMultinomial:
        """Fit all parameters to votes by maximum likelihood.

        Items with one vote contribute to the mean alone. Without an item of two votes the likelihood does not depend on
        the concentration.

        Args:
            counts: (N, C) votes, at least 0, whole or fractional.

        Raises:
            LDLError: No item has more than one vote, or votes that are negative, not finite or of another shape.
        """
        counts = as_votes(counts, empty=True)
        totals = check_several(counts)
        columns = [np.unique(column, return_counts=True) for column in counts.T]
        sums = np.unique(totals, return_counts=True)

        def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
            alpha = np.exp(logs)
            value, slope = _rising(alpha.sum(), *sums)
            terms = [_rising(parameter, *column) for parameter, column in zip(alpha, columns)]
            gradient = slope - np.array([term[1] for term in terms])
            return value - sum(term[0] for term in terms), gradient * alpha

        start = np.log(np.maximum(counts.sum(0) / counts.sum() * counts.shape[1], np.exp(LOG_ALPHA_RANGE[0])))
        optimum = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[LOG_ALPHA_RANGE] * counts.shape[1])
        return cls(np.exp(optimum.x))

    def log_likelihood(self, counts: np.ndarray) -> np.ndarray:
        """Return the logarithm of the probability of the votes (N, C) of each item in one order, (N,)."""
        counts = as_votes(counts, empty=True)
        each = log_rising(self.alpha, counts).sum(1)
        return each - log_rising(np.broadcast_to(self.alpha.sum(-1), len(counts)), counts.sum(1))

    def posterior_mean(self, counts: np.ndarray) -> np.ndarray:
        """Return the expected distribution (N, C) of each item after its votes (N, C)."""
        after = self.alpha + as_votes(counts, empty=True)
        return after / after.sum(1, keepdims=True)

    def effective_votes(self, votes: np.ndarray) -> np.ndarray:
        """Return how many independent votes the votes (N,) on one item are worth, n (s + 1) / (n + s).

        The variance of the observed shares around m is m (1 - m) divided by this number. It is 1 for one vote, and at
        most s + 1: further votes describe the item better, but not the mean of similar items.
        """
        s = self.concentration
        return votes * (s + 1) / (votes + s)


def log_rising(start: np.ndarray | float, count: np.ndarray) -> np.ndarray:
    """Return log(start (start + 1) ... (start + count - 1)), also for fractional counts."""
    return np.asarray(gammaln(start + count) - gammaln(start))


def _rising(start: float, values: np.ndarray, times: np.ndarray) -> tuple[float, float]:
    """Return the sum of ``log_rising`` over values that occur several times, and its derivative in ``start``."""
    return float(times @ log_rising(start, values)), float(times @ (digamma(start + values) - digamma(start)))
