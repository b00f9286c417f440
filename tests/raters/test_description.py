"""The table of raters: quantities by their definitions, and intervals that hold what was planted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from fakes.rated_items import LABELS, ORDERED, RatedItems, biased, confused, learn, rate
from torch import Tensor

from ldl.annotations import SingleVotes
from ldl.heads import Softmax
from ldl.labels import LabelSpace
from ldl.methods.temperature import temper
from ldl.metrics.functional import kl
from ldl.raters import Raters, RaterTable
from ldl.raters.description import MOST_ITEMS, agreement_with_others, tabulate_raters

HONEST = 0.85 * np.eye(3) + 0.05
SPAM = np.tile([0.2, 0.3, 0.5], (3, 1))
INVERTED = HONEST[[1, 2, 0]]


def single_votes(items: RatedItems) -> SingleVotes:
    number, each = items.vote.shape
    names = np.array(items.table.names, object)
    return SingleVotes(
        np.repeat(np.arange(number), each), items.rater.flatten().numpy(), items.vote.flatten().numpy(), names
    )


def described(kind: str, items: RatedItems, strength: float, labels: LabelSpace) -> pd.DataFrame:
    """The table of a head and a model of raters that have learned the items."""
    torch.manual_seed(0)
    head = Softmax()
    head.build(3, labels)
    raters = Raters(kind, labels, items.table, [strength])
    learn(head, raters, items)
    return tabulate_raters(raters, labels, head(items.features).detach(), single_votes(items))


def untrained(kind: str, labels: LabelSpace, items: int = 40) -> tuple[Raters, Tensor, SingleVotes]:
    """Random raters, of whom the last one has no votes, and random distributions of items."""
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    names = np.array(list("pqrs"), object)
    votes = SingleVotes(rng.integers(0, items, 60), rng.integers(0, 3, 60), rng.integers(0, len(labels), 60), names)
    raters = Raters(kind, labels, RaterTable(list(names), np.bincount(votes.rater, minlength=4)), [2.0])
    raters.deviation.data = torch.randn(raters.deviation.shape, generator=generator)
    return raters, torch.randn(items, len(labels), generator=generator).softmax(-1), votes


@pytest.mark.parametrize(("kind", "labels"), [("bias", LABELS), ("confusion", LABELS), ("bias", ORDERED)])
@pytest.mark.parametrize("temperature", [1.0, 1.7])
def test_quantities_are_those_of_the_definitions(kind: str, labels: LabelSpace, temperature: float) -> None:
    raters, p, votes = untrained(kind, labels)
    table = tabulate_raters(raters, labels, p, votes, temperature)
    population = temper(raters.population(p), temperature)
    for number in range(4):
        rated = temper(raters.distribution_of(p, torch.full((len(p),), number)), temperature).detach()
        mutual = float(kl(rated.mean(0).expand_as(rated), rated).mean())
        assert table["informativeness"][number] == pytest.approx(mutual, abs=1e-5)
        if labels.kind == "ordinal":
            shift = (labels.decode(rated) - labels.decode(population)).mean().detach()
            assert table["shift"][number] == pytest.approx(float(shift), abs=1e-5)
        else:
            found = table[[f"bias:{name}" for name in labels.names]].loc[number]
            np.testing.assert_allclose(found.to_numpy(float), (rated - population).mean(0).detach(), atol=1e-5)
    assert table["rater"].tolist() == list("pqrs")
    assert table["votes"].tolist() == [*np.bincount(votes.rater), 0]
    for name in table:
        if "lower_90" in name:
            middle, high = name.replace("_lower_90", ""), name.replace("lower", "upper")
            assert (table[name] <= table[middle]).all() and (table[middle] <= table[high]).all()
            assert (table[high] > table[name]).all()


def test_it_is_the_same_again_and_in_the_inference_mode_of_a_test() -> None:
    raters, p, votes = untrained("bias", LABELS, items=3 * MOST_ITEMS)
    first = tabulate_raters(raters, LABELS, p, votes)
    with torch.inference_mode():
        again = tabulate_raters(raters, LABELS, p.clone(), votes)
    pd.testing.assert_frame_equal(first, again)


def test_without_votes_the_interval_is_that_of_the_prior() -> None:
    raters, p, votes = untrained("bias", ORDERED)
    raters.deviation.data[:, 3] = 0
    table = tabulate_raters(raters, ORDERED, p, votes)
    width = table["shift_upper_90"] - table["shift_lower_90"]
    assert width.idxmax() == 3 and np.isnan(table["agreement"][3])
    theta = raters.mean[0] + torch.randn(4000, raters.mean.shape[1]) / 2**0.5
    drawn = ORDERED.decode(raters.transform.apply(p.log().unsqueeze(0), theta).exp()).mean(1).detach()
    assert width[3] == pytest.approx(float(drawn.quantile(0.95) - drawn.quantile(0.05)), rel=0.25)


def test_too_many_parameters_have_no_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldl.raters.description.MOST_PARAMETERS", 8)
    raters, p, votes = untrained("confusion", LABELS)
    table = tabulate_raters(raters, LABELS, p, votes)
    assert table.filter(like="_90").isna().all(axis=None) and table["informativeness"].notna().all()


def test_agreement_is_that_of_the_definition() -> None:
    """Also where a rater has several votes on an item, or is alone there."""
    votes = [(0, 0, 1), (0, 0, 1), (0, 1, 1), (0, 2, 0), (1, 0, 2), (1, 2, 2), (2, 3, 0)]
    single = SingleVotes(*np.array(votes).T, np.array(list("abcde"), object))
    expected = []
    for rater in range(5):
        pairs = [
            label == other
            for item, one, label in votes
            for place, two, other in votes
            if one == rater and place == item and two != rater
        ]
        expected.append(np.mean(pairs) if pairs else np.nan)
    np.testing.assert_allclose(agreement_with_others(single, 5), expected)
    assert expected[0] == 0.6


def test_a_spammer_tells_nothing_and_an_adversary_disagrees() -> None:
    items = rate(confused(*[HONEST] * 6, SPAM, INVERTED), items=1000, sharpness=5.0)
    table = described("confusion", items, 0.1, LABELS)
    honest, spam, inverted = table[:6], table.loc[6], table.loc[7]
    assert spam["informativeness_lower_90"] < 0.02 and spam["informativeness_upper_90"] < 0.1
    assert honest["informativeness_lower_90"].min() > 0.3 and inverted["informativeness_lower_90"] > 0.3
    assert inverted["agreement"] < spam["agreement"] < honest["agreement"].min()
    assert spam["bias_lower_90:c"] > 0 > spam["bias_upper_90:a"]


def test_intervals_hold_planted_shifts_about_as_often_as_stated() -> None:
    raters, strength = 100, 2.0
    shift = np.random.default_rng(1).normal(0, strength**-0.5, raters)

    def rated(p: np.ndarray) -> np.ndarray:
        below = np.clip(p.cumsum(1)[:, None, :-1], 1e-9, 1 - 1e-9)
        moved = 1 / (1 + np.exp(-(np.log(below / (1 - below)) + shift[:, None])))
        return np.diff(moved, prepend=0, append=1)

    items = rate(rated, items=1000, labels=4, seed=1)
    table = described("bias", items, strength, ORDERED)
    expectation = items.rated @ np.array([1, 2, 3, 4])
    planted = (expectation - expectation.mean(1, keepdims=True)).mean(0)
    holds = (table["shift_lower_90"] <= planted) & (planted <= table["shift_upper_90"])
    assert 0.83 <= holds.mean() <= 0.97
    assert np.corrcoef(table["shift"], planted)[0, 1] > 0.75


def test_planted_biases_of_nominal_labels_are_held() -> None:
    bias = np.random.default_rng(0).normal(0, 0.7, (40, 3))
    items = rate(biased(bias), items=600)
    table = described("bias", items, 2.0, LABELS)
    planted = (items.rated - items.rated.mean(1, keepdims=True)).mean(0)
    low, high = (table[[f"bias_{end}_90:{name}" for name in "abc"]].to_numpy() for end in ("lower", "upper"))
    assert 0.83 <= ((low <= planted) & (planted <= high)).mean() <= 0.97
