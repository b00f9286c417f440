"""Boosting of several groups at once (Babenko et al. 2008, Sections 2.3 and 2.5)."""

from __future__ import annotations

from ldl.heads.boosted import BoostedBags
from ldl.methods.boosting.pooling import Pooling
from ldl.methods.boosting.stumps import Cut


class MPLBoost(BoostedBags):
    """MPL-Boost: positives fall into K groups that nobody names; each gets a classifier of its own.

    An instance has K probabilities sigmoid(2 h^k); that of a bag is a soft maximum over groups and instances at once
    (Eq. 18 and 19), over the groups alone where bags are single rows. Rounds go through the groups in turn, each stump
    chosen for one h^k while the others stay (Fig. 5). See :class:`ldl.heads.milboost.MILBoost` for the rest.

    It takes bags (..., J, F), missing instances NaN; single rows are bags of one.
    ``memberships`` gives the shares of the groups in a bag, ``scores`` h of every instance and group.

    Args:
        groups: K.
        pooling: Soft maximum over groups and instances. Of probabilities (Table 1): ``lse`` log-sum-exponential, ``gm``
            generalised mean, ``nor`` noisy or, ``isr``; of h: ``lse_score``, log-sum-exponential (Eq. 20).
        r: Sharpness of ``lse``, ``gm`` and ``lse_score``, at least 1; the paper does not say which it took.
        rounds: T, stumps a group.
        clustered: The first rounds, in which stumps of a group are chosen by one cluster of the positives (k-means of
            the instances of positive bags), their steps by the likelihood as ever. 0 starts all groups alike.
        whitened: Share of the variance of all instances, in [0, 1), that the principal components hold in which
            clusters are looked for, all of the same spread. So kinds of positives are found that differ in directions
            of little variance, at the cost of a decomposition, F^2 (N + F). 0 takes the features, in units of their
            spread.
        real: Stumps say half the log odds of the weights on their sides, instead of -1 and 1.
        cut: What the cut of a real stump is best at: ``error``, the weighted error, as a discrete stump's (Fig. 6), or
            ``bound``, sqrt(W+ W-) summed over its sides (Schapire & Singer 1999).
        features: Share of the features that a stump tries, in (0, 1]; less than 1 draws them anew for each.
        shrinkage: Factor of every step of the line search, in (0, 1].
        max_step: The most that one stump may move h; it binds where a stump separates the bags perfectly.
        prior: Weight of positive bags against negative ones, in (0, 1); .5 balances them, None takes the data's.
        apart: Negative bags count as their instances, each known to be negative (Eq. 22).
        validation: Share of the training bags held out to choose the number of rounds, up to ``rounds``, by their
            likelihood; then all bags are boosted so many rounds. 0 holds out none.
        patience: Rounds without a better likelihood of the held-out bags after which the choice is made.
        seed: Seed of what is drawn; None takes the run's.
        threads: Threads that look for a stump; None takes torch's. The result does not depend on it.
    """

    def __init__(
        self,
        groups: int = 3,
        pooling: Pooling = "lse",
        r: float = 5.0,
        rounds: int = 64,
        clustered: int = 5,
        whitened: float = 0.0,
        real: bool = True,
        cut: Cut = "bound",
        features: float = 1.0,
        shrinkage: float = 1.0,
        max_step: float = 4.0,
        prior: float | None = None,
        apart: bool = False,
        validation: float = 0.0,
        patience: int = 20,
        seed: int | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__()
        self.groups = groups
        self.pooling = pooling
        self.r = r
        self.rounds = rounds
        self.clustered = clustered
        self.whitened = whitened
        self.real = real
        self.cut = cut
        self.features = features
        self.shrinkage = shrinkage
        self.max_step = max_step
        self.prior = prior
        self.apart = apart
        self.validation = validation
        self.patience = patience
        self.seed = seed
        self.threads = threads

    @property
    def num_groups(self) -> int:
        """K."""
        return self.groups

    @property
    def clustering(self) -> tuple[int, float]:
        """Rounds in which groups learn from their clusters alone, and the share of variance that is whitened."""
        return self.clustered, self.whitened
