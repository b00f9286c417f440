"""Options of heads as parameters of the estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import ldl.heads
from ldl.bags import Bagged, MILBoost
from ldl.edges import StructuredEdges
from ldl.errors import LDLError
from ldl.estimator import LDLRegressor
from ldl.head import ImageHead
from ldl.heads import LDLF, Pool, Softmax, StructRF, Trained
from ldl.labels import LabelSpace
from ldl.spec import to_spec


def test_options_are_parameters_also_of_heads_in_heads() -> None:
    estimator = LDLRegressor(Trained(LDLF(depth=4), epochs=7))
    deep = estimator.get_params()
    assert deep["head__epochs"] == 7 and deep["head__head__depth"] == 4 and deep["epochs"] == 60
    assert not any("__" in name for name in estimator.get_params(deep=False))
    changed = clone(estimator).set_params(head__head__depth=3, head__lr=0.1, lr=0.2)
    assert changed.get_params()["head__head__depth"] == 3 and (changed.head.lr, changed.lr) == (0.1, 0.2)
    assert estimator.get_params()["head__head__depth"] == 4 and changed.head.epochs == 7


@pytest.mark.parametrize("head", [StructRF(trees=3), Trained(LDLF()), Pool([Trained(Softmax()), StructRF()]), "AAKNN"])
def test_all_parameters_can_be_set_again(head: Any) -> None:
    estimator = LDLRegressor(head)
    again = clone(estimator).set_params(**estimator.get_params())
    assert to_spec(again.head) == to_spec(estimator.head if not isinstance(head, str) else again.head)
    assert again.get_params().keys() == estimator.get_params().keys()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"head__dept": 3}, "StructRF has no option 'dept'; did you mean 'depth'?; it has trees,"),
        ({"head__depth__x": 3}, "StructRF has no option 'depth__x'"),
        ({"deph": 3}, "Invalid parameter 'deph' for estimator LDLRegressor"),
    ],
)
def test_unknown_options_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("?", r"\?")):
        LDLRegressor("StructRF").set_params(**change)


ROWS = sorted(
    name
    for name in ldl.heads.__all__
    if not issubclass(cls := getattr(ldl.heads, name), ImageHead) and not cls.takes_bags
)
"""Heads that take rows."""


@pytest.mark.slow
@pytest.mark.parametrize("head", ROWS)
def test_every_head_that_takes_rows_is_fitted_by_name(head: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    odds = np.exp(X @ rng.normal(size=(3, 3)))
    D = odds / odds.sum(1, keepdims=True)
    estimator = LDLRegressor(head, labels=LabelSpace.ordinal([1, 2, 3]), epochs=2).fit(X, D)
    assert type(estimator.predictor_.task.head).__name__ == head
    found = estimator.predict(X[:4])
    assert (found >= 0).all() and np.abs(found.sum(1) - 1).max() < 1e-5
    assert np.isfinite(estimator.predict_value(X[:4])).all()


def built() -> Softmax:
    head = Softmax()
    head.build(3, LabelSpace.nominal(["a", "b", "c"]))
    return head


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("StructRf", "head 'StructRf' must be one of .*; did you mean 'StructRF'"),
        (3, r"head 3 must be a head, such as StructRF\(trees=100\), or the name of one"),
        (StructuredEdges(), "head StructuredEdges takes images, and X has rows"),
        (MILBoost(), "head MILBoost takes bags, and X has rows"),
        (Bagged(), "head Bagged takes bags, and X has rows"),
        (built(), "head Softmax is built already"),
        (StructRF(depth=-1), "StructRF.depth -1 must be in 0..64"),
    ],
)
def test_heads_that_take_no_rows_are_refused(head: Any, words: str) -> None:
    with pytest.raises(LDLError, match=words):
        LDLRegressor(head).fit(np.eye(3), np.eye(3))


def test_an_unknown_parameter_is_named_in_one_line() -> None:
    with pytest.raises(LDLError, match=r"give head as an object with trees .*, or call set_params\(head__trees=...\)"):
        LDLRegressor("StructRF", head__trees=50)  # type: ignore[call-arg]
    with pytest.raises(LDLError, match="got an unexpected keyword argument 'scalling'; did you mean 'scaling'"):
        LDLRegressor(scalling="none")  # type: ignore[call-arg]
    assert LDLRegressor("StructRF").set_params(head__trees=50).head.trees == 50  # type: ignore[union-attr]
