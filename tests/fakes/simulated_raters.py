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
    """Votes of ``each`` random raters on every item, and the class of each item (N,), drawn from ``prior`` (..., C)."""
    rng = np.random.default_rng(seed)
    raters, labels = len(confusion), prior.shape[-1]
    chance = np.broadcast_to(prior, (items, labels)).cumsum(1)
    classes = (rng.random((items, 1)) > chance[:, :-1]).sum(1)
    item = np.repeat(np.arange(items), each)
    rater = np.argsort(rng.random((items, raters)), axis=1)[:, :each].ravel()
    chance = confusion[rater, classes[item]].cumsum(1)
    label = (rng.random((len(item), 1)) > chance[:, :-1]).sum(1)
    return SingleVotes(item, rater, label, np.array([f"r{number}" for number in range(raters)], object)), classes


def simulate_items(items: int, sharpness: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two features of each item, and the distribution of its label (N, 3), a softmax of them."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(items, 2)).round(3)
    scores = np.exp(sharpness * features @ np.array([[1.0, -1.0, 0.0], [-0.6, -0.6, 1.2]]))
    return features, scores / scores.sum(1, keepdims=True)
