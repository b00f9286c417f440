"""Boosted trees: gains, steps, sampling, missing values, early stopping."""

from __future__ import annotations

import pytest
import torch
from fakes.trees import check_comes_back, check_importances, problem
from torch import Tensor

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.heads import BoostedTrees
from ldl.labels import LabelSpace
from ldl.methods.forest.boosting import Loss
from ldl.methods.forest.predict import add_by_gathers
from ldl.methods.rows import Rows
from ldl.metrics.functional import kl
from ldl.testing import check_head

LABELS = LabelSpace.nominal(["a", "b", "c", "d"])
NAN = float("nan")


def fitted(rows: Tensor, target: Tensor, group: Tensor | None = None, /, **arguments: object) -> BoostedTrees:
    head = BoostedTrees(**{"rounds": 30, "learning_rate": 0.2, "seed": 3, "threads": 1, **arguments})  # type: ignore[arg-type]
    head.build(rows.shape[1], LabelSpace.nominal([str(c) for c in range(target.shape[1])]))
    head.fit(Rows(rows, target, group=group), Collective())
    return head.eval()


def loss(head: BoostedTrees, features: Tensor, target: Tensor) -> float:
    return float(kl(head(features), target).mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [{"depth": 4}, {"trees": "label", "search": "histogram", "leaves": 5, "patience": None}],
    ids=["vector", "label"],
)
def test_contract(arguments: dict[str, object]) -> None:
    check_head(lambda: BoostedTrees(**{"rounds": 15, "learning_rate": 0.3, **arguments}))  # type: ignore[arg-type]


@pytest.mark.parametrize("trees", ["vector", "label"])
def test_the_training_loss_falls_round_by_round(trees: str) -> None:
    features, target = problem(missing=0.1)
    plain = {"patience": None, "sampling": 1.0, "features": 1.0, "trees": trees}
    losses = [loss(fitted(features, target, rounds=rounds, **plain), features, target) for rounds in (1, 3, 10, 30)]
    constant = float(kl(target.mean(0), target).mean())
    assert constant > losses[0] > losses[1] > losses[2] > losses[3]


def test_the_first_tree_is_a_newton_step_from_the_mean() -> None:
    features, target = problem()
    head = fitted(features, target, rounds=1, depth=0, patience=None)
    torch.testing.assert_close(head(features), target.mean(0).expand(300, -1))
    assert head.summary() == {"rounds": 0}
    stump = fitted(features, target, rounds=1, depth=1, patience=None, sampling=1.0, features=1.0, l2=0.3)
    left = features[:, int(stump.feature[0])] <= stump.threshold[0]
    p = target.mean(0)
    for side, leaf in ((left, 0), (~left, 1)):
        step = -(p - target[side]).sum(0) / (side.sum() * p * (1 - p) + 0.3) * 0.2
        torch.testing.assert_close(stump.values[stump.child[1 + leaf]], step, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(stump(features[side])[0], (p.log() + step).softmax(-1))


def test_gathers_reach_what_numba_reaches() -> None:
    features, target = problem(missing=0.2)
    for trees in ("vector", "label"):
        head = fitted(features, target, trees=trees)
        scores = head.start.repeat(300, 1)
        add_by_gathers(features, head.forest, scores, 10)
        torch.testing.assert_close(scores.softmax(-1), head(features), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("trees", "search", "threads"),
    [("vector", "histogram", 3), ("vector", "random", 3), ("label", "histogram", 3), ("label", "random", 5)],
)
def test_threads_change_nothing(trees: str, search: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three threads share the four labels of trees of one label each; otherwise threads share the features."""
    for constant in ("boosted_tree.ADDITIONS_WORTH_THREADS", "boosting.DERIVATIVES_WORTH_THREADS"):
        monkeypatch.setattr(f"ldl.methods.forest.{constant}", 0)
    features, target = problem(missing=0.1)
    assert target.shape[1] == 4
    plain = {"trees": trees, "search": search, "rounds": 6, "patience": 3, "depth": 5}
    one, several = (fitted(features, target, threads=count, **plain) for count in (1, threads))
    assert all(torch.equal(tensor, several.state_dict()[name]) for name, tensor in one.state_dict().items())
    many = features.repeat(20, 1)
    assert torch.equal(one(many), several(many))


def test_seeds_change_the_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    features, target = problem()
    plain = {"rounds": 3, "patience": None}
    known = fitted(features, target, **plain)(features)
    assert not torch.equal(fitted(features, target, seed=4, **plain)(features), known)
    monkeypatch.setenv("PL_GLOBAL_SEED", "3")
    assert torch.equal(fitted(features, target, seed=None, **plain)(features), known)


def test_a_loaded_head_predicts_the_same_and_half_precision_keeps_the_trees() -> None:
    features, target = problem(missing=0.1)
    head = fitted(features, target, rounds=5, patience=2)
    check_comes_back(head, BoostedTrees(), features)
    rounded = features.bfloat16()
    expected = head(rounded.float())
    assert torch.equal(head.bfloat16()(rounded), expected)


def test_importances_name_the_features_that_matter() -> None:
    features, target = problem()
    check_importances(fitted(features, target, min_leaf=10))


def test_early_stopping_ends_before_it_fits_noise() -> None:
    features, target = problem()
    noise = target[torch.randperm(300, generator=torch.Generator().manual_seed(1))]
    stopped = fitted(features, noise, rounds=200, patience=10)
    new = problem(rows=300)[1].roll(7, 0)
    assert stopped.summary()["rounds"] < 40
    assert loss(stopped, features, new) < loss(fitted(features, noise, rounds=200, patience=None), features, new) / 1.2


def test_early_stopping_uses_its_own_rows_and_whole_groups() -> None:
    features, target = problem()
    group = torch.arange(300) // 30
    head = fitted(features, target, group, patience=5, refit=False, validation=0.3)
    train, watched = head._hold_out(Rows(features, target, group=group))
    assert len(watched) == 90 and not set(group[train].tolist()) & set(group[watched].tolist())
    # Nothing but the stop depends on the watched rows: with all rounds the trees are those of the other rows.
    changed = features.clone(), target.clone()
    changed[0][watched], changed[1][watched] = 99.0, torch.tensor([0.0, 0, 0, 1])
    patient = {"rounds": 5, "patience": 50, "validation": 0.3}
    kept = fitted(features[train], target[train], rounds=5, patience=None)
    other = fitted(features, target, group, refit=False, **patient)
    assert len(other.roots) == 5 and torch.equal(other.values, kept.values)
    best = loss(other, features[watched], target[watched])
    assert float(other.validation_loss) == pytest.approx(best, rel=1e-4)
    refitted = fitted(features, target, group, **patient)
    assert torch.equal(refitted.values, fitted(features, target, rounds=5, patience=None).values)
    assert len(fitted(*changed, group, refit=False, **patient).roots) < 5


def pairs(rows: int) -> tuple[Tensor, Tensor]:
    """Whether the signs of two features agree says all: no split by one of them gains."""
    features = torch.randn(rows, 2, generator=torch.Generator().manual_seed(2))
    agree = (features.prod(1) > 0).float()
    return features, 0.8 * torch.stack([agree, 1 - agree], 1) + 0.1


def test_the_depth_is_that_of_the_lowest_loss_of_the_watched_rows() -> None:
    """Where features matter together trees are deep, where each matters alone they are shallow."""
    plain = {"rounds": 40, "patience": 10, "depth": None, "seed": 0}
    for features, target in (pairs(600), problem()):
        each = {depth: fitted(features, target, **{**plain, "depth": depth}) for depth in (2, 4, 10)}
        best = min(each, key=lambda depth: float(each[depth].validation_loss))
        chosen = fitted(features, target, **plain)
        assert torch.equal(chosen.validation_loss, each[best].validation_loss)
        assert torch.equal(chosen(features), each[best](features))
        assert best == (2 if features.shape[1] == 7 else 10)
    features, target = problem()
    assert torch.equal(
        fitted(features, target, patience=None, depth=None)(features),
        fitted(features, target, patience=None, depth=4)(features),
    )


def test_few_features_are_all_tried_and_of_many_a_share() -> None:
    def share(width: int, features: float | None = None) -> float:
        head = BoostedTrees(features=features, threads=1)
        head.build(width, LABELS)
        return head._plan(4).features

    assert [share(width) for width in (1, 7, 100)] == [1, 1, 1]
    assert share(200) == 0.5 and share(1000) == 0.3 and share(7, 0.2) == 0.2


def test_random_cuts_are_trees_of_their_own() -> None:
    features, target = problem(missing=0.1)
    best, random = (fitted(features, target, search=search, patience=None) for search in ("histogram", "random"))
    assert loss(best, features, target) < loss(random, features, target) < float(kl(target.mean(0), target).mean()) / 2
    assert not torch.equal(random(features), fitted(features, target, patience=None, seed=4)(features))
    label = fitted(features, target, trees="label", patience=None, rounds=1, depth=1, sampling=1.0)
    assert len(set(label.threshold[label.feature >= 0].tolist())) == 4


def test_a_round_whose_draws_leave_no_split_does_not_end_boosting() -> None:
    """Of random cuts that all leave too few rows, and of features drawn that are all constant."""
    generator = torch.Generator().manual_seed(4)
    features = torch.randn(60, 1, generator=generator)
    target = torch.stack([features[:, 0].sigmoid(), 1 - features[:, 0].sigmoid()], 1)
    head = fitted(features, target, rounds=30, min_leaf=20, patience=None, sampling=1.0)
    assert head.summary()["rounds"] == 30
    assert all(head.feature[head.roots.long()] == 0)
    wide = torch.cat([features, torch.ones(60, 399)], 1)
    assert fitted(wide, target, search="histogram", depth=1, patience=None).summary()["rounds"] == 30


def test_missing_values_say_something() -> None:
    """A feature whose value says nothing, and whose absence all: only a direction of its own can learn that."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(400, 2, generator=generator)
    absent = torch.rand(400, generator=generator) < 0.4
    features[absent, 0] = NAN
    target = torch.where(absent[:, None], torch.tensor([0.8, 0.2]), torch.tensor([0.1, 0.9]))
    head = fitted(features, target, rounds=100)
    assert loss(head, features, target) < 0.01
    assert loss(head, torch.tensor([[NAN, NAN], [3.0, NAN]]), torch.tensor([[0.8, 0.2], [0.1, 0.9]])) < 0.01


def test_nothing_to_split_by_gives_the_mean() -> None:
    features, target = problem()
    for constant in (torch.ones_like(features), torch.full_like(features, NAN)):
        head = fitted(constant, target)
        torch.testing.assert_close(head(features), target.mean(0).expand(300, -1))
        assert head.summary()["rounds"] == 0 and not head.importances.any()
    one = fitted(features, torch.ones(300, 1))
    assert torch.equal(one(features), torch.ones(300, 1))
    assert torch.allclose(fitted(features[:1], target[:1], patience=None)(features), target[:1].expand(300, -1))


def test_what_cannot_be_fitted_is_refused() -> None:
    features, target = problem()
    with pytest.raises(LDLError, match="BoostedTrees.objective 'cdf' needs labels in an order, and these are nominal"):
        fitted(features, target, objective="cdf")
    with pytest.raises(LDLError, match=r"validation 0.2 of 2 training rows leaves none .*patience null"):
        fitted(features[:2], target[:2])
    with pytest.raises(LDLError, match=r"validation 0.2 of 1 training groups leaves none"):
        fitted(features, target, torch.zeros(300, dtype=torch.long))
    features[5, 2] = torch.inf
    with pytest.raises(LDLError, match="BoostedTrees cannot take inf: training row 5, feature 2"):
        fitted(features, target)


def test_damaged_trees_are_refused() -> None:
    head = fitted(*problem(), rounds=3, patience=None)
    state = head.state_dict()
    changes: list[tuple[str, Tensor, str]] = [
        ("values", state["values"][:, :2], "values"), ("missing_left", state["missing_left"].int(), "missing_left")
    ]  # fmt: skip
    for name, place, value, said in (
        ("child", 0, 0, "child makes no trees"),
        ("feature", 0, 7, "feature holds 7"),
        ("roots", 1, 2**30, "roots holds"),
        ("threshold", 0, NAN, "threshold holds nan, not a number or infinity"),
        ("values", 0, NAN, "values holds nan"),
        ("start", 0, torch.inf, "start holds inf"),
    ):
        changed = state[name].clone()
        changed[place] = value
        changes.append((name, changed, said))
    for name, changed, said in changes:
        other = BoostedTrees()
        other.build(7, head.labels)
        with pytest.raises(LDLError, match=said):
            other.load_state_dict({**state, name: changed})


@pytest.mark.parametrize(("objective", "refit"), [("kl", True), ("cdf", False)])
def test_of_noise_the_mean_remains(objective: Loss, refit: bool) -> None:
    features, target = problem()
    noise = target[torch.randperm(300, generator=torch.Generator().manual_seed(8))]
    head = BoostedTrees(rounds=60, patience=5, learning_rate=0.5, seed=3, threads=1, objective=objective, refit=refit)
    head.build(7, LabelSpace.ordinal(range(4)))
    head.fit(Rows(features, noise), Collective())
    train, watched = head._hold_out(Rows(features, target))
    mean = noise[train].mean(0)
    torch.testing.assert_close(head(features), (noise.mean(0) if refit else mean).expand(300, -1))
    far = (mean.cumsum(0) - noise[watched].cumsum(1)).square().sum(1)
    start = float((far if objective == "cdf" else kl(mean, noise[watched])).mean())
    assert head.summary() == {"rounds": 0, "validation_loss": pytest.approx(start, rel=1e-5)}
