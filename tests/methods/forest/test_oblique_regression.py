"""The node of an oblique tree that regresses (Eq. 10), against weighted least squares by numpy."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.methods.forest.directions import regress
from ldl.methods.forest.draws import bootstrap
from ldl.methods.forest.oblique import ObliqueRules, Truth, grow_oblique


def least_squares(rows: np.ndarray, values: np.ndarray, costs: np.ndarray, penalty: float) -> np.ndarray:
    """Weights and intercept (D + 1,) of rows (n, D)."""
    root, width = np.sqrt(costs)[:, None], rows.shape[1]
    # One more row for each weight, none for the intercept.
    design = np.vstack([np.hstack([rows, np.ones((len(rows), 1))]) * root, np.eye(width, width + 1) / np.sqrt(penalty)])
    return np.linalg.lstsq(design, np.concatenate([values * root[:, 0], np.zeros(width)]))[0]


@pytest.mark.parametrize("width", [3, 40])
@pytest.mark.parametrize("known", [False, True])
def test_ridge_is_weighted_least_squares(width: int, known: bool) -> None:
    rng = np.random.default_rng(width)
    rows, values, costs = rng.normal(3, 1, (20, width)), rng.normal(size=20), rng.uniform(0.1, 3, 20)
    weights, bias = regress(rows, values, costs, 0.7, 0.0, rows @ rows.T if known else None)
    np.testing.assert_allclose(np.append(weights, bias), least_squares(rows, values, costs, 0.7), atol=1e-8)


@pytest.mark.parametrize("median", [False, True])
@pytest.mark.parametrize(("count", "width"), [(60, 4), (20, 40)])
def test_a_node_minds_draws_and_rare_labels(count: int, width: int, median: bool) -> None:
    """Of few rows the scalar products are known. One label in five is rare, and its odds are above the cap."""
    rng = np.random.default_rng(width)
    labels = np.arange(count) % 10 // 4
    features, values = rng.normal(size=(count, width)), labels + rng.exponential(size=count)
    truth, rules = Truth(values[:, None], labels, True, True), ObliqueRules(1, 2, width, 1, 0.7, 3.0, 0.0, median)
    (tree,) = grow_oblique(features, truth, rules, range(1), 1.0, True, 0)
    rows, draws = bootstrap(count, 1.0, True, 0, 0)
    drawn = np.repeat(rows, draws)
    share = np.array([(labels[drawn] == label).mean() for label in labels[rows]])
    costs = np.minimum((1 - share) / share, 3.0)
    assert 0 < (costs == 3.0).sum() < len(rows)
    costs *= draws / np.average(costs, weights=draws)
    expected = least_squares(features[rows], values[rows], costs, 0.7)
    np.testing.assert_allclose(tree.weights[0], expected[:-1], atol=1e-8)
    cut = np.median(values[drawn]) if median else values[drawn].mean()
    assert tree.threshold[0] == pytest.approx(cut - expected[-1], abs=1e-8)
