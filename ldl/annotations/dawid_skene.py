"""The model of Dawid and Skene: the class of each item, and the confusion matrix of each rater, from single votes.

Every item has one true class c, drawn from a prior. A rater r who sees an item of class c votes for the label k with
probability ``confusion[r, c, k]``. Given the class, votes are independent. EM finds the parameters (Dawid & Skene,
Maximum likelihood estimation of observer error-rates using the EM algorithm, Applied Statistics 28, 1979): it starts
from the shares of the votes, and alternates between the parameters and the probabilities of the classes.

Maximum likelihood gives a rater with three votes zeros and ones. Here each row of a confusion matrix has a Dirichlet
prior around the confusion matrix of all raters together under the starting shares. The prior counts as ``smoothing``
votes, so a rater with few votes is taken as an average one. The prior of the classes has a Dirichlet prior around their
starting shares, which counts as ``smoothing`` items. EM maximises the posterior of the parameters.

A rater needs votes in every class. If most raters have only a few votes, the classes are uncertain, and other labels
than the majority can win.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logsumexp

from ldl.annotations.votes import SingleVotes
from ldl.errors import LDLError

SMOOTHING = 10.0
"""Default votes that the prior of a row of a confusion matrix counts as.

On MD-Agreement, POPQUORN and LIDC, 10 predicted held-out votes best, or nearly, of seven values from 1 to 100.
"""


@dataclass(frozen=True, eq=False)
class DawidSkene:
    """Classes of N items and confusion matrices of R raters, for C labels.

    Attributes:
        probabilities: (N, C) probability of each class given the votes; that of an item without votes is ``prior``.
        prior: (C,) probability of each class of an item, above 0.
        confusion: (R, C, C) probability of each label (last axis) that a rater votes for, given the class.
        objective: (steps,) log-likelihood of the votes plus the log density of the priors, up to a constant, of the
            parameters in each step of EM. It never falls.

    Examples:
        >>> import numpy as np
        >>> from ldl.annotations import DawidSkene, SingleVotes
        >>> labels = np.array([0, 0, 1, 1, 1, 0])  # raters a, b and c on two items
        >>> votes = SingleVotes(np.repeat([0, 1], 3), np.tile([0, 1, 2], 2), labels, np.array(["a", "b", "c"]))
        >>> DawidSkene.fit(votes, items=2, labels=2).probabilities.argmax(1)
        array([0, 1])
    """

    probabilities: np.ndarray
    prior: np.ndarray
    confusion: np.ndarray
    objective: np.ndarray

    @classmethod
    def fit(
        cls,
        votes: SingleVotes,
        items: int,
        labels: int,
        smoothing: float = SMOOTHING,
        tolerance: float = 1e-6,
        most_steps: int = 1000,
    ) -> DawidSkene:
        """Fit the model to single votes by EM.

        Several votes of a rater on an item count as independent. Without smoothing worth mentioning, such as 1e-10, the
        fit is that of maximum likelihood.

        Args:
            votes: The votes.
            items: Number N of items.
            labels: Number C of labels.
            smoothing: Votes that the prior of each row of a confusion matrix counts as, and items that the prior of the
                classes counts as; above 0.
            tolerance: EM stops once no probability of a class changes by more.
            most_steps: Largest number of steps.

        Raises:
            LDLError: No votes, votes for other items or labels, or ``smoothing`` that is not above 0.
        """
        _check(votes, items, labels, smoothing)
        raters = len(votes.names)
        # One column for each pair of rater and label, so that both steps of EM are products of matrices.
        has_vote = csr_array(
            (np.ones(len(votes.item)), (votes.item, votes.rater * labels + votes.label)), (items, raters * labels)
        )
        classes = _shares(votes, items, labels)
        pseudo_items, pseudo_votes = (smoothing * mean for mean in _means(votes, classes))
        objective: list[float] = []
        for _ in range(most_steps):
            prior = classes.sum(0) + pseudo_items
            prior /= prior.sum()
            confusion = (has_vote.T @ classes).reshape(raters, labels, labels) + pseudo_votes.T
            confusion /= confusion.sum(1, keepdims=True)  # (R, label, class)
            logs = np.log(confusion)
            joint = has_vote @ logs.reshape(-1, labels) + np.log(prior)
            each = logsumexp(joint, axis=1, keepdims=True)
            objective.append(float(each.sum() + (pseudo_votes.T * logs).sum() + pseudo_items @ np.log(prior)))
            before, classes = classes, np.exp(joint - each)
            if np.abs(classes - before).max() <= tolerance:
                break
        return cls(classes, prior, confusion.transpose(0, 2, 1), np.array(objective))


def _shares(votes: SingleVotes, items: int, labels: int) -> np.ndarray:
    """Return the shares of the votes on each item (N, C), uniform for an item without votes."""
    counts = votes.counts(items, labels)
    counts = counts + (counts.sum(1, keepdims=True) == 0)
    return counts / counts.sum(1, keepdims=True)


def _means(votes: SingleVotes, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of the classes (C,), and the confusion matrix (C, C) of all votes together.

    A uniform item, and a uniform vote in each row, are added, so that both are above 0.
    """
    labels = classes.shape[1]
    prior = classes.sum(0) + 1 / labels
    confusion = np.stack([np.bincount(votes.label, column[votes.item], labels) for column in classes.T]) + 1 / labels
    return prior / prior.sum(), confusion / confusion.sum(1, keepdims=True)


def _check(votes: SingleVotes, items: int, labels: int, smoothing: float) -> None:
    if not len(votes.item):
        raise LDLError("there are no votes to fit the model of Dawid and Skene to; add votes")
    if not 0 < smoothing < np.inf:
        raise LDLError(f"smoothing {smoothing!r} must be finite and above 0; take 1e-10 for maximum likelihood")
    for name, numbers, size in (
        ("item", votes.item, items),
        ("rater", votes.rater, len(votes.names)),
        ("label", votes.label, labels),
    ):
        if numbers.min() < 0 or numbers.max() >= size:
            raise LDLError(
                f"votes have the {name} numbers {numbers.min()} to {numbers.max()}, which must be in 0..{size - 1}; "
                f"correct the votes, or the number of {name}s"
            )
