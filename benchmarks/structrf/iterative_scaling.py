"""Maximum entropy by improved iterative scaling: SA-IIS, also called IIS-LLD (Geng, Yin & Zhou, TPAMI 2013)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

ROUNDS = 20
"""At most so many Newton steps for an entry of an iteration; two or three are the rule."""


@dataclass
class IterativeScaling:
    """p(y | x) proportional to exp(w_y x + b_y), its weights raised by improved iterative scaling from zero.

    An iteration adds to the weight of feature k for label y the root d of
    sum_i p(y | x_i) x_ik exp(d s_ik m_i) = sum_i d_iy x_ik, with s_ik the sign of x_ik and m_i = sum_k |x_ik|; the bias
    is the weight of a feature that is 1.

    Attributes:
        iterations: How many.
    """

    iterations: int = 200

    def fit(self, features: np.ndarray, target: np.ndarray) -> None:
        """Fit on (N, F) and distributions (N, C)."""
        rows = _with_one(features)
        self.weight = np.zeros((rows.shape[1], target.shape[1]))
        wanted, mass = rows.T @ target, np.abs(rows).sum(1)
        for _ in range(self.iterations):
            self.weight += increments(rows, softmax(rows @ self.weight, axis=1), wanted, mass)

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Distributions of (n, F), (n, C)."""
        return softmax(_with_one(features) @ self.weight, axis=1)


def _with_one(features: np.ndarray) -> np.ndarray:
    return np.hstack([features.astype(np.float64), np.ones((len(features), 1))])


def increments(rows: np.ndarray, predicted: np.ndarray, wanted: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """The roots d of all features and labels, (F, C).

    Args:
        rows: (N, F).
        predicted: (N, C), p(y | x_i).
        wanted: (F, C), sum_i d_iy x_ik.
        mass: (N,), sum_k |x_ik|.
    """
    found, most = np.zeros_like(wanted), mass.max()
    for feature, column in enumerate(rows.T):
        held = np.flatnonzero(column)
        weighted, power = column[held, None] * predicted[held], np.sign(column[held]) * mass[held]
        for _ in range(ROUNDS if len(held) else 0):
            terms = weighted * np.exp(found[feature] * power[:, None])
            # A step changes no exponent by more than 1, so that Newton's method does not leave its basin.
            step = (wanted[feature] - terms.sum(0)) / (power @ terms)
            found[feature] += np.clip(step, -1 / most, 1 / most)
            if np.abs(step).max() * most < 1e-6:
                break
    return found
