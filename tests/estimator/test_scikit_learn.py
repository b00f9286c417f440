"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ldl.estimator import LDLRegressor
from ldl.heads import Softmax, StructRF

SIMPLEX = {"check_regressor_multioutput": "its five targets a row are any numbers; several columns are a distribution"}
DRAWN = {
    "check_sample_weight_equivalence_on_dense_data": "a row of weight k is k rows, but fits draw rows by their number: "
    "batches, and what a tree sees; as scikit-learn's own forests"
}
FOREST = LDLRegressor(StructRF(trees=3, sampling=1.0, replace=False))
SLOW = [LDLRegressor(), LDLRegressor(Softmax(), epochs=10, batch_size=256, lr=0.3)]


@parametrize_with_checks([FOREST], expected_failed_checks=lambda estimator: SIMPLEX)
@pytest.mark.filterwarnings("ignore")  # of the checks themselves
def test_checks(estimator: LDLRegressor, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(SLOW, expected_failed_checks=lambda estimator: SIMPLEX | DRAWN)
@pytest.mark.filterwarnings("ignore")  # of the checks themselves
def test_checks_of_other_heads(estimator: LDLRegressor, check: Callable[[Any], None]) -> None:
    check(estimator)
