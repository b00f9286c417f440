"""The audit of votes: its power curve, and its lines."""

from __future__ import annotations

import numpy as np
from fakes.simulated_votes import NOMINAL, votes_of_mixture

from ldl.annotations import (
    DirichletMultinomial,
    held_out_nll,
)
from ldl.annotations.summary import power_curve


def test_the_curve_of_an_audit_is_that_of_held_out_items() -> None:
    (counts,) = votes_of_mixture(NOMINAL, 200, 4)
    combiner, curve, items = power_curve(counts)
    assert combiner.size in (2, 3) and items == 200 and len(curve) == 4
    fresh = held_out_nll(votes_of_mixture(NOMINAL, 2000, 4, seed=9)[0], combiner, 3).mean(0)
    np.testing.assert_allclose(curve, fresh, atol=0.05)
    assert curve[1] < held_out_nll(counts, DirichletMultinomial.fit(counts), 3).mean(0)[1] - 0.02
