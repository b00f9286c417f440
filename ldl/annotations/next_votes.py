"""The expected gain of one more vote on an item, and the items whose next vote gains most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import kl_div, softmax

from ldl.annotations.checks import as_predictions, as_votes
from ldl.annotations.dirichlet import DirichletMultinomial
from ldl.annotations.mixture import DirichletMixture, Posterior
from ldl.annotations.power import Combiner
from ldl.errors import LDLError

PAIRS_AT_A_TIME = 1 << 22
"""Largest number of items times pairs of labels in memory at a time."""


@dataclass(frozen=True, eq=False)
class NextVotes:
    """The items whose next vote has the largest expected gain, the largest first.

    Attributes:
        items: (n,) numbers of the items, from 0.
        votes: (n,) votes on each item so far.
        gain: (n,) expected gain of the next vote, in nats, at least 0.
        prediction: (n, C) distribution of the next vote, on the simplex.

    Examples:
        >>> import numpy as np
        >>> from ldl.annotations import DirichletMultinomial, rank_next
        >>> counts = np.array([[9, 1], [1, 1], [0, 0]])
        >>> following = rank_next(counts, DirichletMultinomial(np.array([1.0, 1.0])), 2)
        >>> following.items, following.votes
        (array([2, 1]), array([0, 2]))
    """

    items: np.ndarray
    votes: np.ndarray
    gain: np.ndarray
    prediction: np.ndarray

    @property
    def total(self) -> float:
        """The expected fall of the NLL of a further vote, summed over the items, if each gets one more vote."""
        return float(self.gain.sum())

    def __len__(self) -> int:
        return len(self.items)


def expected_gain(
    counts: np.ndarray,
    combiner: Combiner,
    prediction: np.ndarray | None = None,
    model_votes: float | None = None,
) -> np.ndarray:
    """Return the expected gain of one more vote on each item, (N,) in nats.

    Let y be the next vote on an item and z a further vote, which is held out. Now z is predicted by the distribution p
    of the next vote, and its expected negative log-likelihood (NLL) is the entropy H(p). Once y is known, z is
    predicted by p(. | y). The gain is the expected fall of the NLL over both votes,

        gain = H(p) - sum_y p(y) H(p(. | y)) = I(y; z),

    the mutual information of two votes on the item (Lindley 1956, doi 10.1214/aoms/1177728069). So it is at least 0,
    and 0 if the distribution of the item is known. A vote on an item changes no other item.

    The sums are exact. Under the posterior, the item is in component k with probability w_k, where its distribution is
    a Dirichlet with parameters a_k, whose sum is t_k. Two votes then have the joint distribution

        J(y, z) = sum_k w_k a_k(y) (a_k(z) + [y = z]) / (t_k (t_k + 1)),

    with both margins equal to p, and the gain is the divergence of J from p(y) p(z).

    Args:
        counts: (N, C) votes so far, at least 0, whole or fractional. An item may have none.
        combiner: One Dirichlet or a mixture, fitted to votes on items of the same kind.
        prediction: (N, C) predictions of a model that was not trained on these votes; None for votes alone.
        model_votes: Number s of votes that a prediction counts as (:meth:`DirichletMixture.model_votes`).

    Raises:
        LDLError: Votes that are negative, not finite or of other labels than the combiner's; predictions that are no
            distributions; ``prediction`` without ``model_votes``, or a negative number of them.
    """
    return _gain_and_prediction(counts, combiner, prediction, model_votes)[0]


def rank_next(
    counts: np.ndarray,
    combiner: Combiner,
    number: int,
    prediction: np.ndarray | None = None,
    model_votes: float | None = None,
) -> NextVotes:
    """Return the ``number`` items whose next vote has the largest expected gain.

    Each item is listed at most once, since the gain of a second vote depends on the first. Rank again after the votes.
    Items of equal gain keep their order.

    Args:
        counts: (N, C) votes so far, as for :func:`expected_gain`, and so are the others.
        combiner: One Dirichlet or a mixture.
        number: Number of items n, from 1 to N.
        prediction: (N, C) predictions of a model, or None.
        model_votes: Number of votes that a prediction counts as.

    Raises:
        LDLError: As :func:`expected_gain`, or another number of items.
    """
    items = len(as_votes(counts, empty=True))
    if not 1 <= number <= items:
        raise LDLError(
            f"{number} items cannot be chosen of {items}, each at most once; give a number from 1 to {items}, and rank "
            "again once their votes are there"
        )
    gain, distribution = _gain_and_prediction(counts, combiner, prediction, model_votes)
    order = np.argsort(-gain, kind="stable")[:number]
    return NextVotes(order, np.asarray(counts).sum(1)[order], gain[order], distribution[order])


def _gain_and_prediction(
    counts: np.ndarray, combiner: Combiner, prediction: np.ndarray | None, model_votes: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected gain (N,) of the next vote, and its distribution (N, C). Raises LDLError."""
    counts = as_votes(counts, empty=True)
    mixture = DirichletMixture.of(combiner) if isinstance(combiner, DirichletMultinomial) else combiner
    if mixture.alphas.shape[1:] != counts.shape[1:]:
        raise LDLError(
            f"the combiner has {mixture.alphas.shape[-1]} labels for all items, and the votes have {counts.shape[1]}; "
            "fit it to votes for the same labels"
        )
    if prediction is not None:
        prediction = as_predictions(prediction, counts.shape)
        if model_votes is None or not 0 <= model_votes < np.inf:
            raise LDLError(
                f"model_votes must be a finite number from 0, and is {model_votes}; fit it to validation items"
            )
    gain, distribution = np.empty(len(counts)), np.empty(counts.shape)
    labels = counts.shape[1]
    each = max(1, PAIRS_AT_A_TIME // (labels * max(labels, mixture.size)))
    for start in range(0, len(counts), each):
        rows = slice(start, start + each)
        if prediction is None:
            posterior = Posterior(mixture)[np.zeros(len(counts[rows]), int)]
        else:
            posterior = Posterior(mixture, prediction[rows], model_votes or 0.0)
        posterior.add_counts(counts[rows])
        gain[rows], distribution[rows] = _mutual_information(posterior), posterior.mean()
    return gain, distribution


def _mutual_information(posterior: Posterior) -> np.ndarray:
    """Return the mutual information (M,) of two further votes on each item."""
    alphas, totals = posterior.alphas, posterior.totals
    weights = softmax(posterior.logs, axis=1) / (totals * (totals + 1))
    scaled = weights[:, :, None] * alphas
    joint = scaled.transpose(0, 2, 1) @ alphas
    labels = np.arange(alphas.shape[2])
    joint[:, labels, labels] += scaled.sum(1)
    margins = joint.sum(2)
    information = kl_div(joint, margins[:, :, None] * margins[:, None, :]).sum((1, 2))
    return np.maximum(information, 0)  # rounding makes zeros negative
