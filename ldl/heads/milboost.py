"""Boosting from bags of instances (Babenko et al. 2008, Section 2.4)."""

from __future__ import annotations

from ldl.heads.boosted import BoostedBags
from ldl.methods.boosting.pooling import Pooling
from ldl.methods.boosting.stumps import Cut


class MILBoost(BoostedBags):
    """MIL-Boost: a bag is positive if one of its instances is, and which one nobody says.

    An instance has the probability sigmoid(2 h), h a sum of decision stumps; that of a bag is a soft maximum over its
    instances. Every round follows the gradient of the negative log likelihood of the bags in the space of functions:
    the weights of the instances are its negative (Eq. 15), a stump is chosen by them (Fig. 6), a line search finds its
    step. Beyond the paper h begins at the constant of greatest likelihood, without which noisy or and ISR begin at
    p = 1 for large bags, where there is no gradient.

    It takes bags (..., J, F), missing instances NaN; single rows are bags of one.
    ``instances`` gives the probabilities of instances, ``scores`` their h.

    Args:
        pooling: Soft maximum over the instances. Of probabilities (Table 1): ``lse`` log-sum-exponential, ``gm``
            generalised mean, ``nor`` noisy or, ``isr``; of h: ``lse_score``, log-sum-exponential (Eq. 20).
        r: Sharpness of ``lse``, ``gm`` and ``lse_score``, at least 1; the paper does not say which it took.
        rounds: T, stumps.
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
        pooling: Pooling = "lse",
        r: float = 5.0,
        rounds: int = 64,
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
        self.pooling = pooling
        self.r = r
        self.rounds = rounds
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
