"""Single votes of raters with known confusion matrices on items with known classes."""

from __future__ import annotations

import numpy as np

from ldl.annotations import SingleVotes


def confusion_of(*honesty: float, labels: int = 3) -> np.ndarray:
    """Confusion matrices (R, C, C) of raters who name the class with a probability, and else any label."""
    share = np.array(honesty)[:, None, None]
    return share * np.eye(labels) + (1 - share) / labels


def biased(labels: int = 3, share: float = 0.9) -> np.ndarray:
    """A confusion matrix (1, C, C) of a rater who names the first label for every class, mostly."""
    return share * np.eye(labels)[:1].repeat(labels, 0)[None] + (1 - share) * np.eye(labels)[None]


def simulate_votes(
    confusion: np.ndarray, prior: np.ndarray, items: int, each: int, seed: int = 0
) -> tuple[SingleVotes, np.ndarray]:
    """Votes of ``each`` random raters on every item, and the class of each item (N,)."""
    rng = np.random.default_rng(seed)
    raters, labels = len(confusion), len(prior)
    classes = rng.choice(labels, items, p=prior)
    item = np.repeat(np.arange(items), each)
    rater = np.argsort(rng.random((items, raters)), axis=1)[:, :each].ravel()
    chance = confusion[rater, classes[item]].cumsum(1)
    label = (rng.random((len(item), 1)) > chance[:, :-1]).sum(1)
    return SingleVotes(item, rater, label, np.array([f"r{number}" for number in range(raters)], object)), classes
