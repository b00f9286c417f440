"""MILBoost and MPLBoost: against boosting written out, their rules at the edges, and what they find."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from some_bags import LABELS, fitted, some_bags
from torch import Tensor

from ldl.errors import LDLError
from ldl.heads import MILBoost, MPLBoost
from ldl.labels import LabelSpace
from ldl.methods.boosting import stumps
from ldl.methods.boosting.likelihood import CODES
from ldl.methods.boosting.packing import pack
from ldl.testing import check_head

KINDS = sorted(CODES)


@pytest.mark.parametrize("pooling", KINDS)
def test_contract(pooling: Any) -> None:
    check_head(lambda: MILBoost(pooling, seed=0))


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 2**31), st.sampled_from(KINDS), st.sampled_from([1.0, 5.0, 100.0]), st.booleans(), st.booleans(),
    st.integers(1, 3), st.sampled_from([1.0, 0.3]), st.sampled_from([None, 0.2, 0.5]),
    st.sampled_from(["error", "bound"]), st.sampled_from([0.0, 0.9]),
)  # fmt: skip
def test_the_likelihood_never_falls(
    seed: int,
    pooling: Any,
    r: float,
    real: bool,
    apart: bool,
    groups: int,
    features: float,
    prior: float | None,
    cut: Any,
    whitened: float,
) -> None:
    rows, target = some_bags(seed % 1000, 25)
    options: dict[str, Any] = {
        "real": real,
        "apart": apart,
        "features": features,
        "prior": prior,
        "seed": seed,
        "cut": cut,
        "whitened": whitened,
    }
    head = fitted(
        MPLBoost(groups=groups, pooling=pooling, r=r, rounds=12, shrinkage=0.5 + features / 2, **options), rows, target
    )
    curve = head.curve[:, 0]
    assert len(curve) > 1 and curve.isfinite().all()
    assert (curve[1:] <= curve[:-1]).all() and curve[-1] < curve[0]


def _boost_by_hand(rows: np.ndarray, label: np.ndarray, rounds: int) -> np.ndarray:
    """Discrete boosting of the log likelihood of single rows (Fig. 3), steps by bisection; h of the rows."""
    h = np.full(len(rows), np.log(label.mean() / (1 - label.mean())) / 2)
    for _ in range(rounds):
        p = 1 / (1 + np.exp(-2 * h))
        weights = np.where(label == 1, 2 * (1 - p), -2 * p)
        best = (-1.0, np.zeros(len(rows)))
        for feature in range(rows.shape[1]):
            values = np.unique(rows[:, feature])
            for low, high in zip(values, values[1:]):
                says = np.where(rows[:, feature] > (low + high) / 2, 1.0, -1.0)
                edge = (weights * says).sum()
                best = max(best, (abs(edge), says * np.sign(edge)), key=lambda item: item[0])
        low, high = 0.0, 4.0
        for _ in range(60):
            step = (low + high) / 2
            p = 1 / (1 + np.exp(-2 * (h + step * best[1])))
            rising = ((label - p) * best[1]).sum() > 0
            low, high = (step, high) if rising else (low, step)
        h = h + low * best[1]
    return h


def test_single_rows_are_boosted_as_figure_3_says() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 3)).astype(np.float32)
    label = (rows.sum(1) + rng.normal(size=80) > 0).astype(int)
    features = torch.from_numpy(rows)[:, None]
    head = fitted(MILBoost(real=False, rounds=15), features, torch.eye(2)[torch.from_numpy(label)])
    np.testing.assert_allclose(head.scores(features)[:, 0, 0], _boost_by_hand(rows, label, 15), atol=0.01)


@pytest.mark.parametrize("pooling", KINDS)
def test_instances_are_found_from_bags(pooling: Any) -> None:
    features, target = some_bags(0, 400)
    head = fitted(MILBoost(pooling, 20.0, seed=0), features[:200], target[:200])
    right = head(features[200:]).argmax(1) == target[200:].argmax(1)
    assert right.float().mean() > 0.85
    found = head.instances(features[200:])
    exists = ~features[200:].isnan().all(-1)
    assert (found.isnan() == ~exists).all()
    truth = (features[200:, :, 0] > 0.3) & (features[200:, :, 1] > -0.5)
    assert found[exists & truth].mean() > found[exists & ~truth].mean() + 0.3


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", [MILBoost, MPLBoost])
def test_a_seed_gives_one_result(kind: Any, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stumps, "SHARE", 1)
    features, target = some_bags(2)
    heads = [fitted(kind(features=0.5, validation=0.2, seed=5, threads=t), features, target) for t in (1, threads)]
    for one, other in zip(*(head.state_dict().values() for head in heads)):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def test_held_out_bags_choose_the_rounds() -> None:
    """Labels of noise: every round fits it closer, and the bags that are held out want none of it."""
    features, _ = some_bags(3)
    target = torch.eye(2)[torch.randint(2, (60,), generator=torch.Generator().manual_seed(0))]
    head = fitted(MILBoost(validation=0.3, patience=5, seed=0), features, target)
    assert len(head.feature) < 5
    assert len(fitted(MILBoost(seed=0), features, target).feature) > 20
    assert {"held_out_nll", "boosting_nll", "stumps"} == set(head.summary())


def test_the_rounds_are_those_of_the_least_loss_of_the_bags_that_are_held_out() -> None:
    features, target = some_bags(3, 100)
    target[::12] = target[::12].flip(1)
    head = fitted(MILBoost(rounds=12, validation=0.3, seed=0), features, target)
    rest, held = head._hold_out(pack("", features, target, None))
    losses = []
    for rounds in range(13):
        trial = fitted(MILBoost(rounds=rounds, seed=0), features[rest], target[rest])
        losses.append(-float((trial(features[held]) * target[held]).sum(1).log().mean()))
    best = int(np.argmin(losses))
    assert 0 < best < 12 and len(head.feature) == best
    np.testing.assert_allclose(head.curve[:, 1], losses[: best + 1], rtol=1e-4)


def test_a_prior_weighs_classes_as_copies_would() -> None:
    features, target = some_bags(4, 40)
    positive = target[:, 1] > 0
    copies = [features[positive]] * 3 + [features[~positive]]
    labels = [target[positive]] * 3 + [target[~positive]]
    share = float(3 * positive.sum() / (3 * positive.sum() + (~positive).sum()))
    weighted = fitted(MILBoost(prior=share, rounds=10, real=False), features, target)
    copied = fitted(MILBoost(rounds=10, real=False), torch.cat(copies), torch.cat(labels))
    torch.testing.assert_close(weighted.curve[:5, 0], copied.curve[:5, 0], rtol=1e-3, atol=1e-3)
    assert weighted(features)[:, 1].mean() > fitted(MILBoost(rounds=10), features, target)(features)[:, 1].mean()


@pytest.mark.parametrize("pooling", KINDS)
def test_perfect_separation_has_an_end(pooling: Any) -> None:
    features = torch.tensor([[[-1.0], [-2.0]], [[-1.5], [3.0]], [[2.0], [4.0]], [[-3.0], [-1.0]]])
    head = fitted(MILBoost(pooling, rounds=200), features, torch.eye(2)[torch.tensor([0, 1, 1, 0])])
    assert (head.scores(features).abs() <= 20 + 4 * len(head.feature)).all()
    assert head.curve.isfinite()[:, 0].all()
    assert head(features).argmax(1).tolist() == [0, 1, 1, 0]


def test_no_stump_moves_h_by_more_than_max_step() -> None:
    """Of rows that one cut separates it would: half the log odds of its sides are 3."""
    features = torch.linspace(-1, 1, 200).reshape(200, 1, 1)
    head = fitted(MILBoost(rounds=3, max_step=0.5), features, torch.eye(2)[(features > 0).flatten().long()])
    for outputs in (head.low, head.high):
        assert float(outputs.abs().max()) == pytest.approx(0.5)


def test_half_precision_sends_no_instance_elsewhere() -> None:
    features, target = some_bags(9, 400)
    head = fitted(MILBoost(rounds=20), features, target)
    expected = head(features)
    half = head.bfloat16()(features)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, expected, atol=0.05, rtol=0)


@pytest.mark.parametrize("pooling", KINDS)
def test_an_empty_bag_is_negative(pooling: Any) -> None:
    features, target = some_bags(5)
    head = fitted(MPLBoost(groups=2, pooling=pooling, rounds=5), features, target)
    empty = torch.full((1, 5, 4), torch.nan)
    assert head(empty).tolist() == [[1.0, 0.0]]
    assert head.memberships(empty).tolist() == [[0.5, 0.5]]


def test_features_that_do_not_vary_leave_the_share_of_positives() -> None:
    features, target = torch.zeros(10, 2, 3), torch.eye(2)[torch.tensor([0] * 7 + [1] * 3)]
    head = fitted(MILBoost(), features, target)
    assert len(head.feature) == 0
    torch.testing.assert_close(head(features)[:, 1], torch.full((10,), 0.3), atol=1e-3, rtol=0)


def _spoilt(kind: str) -> tuple[Tensor, Tensor]:
    features, target = some_bags(6, 8)
    if kind == "empty bag":
        features[3] = torch.nan
    elif kind == "one class":
        target[:] = torch.tensor([1.0, 0.0])
    elif kind == "hole":
        features[2, 0, 1] = torch.nan
    elif kind == "infinite":
        features[2, 0, 1] = torch.inf
    elif kind == "no classes":
        target[2] = torch.tensor([-1.0, 2.0])
    elif kind == "unknown class":
        target[2] = torch.nan
    elif kind == "no bags":
        features, target = features[:0], target[:0]
    else:
        features = features[:, 0]
    return features, target


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("empty bag", "training bag 3 has no instances; leave it out"),
        ("one class", "all 8 training bags are negative; both kinds are needed"),
        ("hole", "MILBoost cannot take nan"),
        ("infinite", "MILBoost cannot take inf"),
        ("no classes", "MILBoost cannot take a target of sum 1, least -1: training row 2"),
        ("unknown class", "MILBoost cannot take a target of sum nan, least nan: training row 2"),
        ("no bags", r"fitted on bags \(B, J, F\)"),
        ("single rows", r"fitted on bags \(B, J, F\)"),
    ],
)
def test_what_cannot_be_fitted_is_refused(kind: str, message: str) -> None:
    features, target = _spoilt(kind)
    with pytest.raises(LDLError, match=message):
        fitted(MILBoost(), features, target)


def test_a_hole_that_a_stump_asks_for_is_refused() -> None:
    features, target = some_bags(7)
    head = fitted(MILBoost(rounds=5), features, target)
    features[0, 0] = torch.tensor([torch.nan, torch.nan, torch.nan, 0.0])
    with pytest.raises(LDLError, match="a feature that is NaN"):
        head(features)


def test_too_few_bags_to_hold_out_are_refused() -> None:
    features, target = some_bags(8, 3)
    with pytest.raises(LDLError, match=r"MILBoost.validation 0.5 of 3 bags"):
        fitted(MILBoost(validation=0.5), features, torch.eye(2)[torch.tensor([0, 0, 1])])
    features, target = some_bags(8, 30)
    few = torch.eye(2)[(torch.arange(30) < 2).long()]
    with pytest.raises(LDLError, match=r"0.1 of 30 bags, of which 2 are positive, leaves a part with bags of one kind"):
        fitted(MILBoost(validation=0.1), features, few)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "mean"}, "MPLBoost.pooling 'mean' must be one of"),
        ({"r": 0.0}, "MPLBoost.r 0.0 must be at least 1"),
        ({"cut": "gini"}, "MPLBoost.cut 'gini' must be one of error, bound"),
        ({"clustered": -1}, "MPLBoost.clustered -1 must be at least 0"),
        ({"whitened": 1.0}, r"MPLBoost.whitened 1.0 must be in \[0, 1\)"),
        ({"groups": 0}, "MPLBoost.groups 0 must be in 1..1000"),
        ({"rounds": -1}, "MPLBoost.rounds -1 must be in 0..1000000"),
        ({"features": 0.0}, r"MPLBoost.features 0.0 must be in \(0, 1\]"),
        ({"shrinkage": 2.0}, r"MPLBoost.shrinkage 2.0 must be in \(0, 1\]"),
        ({"max_step": 0.0}, "MPLBoost.max_step 0.0 must be above 0"),
        ({"prior": 1.0}, r"MPLBoost.prior 1.0 must be in \(0, 1\)"),
        ({"validation": 1.0}, r"MPLBoost.validation 1.0 must be in \[0, 1\)"),
        ({"patience": 0}, "MPLBoost.patience 0 must be at least 1"),
        ({"seed": -1}, "MPLBoost.seed -1 must be in"),
        ({"threads": 0}, "MPLBoost.threads 0 must be in 1..1024"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        MPLBoost(**options).build(4, LABELS)


def test_more_labels_are_refused() -> None:
    with pytest.raises(LDLError, match="needs two labels, the negative one first; the data have 3"):
        MILBoost().build(4, LabelSpace.nominal(list("abc")))
