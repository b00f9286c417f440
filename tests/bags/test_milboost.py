"""MIL-Boost: likelihoods, stumps, validation and groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from fakes.bags import LABELS, fitted, some_bags
from hypothesis import given, settings
from hypothesis import strategies as st

from ldl.bags import MILBoost, MPLBoost
from ldl.bags import boost as stumps
from ldl.bags.layout import pack
from ldl.bags.likelihood import POOLING_CODES
from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.testing import check_head

KINDS = sorted(POOLING_CODES)


def test_contract() -> None:
    check_head(lambda: MILBoost(seed=0))


@settings(deadline=None, max_examples=15)
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
    probability = head.instances(features[200:])
    exists = ~features[200:].isnan().all(-1)
    assert (probability.isnan() == ~exists).all()
    truth = (features[200:, :, 0] > 0.3) & (features[200:, :, 1] > -0.5)
    assert probability[exists & truth].mean() > probability[exists & ~truth].mean() + 0.3


def test_a_seed_gives_one_result_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stumps, "VALUES_PER_THREAD", 1)
    features, target = some_bags(2)
    options: dict[str, Any] = {"features": 0.5, "validation": 0.2, "seed": 5, "rounds": 20}
    heads = [fitted(MPLBoost(**options, threads=threads), features, target) for threads in (1, 3)]
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
    rows = Rows(features, target)
    rest, held = head._hold_out(pack("", rows, None), rows)
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


@pytest.mark.parametrize("pooling", ["lse", "nor"])
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


def test_an_empty_bag_is_negative() -> None:
    features, target = some_bags(5)
    head = fitted(MPLBoost(groups=2, rounds=5), features, target)
    empty = torch.full((1, 5, 4), torch.nan)
    assert head(empty).tolist() == [[1.0, 0.0]]
    assert head.memberships(empty).tolist() == [[0.5, 0.5]]


def test_what_cannot_be_fitted_is_refused() -> None:
    features, target = some_bags(6, 8)
    empty, hole, one_class = features.clone(), features.clone(), torch.eye(2)[[0] * 8]
    empty[3], hole[2, 0, 1] = torch.nan, torch.nan
    for bags, labels, message in (
        (empty, target, "training bag 3 has no instances; leave it out"),
        (features, one_class, "all 8 training bags are negative; both kinds are needed"),
        (hole, target, "MILBoost cannot take nan"),
        (features, 2 * target, "MILBoost cannot take a target of sum 2"),
        (features[:0], target[:0], r"fitted on bags \(B, J, F\)"),
        (features[:, 0], target, r"fitted on bags \(B, J, F\)"),
    ):
        with pytest.raises(LDLError, match=message):
            fitted(MILBoost(), bags, labels)
    with pytest.raises(LDLError, match="needs two labels, the negative one first; the data have 3"):
        MILBoost().build(4, LabelSpace.nominal(list("abc")))


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


def test_groups_are_held_out_whole() -> None:
    features, target = some_bags(3, 60)
    group = torch.arange(60) // 4
    rows = Rows(features, target, group=group)
    rest, held = MILBoost(validation=0.3, seed=0)._hold_out(pack("", rows, None), rows)
    assert len(held) == 16 and sorted([*rest, *held]) == list(range(60))
    assert not set(group[rest].tolist()) & set(group[held].tolist())
    head = MILBoost(validation=0.3, seed=0, patience=5)
    head.build(4, LABELS)
    head.fit(rows, Collective())
    assert head.curve[0, 1].isfinite()
