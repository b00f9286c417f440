"""Boosting from bags of instances (Babenko et al. 2008, Section 2.4)."""

from __future__ import annotations

from ldl.heads.boosted import BoostedBags
from ldl.options import options


@options
class MILBoost(BoostedBags):
    """MIL-Boost: a bag is positive if one of its instances is, and which one nobody says.

    An instance has the probability sigmoid(2 h), h a sum of decision stumps; that of a bag is a soft maximum over its
    instances. Every round follows the gradient of the negative log likelihood of the bags in the space of functions:
    the weights of the instances are its negative (Eq. 15), a stump is chosen by them (Fig. 6), a line search finds its
    step. Beyond the paper h begins at the constant of greatest likelihood, without which noisy or and ISR begin at
    p = 1 for large bags, where there is no gradient.

    It takes bags (..., J, F), missing instances NaN; single rows are bags of one.
    ``instances`` gives the probabilities of instances, ``scores`` their h.
    """
