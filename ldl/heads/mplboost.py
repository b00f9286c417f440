"""Boosting of several groups at once (Babenko et al. 2008, Sections 2.3 and 2.5)."""

from __future__ import annotations

from ldl.heads.milboost import MILBoost
from ldl.options import option, options


@options
class MPLBoost(MILBoost):
    """MPL-Boost: positives fall into K groups that nobody names; each gets a classifier of its own.

    An instance has K probabilities sigmoid(2 h^k); that of a bag is a soft maximum over groups and instances at once
    (Eq. 18 and 19), over the groups alone where bags are single rows. Rounds go through the groups in turn, each stump
    chosen for one h^k while the others stay (Fig. 5). See :class:`ldl.heads.milboost.MILBoost` for the rest.

    It takes bags (..., J, F), missing instances NaN; single rows are bags of one.
    ``memberships`` gives the shares of the groups in a bag, ``scores`` h of every instance and group.

    Args:
        groups: K.
        clustered: The first rounds, in which stumps of a group are chosen by one cluster of the positives (k-means of
            the instances of positive bags), their steps by the likelihood as ever. 0 starts all groups alike.
        whitened: Share of the variance of all instances, in [0, 1), that the principal components hold in which
            clusters are looked for, all of the same spread. So kinds of positives are found that differ in directions
            of little variance, at the cost of a decomposition, F^2 (N + F). 0 takes the features, in units of their
            spread.
    """

    groups: int = option(default=3, least=1, most=1000)
    clustered: int = option(default=5, least=0)
    whitened: float = option(default=0.0, least=0, below=1, what="a share of the variance")
