"""Mixtures of Dirichlet distributions, which combine the votes on an item and learn which labels lie together.

Each item belongs to one of K components, and its label distribution is drawn from the Dirichlet distribution of that
component. Votes on an item move the weights of the components, so a vote for one label makes other labels likelier if
items of the training set have votes for both. One Dirichlet distribution, K = 1, treats all other labels alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.sparse import csr_matrix
from scipy.special import digamma, logsumexp, softmax

from ldl.annotations.checks import as_predictions, as_votes, check_several
from ldl.annotations.dirichlet import DirichletMultinomial, log_rising
from ldl.errors import LDLError
from ldl.labels import KL_FLOOR

SIZES = (1, 2, 3, 4, 6, 8, 12, 16)
"""Numbers of components that are compared."""

SIZES_WITHOUT_GAIN = 2
"""Sizes without a better held-out likelihood after which no larger ones are tried."""

FOLDS = 5
"""Parts of the items, each of which is held out once to compare sizes."""

LEAST_ITEMS = 10
"""Items with two votes that each component needs."""

MOST_HELD_OUT = 2000
"""Held-out items from which on no further part is held out."""

MOST_ITEMS = 10_000
"""Most items that a mixture is fitted to; more are sampled."""

MOST_VOTES = 100
"""Most votes of an item that a mixture is fitted to; more are sampled, since a power curve takes fewer."""

STARTS, WARM_STEPS = 3, 15
"""Starts of a fit, and the steps of EM from each; the best start continues."""

MOST_FIT_STEPS = 150
"""Most steps of the fit of all parameters from the best start."""

LOG_ALPHA_RANGE = (-7.0, 6.5)
"""Range of the logarithm of a parameter. Below it a component would exclude a label for good."""

MODEL_VOTES = (-6.0, 12.0)
"""Range of the logarithm of the number of votes that a prediction counts as."""

MOST_VALIDATION_ITEMS = 2000
"""Most items that this number is fitted to, evenly spaced."""


@dataclass(frozen=True)
class DirichletMixture:
    """A mixture of K Dirichlet priors over the label distributions of items.

    Attributes:
        weights: (K,) weights of the components, on the simplex.
        alphas: (K, C) parameters of the components, above 0.

    Examples:
        >>> import numpy as np
        >>> from ldl.annotations import DirichletMixture
        >>> mixture = DirichletMixture(np.array([0.5, 0.5]), np.array([[9.0, 1.0], [1.0, 9.0]]))
        >>> mixture.posterior_mean(np.array([[2, 0], [0, 0]])).round(2)
        array([[0.9, 0.1],
               [0.5, 0.5]])
    """

    weights: np.ndarray
    alphas: np.ndarray

    @property
    def size(self) -> int:
        """The number of components K."""
        return len(self.weights)

    @classmethod
    def of(cls, prior: DirichletMultinomial) -> DirichletMixture:
        """Return a mixture of one Dirichlet prior of all items."""
        return cls(np.ones(1), prior.alpha[None])

    @classmethod
    def fit(
        cls, counts: np.ndarray, groups: np.ndarray | None = None, sizes: Sequence[int] = SIZES
    ) -> DirichletMixture:
        """Fit a mixture to votes by maximum likelihood; the held-out likelihood of votes chooses its size.

        At most 10,000 items count, with at most 100 votes each; others are sampled with a fixed seed.

        Args:
            counts: (N, C) votes, at least 0, whole or fractional.
            groups: (N,) of any type; a group is held out as a whole. None holds out items.
            sizes: Numbers of components to compare, rising; one number is taken as it is.

        Raises:
            LDLError: No item has more than one vote, or votes that are negative, not finite or of another shape.
        """
        counts = as_votes(counts, empty=True)
        check_several(counts)
        rows, units = sample_items(counts), units_of(groups, len(counts))
        sampled_groups = None if groups is None else units[rows]
        return fit_size(counts[rows], choose_size(counts[rows], sampled_groups, sizes) if len(sizes) > 1 else sizes[0])

    def log_likelihood(self, counts: np.ndarray) -> np.ndarray:
        """Return the logarithm of the probability of the votes (N, C) of each item in one order, (N,)."""
        return np.asarray(logsumexp(self._joint(as_votes(counts, empty=True)), axis=1))

    def posterior_mean(self, counts: np.ndarray) -> np.ndarray:
        """Return the expected distribution (N, C) of each item after its votes (N, C), whole or fractional."""
        counts = as_votes(counts, empty=True)
        scaled = softmax(self._joint(counts), axis=1) / (self.alphas.sum(1) + counts.sum(1)[:, None])
        return np.asarray(scaled @ self.alphas + counts * scaled.sum(1, keepdims=True))

    def model_votes(self, prediction: np.ndarray, counts: np.ndarray) -> float:
        """Return the number s of votes that a prediction counts as beside votes, fitted to items by their likelihood.

        Args:
            prediction: (N, C) predictions of a model on items that it was not trained on, rows on the simplex.
            counts: (N, C) votes on the same items, at least one on each.

        Raises:
            LDLError: Predictions that are no distributions, or votes of another shape, negative or not finite.
        """
        counts = as_votes(counts)
        prediction = as_predictions(prediction, counts.shape)
        rows = np.unique(np.linspace(0, len(counts) - 1, MOST_VALIDATION_ITEMS).astype(int))
        prediction, counts = prediction[rows], counts[rows]

        def loss(log_s: float) -> float:
            return -float(Posterior(self, prediction, float(np.exp(log_s))).log_likelihood(counts).sum())

        optimum = minimize_scalar(loss, bounds=MODEL_VOTES, method="bounded", options={"xatol": 1e-5})
        return float(np.exp(optimum.x))

    def _joint(self, counts: np.ndarray) -> np.ndarray:
        """Return the logarithms (N, K) of the probabilities of a component and the votes of an item."""
        each = np.stack([log_rising(alpha, counts).sum(1) for alpha in self.alphas], 1)
        return np.log(self.weights) + each - log_rising(self.alphas.sum(1), counts.sum(1)[:, None])


class Posterior:
    """The distributions of M items, to which votes are added one by one.

    A prediction p counts as s votes: the fractional votes s p move the weights of the components by their likelihood
    under the means of the components, and s is added to the concentrations. The means are then multiplied by one factor
    for each label, so that without further votes the expected distribution is the prediction itself. Without the
    factors the prior would count twice, since a prediction already has it.

    Args:
        mixture: The prior of all items.
        prediction: (M, C) predictions, on the simplex; None for one item without a prediction.
        model_votes: The number of votes s.
    """

    def __init__(
        self, mixture: DirichletMixture, prediction: np.ndarray | None = None, model_votes: float = 0.0
    ) -> None:
        totals = mixture.alphas.sum(1)
        self.means = mixture.alphas / totals[:, None]
        if prediction is None:
            prediction = (mixture.weights @ self.means)[None]
        prediction = np.maximum(prediction, KL_FLOOR)
        logs = np.log(mixture.weights) + model_votes * prediction @ np.log(self.means).T
        self.factors = prediction / (softmax(logs, axis=1) @ self.means)
        sums = self.factors @ self.means.T
        self.logs = logs + np.log(sums)
        self.totals = np.tile(totals + model_votes, (len(prediction), 1))
        self.scales = self.totals / sums
        self.counts = np.zeros_like(prediction)

    def __getitem__(self, rows: np.ndarray) -> Posterior:
        """Return a copy for some items."""
        chosen = object.__new__(Posterior)
        chosen.means = self.means
        for name in ("factors", "logs", "totals", "scales", "counts"):
            setattr(chosen, name, getattr(self, name)[rows])
        return chosen

    def mean(self) -> np.ndarray:
        """Return the expected distribution of each item, (M, C)."""
        scaled = softmax(self.logs, axis=1) / self.totals
        prior = (scaled * self.scales) @ self.means * self.factors
        return np.asarray(prior + self.counts * scaled.sum(1, keepdims=True))

    def add(self, labels: np.ndarray) -> None:
        """Add a vote for a label (M,) to each item."""
        rows = np.arange(len(labels))
        self.logs += np.log((self._alpha(rows, labels) + self.counts[rows, labels][:, None]) / self.totals)
        self.counts[rows, labels] += 1
        self.totals += 1

    def add_counts(self, counts: np.ndarray) -> None:
        """Add votes (M, C), whole or fractional, to each item; an item may have none."""
        rising = log_rising(self.alphas, counts[:, None]).sum(2)
        self.logs = self.logs + rising - log_rising(self.totals, counts.sum(1)[:, None])
        self.counts = self.counts + counts
        self.totals = self.totals + counts.sum(1)[:, None]

    @property
    def alphas(self) -> np.ndarray:
        """Parameters of the components of each item, with the votes added so far, (M, K, C)."""
        return np.asarray(self.scales[:, :, None] * self.means * self.factors[:, None] + self.counts[:, None])

    def log_likelihood(self, counts: np.ndarray) -> np.ndarray:
        """Return the logarithm of the probability of votes (M, C), on every item, in one order, (M,)."""
        rows, labels = np.nonzero(counts)
        each = log_rising(self._alpha(rows, labels), counts[rows, labels][:, None])
        after = np.add.reduceat(each, np.flatnonzero(np.diff(rows, prepend=-1)))
        after -= log_rising(self.totals, counts.sum(1)[:, None])
        return np.asarray(logsumexp(self.logs + after, axis=1) - logsumexp(self.logs, axis=1))

    def _alpha(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the parameters (V, K) of pairs of item and label without further votes."""
        return self.scales[rows] * self.means.T[labels] * self.factors[rows, labels][:, None]


def combiner_in_words(sizes: Iterable[int]) -> str:
    """Return a combiner of votes in words, by the numbers of components of one or several folds."""
    ordered = sorted(sizes)
    low, high = ordered[0], ordered[-1]
    if high == 1:
        return "one Dirichlet"
    return f"a mixture of {low} Dirichlets" if low == high else f"mixtures of {low} to {high} Dirichlets"


def choose_size(counts: np.ndarray, groups: np.ndarray | None = None, sizes: Sequence[int] = SIZES) -> int:
    """Return the number of components that no larger one exceeds in the likelihood of held-out items.

    A larger number counts as better if its gain is above the standard error of the gain, over items or groups.

    Args:
        counts: (N, C) votes. Each part of the items is held out once, until enough items were.
        groups: (N,) of any type; a group is held out as a whole. None holds out items.
        sizes: Numbers of components, rising.
    """
    units, folds = units_of(groups, len(counts)), split_items(groups, len(counts))
    numbers, several = np.unique(folds), counts.sum(1) > 1
    if len(np.unique(folds[several])) < 2:  # without one part, no item may have two votes
        return 1
    enough = np.searchsorted(np.cumsum([np.sum(folds == number) for number in numbers]), MOST_HELD_OUT) + 1
    held = np.concatenate([np.flatnonzero(folds == number) for number in numbers[:enough]])
    thin, best, size, since = thinned(counts), np.full(len(held), -np.inf), 1, 0
    for tried in sizes:
        if tried > 1 and tried * LEAST_ITEMS > several.sum():
            break
        mixtures = [(number, fit_size(thin[folds != number], tried)) for number in numbers[:enough]]
        each = np.concatenate([mixture.log_likelihood(thin[folds == number]) for number, mixture in mixtures])
        gains = np.bincount(units[held], each - best)[np.unique(units[held])]
        since += 1
        if np.isinf(best[0]) or gains.mean() > gains.std() / np.sqrt(len(gains)):
            best, size, since = each, tried, 0
        if since == SIZES_WITHOUT_GAIN:
            break
    return size


def units_of(groups: np.ndarray | None, items: int) -> np.ndarray:
    """Return the number of the group of each item, from 0, or of the item itself, (N,)."""
    if groups is None:
        return np.arange(items)
    if len(groups) != items:
        raise LDLError(f"there are {len(groups)} groups for {items} items; give every item one group")
    return np.unique(np.asarray(groups), return_inverse=True)[1]


def split_items(groups: np.ndarray | None, items: int) -> np.ndarray:
    """Return the part (N,) of each item, in 0 to 4: random parts of items, or of whole groups (N,) of any type."""
    units = units_of(groups, items)
    return np.asarray(np.random.default_rng(0).permutation(np.arange(int(units.max()) + 1) % FOLDS)[units])


def fit_size(counts: np.ndarray, size: int) -> DirichletMixture:
    """Fit a mixture of ``size`` components to votes (N, C)."""
    if size == 1:
        return DirichletMixture.of(DirichletMultinomial.fit(counts))
    return _fit(thinned(counts), size)


def sample_items(counts: np.ndarray) -> np.ndarray:
    """Return the numbers of the items to fit, rising: all, or a sample."""
    if len(counts) <= MOST_ITEMS:
        return np.arange(len(counts))
    return np.sort(np.random.default_rng(0).choice(len(counts), MOST_ITEMS, replace=False))


def thinned(counts: np.ndarray) -> np.ndarray:
    """Return the votes with a sample of those on items that have many; fractional counts stay."""
    many = (counts.sum(1) > MOST_VOTES) & (counts == np.round(counts)).all(1)
    if not many.any():
        return counts
    rng, thin = np.random.default_rng(0), counts.copy()
    thin[many] = [
        rng.multivariate_hypergeometric(row, MOST_VOTES, method="marginals") for row in counts[many].astype(np.int64)
    ]
    return thin


class _Votes:
    """Distinct rows of votes with the functions of them that a fit needs.

    The logarithm of a Dirichlet-multinomial probability is a sum over the labels with votes, so a sparse matrix of
    items and distinct pairs of label and count holds all that the fit needs.
    """

    def __init__(self, counts: np.ndarray) -> None:
        self.rows, self.times = np.unique(counts, axis=0, return_counts=True)
        size = len(self.rows)
        item, label = np.nonzero(self.rows)
        pairs, numbers = np.unique(np.stack([label, self.rows[item, label]]), axis=1, return_inverse=True)
        self.labels, self.values = pairs[0].astype(int), pairs[1][:, None]
        self.has_pair = csr_matrix((np.ones(len(item)), (item, numbers.ravel())), (size, pairs.shape[1]))
        indices = (self.labels, np.arange(pairs.shape[1]))
        self.by_label = csr_matrix((np.ones(pairs.shape[1]), indices), (counts.shape[1], pairs.shape[1]))
        totals, numbers = np.unique(self.rows.sum(1), return_inverse=True)
        self.totals = totals[:, None]
        self.has_total = csr_matrix((np.ones(size), (np.arange(size), numbers.ravel())), (size, len(totals)))

    def log_likelihood(self, alphas: np.ndarray) -> np.ndarray:
        """Return the log-likelihood (N, K) of each row under each component."""
        each = self.has_pair @ log_rising(alphas[:, self.labels].T, self.values)
        return np.asarray(each - self.has_total @ log_rising(alphas.sum(1), self.totals))

    def slopes(self, alphas: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives (K, C) and (K, 1) of the sums that raise and lower a likelihood, by the parameters.

        ``shares`` (N, K) are the weights of the rows in each component.
        """
        alpha, total = alphas[:, self.labels].T, alphas.sum(1)
        raising = (digamma(alpha + self.values) - digamma(alpha)) * (self.has_pair.T @ shares)
        lowering = (digamma(total + self.totals) - digamma(total)) * (self.has_total.T @ shares)
        return (self.by_label @ raising).T, lowering.sum(0)[:, None]

    def responsibilities(self, log_weights: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the expected numbers (N, K) of items of each row in each component, and the log-likelihood."""
        joint = self.log_likelihood(alphas) + log_weights
        each = logsumexp(joint, axis=1)
        return np.exp(joint - each[:, None]) * self.times[:, None], float(self.times @ each)


def _fit(counts: np.ndarray, size: int) -> DirichletMixture:
    """Fit a mixture: EM from several seeded starts, then L-BFGS on all parameters from the best of them."""
    votes = _Votes(counts[counts.sum(1) > 0])
    starts = [_warm(votes, size, np.random.default_rng([size, start])) for start in range(STARTS)]
    log_weights, alphas, _ = max(starts, key=lambda start: start[2])
    items, width = votes.times.sum(), alphas.size

    def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
        alphas = np.exp(point[:width].reshape(size, -1))
        logs = point[width:] - logsumexp(point[width:])
        shares, value = votes.responsibilities(logs, alphas)
        raising, lowering = votes.slopes(alphas, shares)
        gradient = [((raising - lowering) * alphas).ravel(), shares.sum(0) - items * np.exp(logs)]
        return -value / items, -np.concatenate(gradient) / items

    start = np.concatenate([np.log(alphas).ravel(), log_weights])
    bounds = [LOG_ALPHA_RANGE] * width + [(-20.0, 20.0)] * size
    optimum = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": MOST_FIT_STEPS, "ftol": 1e-7}
    )
    return DirichletMixture(softmax(optimum.x[width:]), np.exp(optimum.x[:width].reshape(size, -1)))


def _warm(votes: _Votes, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Return logarithms of weights (K,), parameters (K, C) and the log-likelihood after some steps of EM.

    Components start at the shares of distant items, as in k-means++. The M step is one fixed-point step (Minka 2000).
    """
    shares = votes.rows / votes.rows.sum(1, keepdims=True)
    chance = votes.times / votes.times.sum()
    mean, chosen = chance @ shares, [rng.choice(len(chance), p=chance)]
    apart = np.square(shares - shares[chosen[0]]).sum(1)
    while len(chosen) < size:
        far = apart * votes.times
        chosen.append(rng.choice(len(chance), p=far / far.sum() if far.sum() > 0 else chance))
        apart = np.minimum(apart, np.square(shares - shares[chosen[-1]]).sum(1))
    low, high = np.exp(LOG_ALPHA_RANGE)
    alphas = np.clip((shares[chosen] + mean) * shares.shape[1] / 2, 0.01, high)
    log_weights = np.full(size, -np.log(size))
    for _ in range(WARM_STEPS):
        expected, _ = votes.responsibilities(log_weights, alphas)
        weights = np.maximum(expected.sum(0), 1e-6)
        log_weights = np.log(weights / weights.sum())
        raising, lowering = votes.slopes(alphas, expected)
        alphas = np.clip(alphas * raising / np.maximum(lowering, 1e-300), low, high)
    return log_weights, alphas, votes.responsibilities(log_weights, alphas)[1]
