"""The model of raters: its loss by its definition, and what it learns from simulated raters."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from fakes.rated_items import LABELS, ORDERED, RatedItems, biased, confused, learn, rate
from torch import Tensor

from ldl.collective import Collective
from ldl.head import Head
from ldl.heads import LDLF, Softmax
from ldl.labels import LabelSpace
from ldl.metrics.functional import kl
from ldl.raters import Raters, RaterTable

RNG = np.random.default_rng(0)


def made(kind: str, items: RatedItems, *strengths: float, labels: LabelSpace = LABELS, head: Head | None = None):
    """A built head, and a model of the raters of items."""
    torch.manual_seed(0)
    head = head or Softmax()
    head.build(3, labels)
    return head, Raters(kind, labels, items.table, strengths or (0.5, 8.0))


def trained(kind: str, items: RatedItems, strength: float = 1.0, labels: LabelSpace = LABELS, steps: int = 150):
    head, raters = made(kind, items, strength, labels=labels)
    learn(head, raters, items, steps)
    return head.eval(), raters


def unlike(raters: Raters, seed: int = 0) -> Raters:
    """Raters with random parameters, all in float64."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in raters.parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data = parameter.data.double() + noise.to(parameter)
    return raters.double()


def reference_loss(log_p: Tensor, raters: Raters, items: RatedItems, weight: Tensor, strength: int) -> Tensor:
    """The definition, vote by vote: weighted mean over items of the mean over votes, with the share of shrinkage."""
    total = torch.zeros((), dtype=torch.float64)
    for row in range(len(items.vote)):
        votes = [(int(r), int(v)) for r, v in zip(items.rater[row], items.vote[row]) if v >= 0]
        for rater, vote in votes:
            theta, share = raters.mean[strength], torch.zeros((), dtype=torch.float64)
            if rater >= 0:
                deviation = raters.deviation[strength, rater]
                theta = theta + deviation
                share = deviation.square().sum() / 2 / int(raters.table.votes[rater])
            rated = raters.transform.apply(log_p[row], theta)[:, vote]
            total = total + weight[row] * (-rated.mean() + raters.strengths[strength] * share) / len(votes)
    return total / weight.sum()


@pytest.mark.parametrize(("kind", "labels"), [("bias", LABELS), ("confusion", LABELS), ("bias", ORDERED)])
def test_loss_and_gradients_are_those_of_the_definition(kind: str, labels: LabelSpace) -> None:
    items = rate(biased(RNG.normal(size=(6, len(labels)))), items=8, each=3, labels=len(labels))
    items.vote[0, 1:], items.rater[1, 0], items.vote[2, 2] = -1, -1, -1
    raters = unlike(made(kind, items, 0.5, 2.0, 8.0, labels=labels)[1])
    log_p = torch.randn(8, 2, len(labels), dtype=torch.float64, generator=torch.Generator().manual_seed(1)).log_softmax(
        -1
    )
    weight = torch.rand(8, dtype=torch.float64) + 0.5
    ours, definition = log_p.clone().requires_grad_(), log_p.clone().requires_grad_()
    found = raters.loss({"log_p": ours}, items.rater, items.vote, weight)["loss"]
    found.backward()
    gradients = [parameter.grad.clone() for parameter in raters.parameters()]
    raters.zero_grad()
    each = [reference_loss(definition, raters, items, weight, strength) for strength in range(3)]
    torch.testing.assert_close(found, each[raters.chosen])
    sum(each).backward()
    for gradient, parameter in zip(gradients, raters.parameters()):
        torch.testing.assert_close(gradient, parameter.grad)
    definition.grad = None
    reference_loss(definition, raters, items, weight, raters.chosen).backward()
    torch.testing.assert_close(ours.grad, definition.grad)  # of the chosen strength alone


@pytest.mark.parametrize(
    "head",
    [
        Softmax(hidden=[4]),
        LDLF(trees=3, depth=3, outputs=None),
        LDLF(trees=2, depth=3, outputs=None, objective="forest"),
    ],
)
def test_raters_who_are_all_equal_train_a_head_as_without_raters(head: Head) -> None:
    """With one set of parameters that adds nothing, every step is that on the shares of the votes."""
    items = rate(biased(np.zeros((5, 3))), items=30)
    head, raters = made("bias", items, head=head)
    if isinstance(head, LDLF):
        head.leaves.copy_(torch.randn(head.leaves.shape).softmax(-1))
    alone = copy.deepcopy(head)
    for parameter in raters.parameters():
        parameter.requires_grad_(False)
    for model, loss in (
        (head, lambda: raters.loss(head.log_outputs(items.features), items.rater, items.vote)["loss"]),
        (alone, lambda: alone.loss(items.features, items.shares)["loss"]),
    ):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for _ in range(5):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
    for ours, theirs in zip(head.parameters(), alone.parameters()):
        torch.testing.assert_close(ours, theirs)
    prediction = alone(items.features)
    torch.testing.assert_close(raters.population(head(items.features)), prediction, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["bias", "confusion"])
def test_the_population_is_the_mean_of_the_raters_with_votes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = RaterTable(list("abcde"), np.array([3, 0, 2, 1, 4]))
    raters = unlike(Raters(kind, LABELS, table))
    p = torch.randn(7, 3, dtype=torch.float64).softmax(-1)
    each = [raters.distribution_of(p, torch.full((7,), number)) for number in (0, 2, 3, 4)]
    for block in (256, 2):
        monkeypatch.setattr("ldl.raters.model.RATERS_AT_ONCE", block)
        torch.testing.assert_close(raters.population(p), torch.stack(each).mean(0))


def test_an_unknown_rater_is_the_mean_rater_and_features_move_it() -> None:
    features = np.array([[1.0], [-1.0]], np.float32)
    raters = unlike(Raters("bias", LABELS, RaterTable(["a", "b"], np.array([3, 4]), features)))
    raters.features = raters.features.double()
    p = torch.full((2, 3), 1 / 3, dtype=torch.float64)
    unknown = torch.tensor([-1, -1])
    mean = (p.log() + raters.mean[raters.chosen]).softmax(-1)
    torch.testing.assert_close(raters.distribution_of(p, unknown), mean)
    described = raters.distribution_of(p, unknown, torch.tensor([[1.0], [-1.0]], dtype=torch.float64))
    raters.deviation.data.zero_()
    torch.testing.assert_close(described, raters.distribution_of(p, torch.tensor([0, 1])))


def test_a_planted_bias_is_recovered() -> None:
    bias = RNG.normal(size=(20, 3))
    items = rate(biased(bias), items=1500)
    _, raters = trained("bias", items)
    found = raters.deviation[0].detach().numpy()
    found, planted = (each - each.mean(1, keepdims=True) for each in (found, bias))
    found, planted = found - found.mean(0), planted - planted.mean(0)
    assert np.corrcoef(found.ravel(), planted.ravel())[0, 1] > 0.95
    assert (found * planted).sum() / (planted**2).sum() == pytest.approx(1, abs=0.15)


def test_a_planted_shift_of_ordinal_labels_is_recovered() -> None:
    shift = np.linspace(-2, 2, 15)

    def rated(p: np.ndarray) -> np.ndarray:
        below = np.clip(p.cumsum(1)[:, None, :-1], 1e-9, 1 - 1e-9)
        moved = 1 / (1 + np.exp(-(np.log(below / (1 - below)) + shift[:, None])))
        return np.diff(moved, prepend=0, append=1)

    items = rate(rated, items=1500, labels=4)
    _, raters = trained("bias", items, labels=ORDERED)
    p = torch.full((15, 4), 0.25)
    below = raters.distribution_of(p, torch.arange(15)).cumsum(1)[:, :3].detach()
    found = torch.logit(below).mean(1).numpy()
    assert np.corrcoef(found, shift)[0, 1] > 0.97
    assert np.polyfit(shift, found, 1)[0] == pytest.approx(1, abs=0.2)


HONEST = 0.85 * np.eye(3) + 0.05
SPAM = np.tile([0.2, 0.3, 0.5], (3, 1))
INVERTED = HONEST[[1, 2, 0]]


def information(p: Tensor) -> float:
    """Mutual information of item and vote, in nats, by distributions (N, C) of a vote."""
    return float(kl(p.mean(0).expand_as(p), p).mean())


def test_spammers_say_nothing_and_adversaries_are_inverted() -> None:
    items = rate(confused(*[HONEST] * 6, SPAM, INVERTED), items=1000, sharpness=5.0)
    head, raters = trained("confusion", items, strength=0.1, steps=300)
    p = head(items.features).detach()
    honest, spam, inverted = (raters.distribution_of(p, torch.full((len(p),), number)).detach() for number in (0, 6, 7))
    assert information(spam) < 0.02 < 0.3 < information(honest)
    assert information(inverted) > 0.3
    sharp = torch.eye(3).clamp_min(1e-6)
    assert raters.distribution_of(sharp, torch.tensor([7] * 3)).argmax(-1).tolist() == [1, 2, 0]
    assert raters.distribution_of(sharp, torch.tensor([0] * 3)).argmax(-1).tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["bias", "confusion"])
def test_a_rater_with_three_votes_is_nearly_the_mean(kind: str) -> None:
    bias = np.zeros((12, 3))
    bias[10:, 0] = 3.0
    items = rate(biased(bias), items=900)
    rows = (items.rater == 11).any(1).nonzero().flatten()[3:]
    items.vote[rows] = torch.where(items.rater[rows] == 11, -1, items.vote[rows])
    votes = np.bincount(items.rater[items.vote >= 0], minlength=12)
    assert votes[11] == 3 < 200 < votes[10]
    raters = Raters(kind, LABELS, RaterTable([str(number) for number in range(12)], votes), [8.0])
    torch.manual_seed(0)
    head = Softmax()
    head.build(3, LABELS)
    learn(head, raters, items)
    p = head(items.features).detach()
    mean, many, three = (raters.distribution_of(p, torch.full((len(p),), number)).detach() for number in (-1, 10, 11))
    assert float((many - mean).abs().sum(1).mean()) > 4 * float((three - mean).abs().sum(1).mean()) > 0


@pytest.mark.parametrize("seed", range(2))
def test_with_unequal_raters_unevenly_assigned_the_population_is_nearer_to_the_truth(seed: int) -> None:
    """Raters who like the first label vote on items of one kind, and those who dislike it on the others."""
    bias = np.zeros((20, 3))
    bias[:10, 0], bias[10:, 0] = 2.0, -2.0

    def chance(features: np.ndarray, raters: int) -> np.ndarray:
        likes = np.arange(raters) < 10
        return np.where((features[:, :1] > 0) == likes, 1.0, 0.1)

    items = rate(biased(bias), items=1000, chance=chance, seed=seed)
    head, raters = trained("bias", items, strength=0.5)
    torch.manual_seed(0)
    pooled = Softmax()
    pooled.build(3, LABELS)
    optimizer = torch.optim.Adam(pooled.parameters(), lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        pooled.loss(items.features, items.shares)["loss"].backward()
        optimizer.step()
    ours = float(kl(raters.population(head(items.features)), items.population).mean().detach())
    theirs = float(kl(pooled(items.features), items.population).mean().detach())
    assert ours < 0.5 * theirs
    distance = (items.shares - items.population).abs().sum(1).mean()
    assert (raters.population(head(items.features)) - items.population).abs().sum(1).mean() < distance


@pytest.mark.parametrize(("spread", "chosen"), [(2.0, 0), (0.0, 1)])
def test_validation_votes_choose_the_strength(spread: float, chosen: int) -> None:
    items = rate(biased(spread * np.random.default_rng(1).normal(size=(60, 3))), items=400)
    train, held = (
        RatedItems(items.features[rows], items.rated[rows], items.rater[rows], items.vote[rows])
        for rows in (slice(200), slice(200, None))
    )
    head, raters = made("bias", train, 0.1, 100.0)
    learn(head, raters, train)
    raters.chosen = 1 - chosen
    for rows in (slice(100), slice(100, None)):
        raters.observe(head(held.features[rows]), held.rater[rows], held.vote[rows])
    raters.choose(Collective())
    assert raters.chosen == chosen
    raters.choose(Collective())  # without votes, the choice stays
    assert raters.chosen == chosen


def test_leaves_learn_the_label_behind_the_votes() -> None:
    items = rate(confused(HONEST, INVERTED), items=50, each=2, sharpness=5.0)
    raters = made("confusion", items, 1.0)[1]
    logits = torch.tensor(np.log(np.stack([HONEST, INVERTED])), dtype=torch.float32).flatten(1)
    raters.mean.data.zero_()
    raters.deviation.data[0, :, :9] = logits
    uniform = {"log_p": torch.full((50, 1, 3), 1 / 3).log()}
    target = raters.target(uniform, items.rater, items.vote)
    matrices = torch.stack([torch.tensor(HONEST), torch.tensor(INVERTED)]).float()
    expected = torch.stack([matrices[items.rater[:, k], :, items.vote[:, k]] for k in range(2)])
    torch.testing.assert_close(target, (expected / expected.sum(-1, keepdim=True)).mean(0))


def test_leaves_of_a_bias_move_by_what_the_votes_have_more() -> None:
    items = rate(biased(np.zeros((4, 3))), items=20)
    raters = made("bias", items, 1.0)[1]
    p = torch.randn(20, 3).softmax(-1)
    target = raters.target({"log_p": p.log().unsqueeze(1)}, items.rater, items.vote)
    torch.testing.assert_close(target, items.shares)  # equal raters: the shares
