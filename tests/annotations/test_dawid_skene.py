"""The model of Dawid and Skene: recovery, invariances, the steps of EM, and crowd-kit's implementation."""

from __future__ import annotations

import json
import os
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fakes.simulated_raters import biased, confusion_of, simulate_votes
from hypothesis import given, settings
from hypothesis import strategies as st

from ldl.annotations import DawidSkene, SingleVotes, read_annotations
from ldl.errors import LDLError

PRIOR = np.array([0.5, 0.3, 0.2])
RATERS = np.concatenate([confusion_of(0.9, 0.9, 0.8, 0.7, 0.0, 0.0), biased()])
TEXT = Path(os.environ.get("LDL_DATA", "")) / "text"
LIDC = Path(os.environ.get("LDL_DATA", "")) / "lidc/readings.csv"


@st.composite
def few_votes(draw: st.DrawFn) -> tuple[SingleVotes, int, int]:
    """Votes on items, of which some have no vote, with the numbers of items and labels."""
    items, raters, labels = (draw(st.integers(1, most)) for most in (8, 4, 4))
    vote = st.tuples(st.integers(0, items - 1), st.integers(0, raters - 1), st.integers(0, labels - 1))
    item, rater, label = np.array(draw(st.lists(vote, min_size=1, max_size=40))).T
    return SingleVotes(item, rater, label, np.arange(raters)), items, labels


def log_density(model: DawidSkene, votes: SingleVotes, smoothing: float) -> float:
    """Log-likelihood and log density of the priors, item by item and rater by rater."""
    items, labels = model.probabilities.shape
    shares = np.full((items, labels), 1 / labels)
    for item in set(votes.item):
        shares[item] = np.bincount(votes.label[votes.item == item], minlength=labels) / (votes.item == item).sum()
    mean = np.full((labels, labels), 1 / labels)
    for item, label in zip(votes.item, votes.label):
        mean[:, label] += shares[item]
    mean /= mean.sum(1, keepdims=True)
    start = shares.sum(0) + 1 / labels
    total = smoothing * (start / start.sum()) @ np.log(model.prior)
    for matrix in model.confusion:
        total += smoothing * (mean * np.log(matrix)).sum()
    for item in range(items):
        joint = model.prior.copy()
        for vote in np.flatnonzero(votes.item == item):
            joint *= model.confusion[votes.rater[vote], :, votes.label[vote]]
        np.testing.assert_allclose(model.probabilities[item], joint / joint.sum(), rtol=1e-6, atol=1e-12)
        total += np.log(joint.sum())
    return float(total)


@settings(max_examples=60, deadline=None)
@given(few_votes(), st.sampled_from([0.1, 1.0, 5.0]))
def test_no_step_lowers_the_objective(sample: tuple[SingleVotes, int, int], smoothing: float) -> None:
    votes, items, labels = sample
    model = DawidSkene.fit(votes, items, labels, smoothing, most_steps=30)
    assert (np.diff(model.objective) >= -1e-9).all()
    assert model.objective[-1] == pytest.approx(log_density(model, votes, smoothing))
    for distributions in (model.probabilities, model.prior, model.confusion):
        np.testing.assert_allclose(distributions.sum(-1), 1)
    assert model.prior.min() > 0 and model.confusion.min() > 0


@settings(max_examples=30, deadline=None)
@given(few_votes(), st.randoms(use_true_random=False))
def test_the_order_of_votes_items_raters_and_labels_changes_nothing(
    sample: tuple[SingleVotes, int, int], random: object
) -> None:
    votes, items, labels = sample
    rng = np.random.default_rng(random.randrange(2**32))  # type: ignore[attr-defined]
    item, rater, label = (rng.permutation(size) for size in (items, len(votes.names), labels))
    order = rng.permutation(len(votes.item))
    other = SingleVotes(item[votes.item][order], rater[votes.rater][order], label[votes.label][order], votes.names)
    first, second = (DawidSkene.fit(each, items, labels, tolerance=0, most_steps=20) for each in (votes, other))
    np.testing.assert_allclose(second.probabilities[item][:, label], first.probabilities, atol=1e-8)
    np.testing.assert_allclose(second.confusion[rater][:, label][:, :, label], first.confusion, atol=1e-8)


def test_doubled_items_leave_the_model_as_it_is() -> None:
    votes, _ = simulate_votes(RATERS, PRIOR, 100, 4)
    twice = votes._replace(
        **{name: np.tile(getattr(votes, name), 2) for name in ("rater", "label")},
        item=np.concatenate([votes.item, votes.item + 100]),
    )
    once = DawidSkene.fit(votes, 100, 3, smoothing=1e-10, most_steps=20)
    model = DawidSkene.fit(twice, 200, 3, smoothing=2e-10, most_steps=20)
    np.testing.assert_allclose(model.confusion, once.confusion, atol=1e-3)
    np.testing.assert_allclose(model.probabilities, np.tile(once.probabilities, (2, 1)), atol=1e-3)


def test_the_votes_of_a_single_rater_are_the_classes() -> None:
    label = np.repeat([0, 1, 2], [60, 30, 10])
    votes = SingleVotes(np.arange(100), np.zeros(100, int), label, np.array(["only"]))
    model = DawidSkene.fit(votes, 100, 3)
    assert (model.probabilities.argmax(1) == label).all() and model.probabilities.max(1).min() > 0.9


def test_parameters_are_recovered() -> None:
    votes, classes = simulate_votes(RATERS, PRIOR, 3000, 5, seed=1)
    model = DawidSkene.fit(votes, 3000, 3)
    np.testing.assert_allclose(model.prior, PRIOR, atol=0.03)
    np.testing.assert_allclose(model.confusion, RATERS, atol=0.07)
    # Probabilities are calibrated.
    sure = model.probabilities.max(1)
    assert (model.probabilities.argmax(1) == classes).mean() == pytest.approx(sure.mean(), abs=0.02)


def test_a_rater_with_three_votes_is_taken_as_an_average_one() -> None:
    votes, _ = simulate_votes(confusion_of(*[0.7] * 6), PRIOR, 500, 5, seed=2)
    rare = SingleVotes(
        np.concatenate([votes.item, [0, 1, 2]]),
        np.concatenate([votes.rater, [6, 6, 6]]),
        np.concatenate([votes.label, [0, 0, 0]]),
        np.arange(8),
    )
    model = DawidSkene.fit(rare, 500, 3)
    assert model.confusion[6].min() > 0.02 and model.confusion[6].max() < 0.95
    mean = model.confusion[7]  # a rater without votes
    np.testing.assert_allclose(mean, model.confusion[:6].mean(0), atol=0.2)
    assert (np.diag(mean) > 0.6).all()


def test_items_without_votes_have_the_prior() -> None:
    votes, _ = simulate_votes(RATERS, PRIOR, 50, 3)
    model = DawidSkene.fit(votes, 53, 3)
    np.testing.assert_allclose(model.probabilities[50:], np.tile(model.prior, (3, 1)), atol=1e-5)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({name: np.array([], int) for name in ("item", "rater", "label")}, {}, "no votes to fit"),
        ({}, {"smoothing": 0}, "smoothing 0 must be finite and above 0"),
        ({}, {"items": 2}, r"votes have the item numbers 0 to 2, which must be in 0\.\.1"),
        ({}, {"labels": 1}, r"the label numbers 0 to 1, which must be in 0\.\.0"),
        ({"names": np.array(["a"])}, {}, r"the rater numbers 0 to 1, which must be in 0\.\.0"),
    ],
)
def test_wrong_votes_are_named(change: dict[str, np.ndarray], options: dict[str, int], message: str) -> None:
    votes = SingleVotes(np.arange(3), np.array([0, 1, 0]), np.array([0, 1, 1]), np.array(["a", "b"]))
    with pytest.raises(LDLError, match=message):
        DawidSkene.fit(votes._replace(**change), **{"items": 3, "labels": 2, **options})


def md_agreement(part: str) -> pd.DataFrame:
    items = json.loads((TEXT / f"md_agreement/MD-Agreement_{part}.json").read_text())
    rows = [
        (key, rater, label)
        for key, entry in items.items()
        for rater, label in zip(entry["annotators"].split(","), entry["annotations"].split(","))
    ]
    return pd.DataFrame(rows, columns=["item", "rater", "label"])


def popquorn() -> pd.DataFrame:
    table = pd.read_csv(TEXT / "popquorn/offensiveness.csv")
    return table.rename(columns={"instance_id": "item", "user_id": "rater", "offensiveness": "label"})


def lidc() -> pd.DataFrame:
    """Readings by their number: a rater is the first, second, ... reader of a scan, and no person."""
    table = pd.read_csv(LIDC)
    return table.assign(rater=table["reading"].str.rpartition("-")[2], label=table["malignancy"])


def simulated() -> pd.DataFrame:
    votes, _ = simulate_votes(RATERS, PRIOR, 1000, 4, seed=3)
    return pd.DataFrame({"item": votes.item, "rater": votes.names[votes.rater], "label": votes.label})


READERS = {
    "MD-Agreement train": partial(md_agreement, "train"),
    "MD-Agreement test": partial(md_agreement, "test"),
    "POPQUORN": popquorn,
    "LIDC": lidc,
    "simulated": simulated,
}


def read_votes(name: str, least: int) -> tuple[SingleVotes, int, int]:
    """Votes of raters with at least a number of votes, and the numbers of items and labels."""
    try:
        table = READERS[name]()
    except FileNotFoundError as error:
        pytest.skip(f"needs {error.filename} below LDL_DATA")
    table = table[table.groupby("rater")["label"].transform("size") >= least]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        options = {"item_column": "item", "rater_column": "rater", "vote_column": "label", "duplicates": "first"}
        annotations = read_annotations(table[["item", "rater", "label"]], "long", **options)
    assert annotations.single is not None
    return annotations.single, len(annotations), len(annotations.labels)


def fit_crowd_kit(votes: SingleVotes, labels: int, steps: int) -> np.ndarray:
    """Probabilities (N, C) of crowd-kit's implementation after some steps."""
    peer = pytest.importorskip("crowdkit.aggregation.classification.dawid_skene", reason="needs crowd-kit (ldl[peers])")
    frame = pd.DataFrame({"task": votes.item, "worker": votes.rater, "label": votes.label})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of pandas, inside crowd-kit
        fitted = peer.DawidSkene(n_iter=steps, tol=-np.inf).fit_predict_proba(frame)
    return np.asarray(fitted.sort_index()[range(labels)])


OF_CROWD_KIT = {
    921: (0.07051, 0.50295, 0.42654),
    31: (0.46650, 0.02996, 0.50354),
    549: (0.50707, 0.03093, 0.46200),
    778: (0.47313, 0.52593, 0.00094),
}
"""Probabilities of the least certain simulated items after ten steps, by crowd-kit 1.4.2."""


def test_it_has_the_figures_of_crowd_kit() -> None:
    """Also where crowd-kit is missing: it brings transformers, which torchmetrics then imports in each process."""
    model = DawidSkene.fit(*read_votes("simulated", least=20), smoothing=1e-10, tolerance=0, most_steps=10)
    np.testing.assert_allclose(model.probabilities[list(OF_CROWD_KIT)], list(OF_CROWD_KIT.values()), atol=1e-5)
    np.testing.assert_allclose(model.probabilities.mean(0), [0.50734, 0.29057, 0.20209], atol=1e-5)


@pytest.mark.parametrize("name", READERS)
def test_without_smoothing_it_equals_crowd_kit(name: str) -> None:
    votes, items, labels = read_votes(name, least=20)
    model = DawidSkene.fit(votes, items, labels, smoothing=1e-10, tolerance=0, most_steps=10)
    np.testing.assert_allclose(model.probabilities, fit_crowd_kit(votes, labels, 10), atol=1e-4)


def test_it_differs_from_crowd_kit_where_maximum_likelihood_is_undefined() -> None:
    """A rater who never met a class has no confusion row: ours is the mean of raters, crowd-kit's all labels used."""
    votes, items, labels = read_votes("MD-Agreement train", least=1)
    model = DawidSkene.fit(votes, items, labels, smoothing=1e-10, most_steps=1)
    differs = np.abs(model.probabilities - fit_crowd_kit(votes, labels, 1)).max(1) > 1e-6
    counts = np.bincount(votes.item * labels + votes.label, minlength=items * labels).reshape(items, labels)
    shares = counts / counts.sum(1, keepdims=True)
    evidence = np.stack([np.bincount(votes.rater, column[votes.item], len(votes.names)) for column in shares.T])
    undefined = np.isin(np.arange(items), votes.item[(evidence == 0).any(0)[votes.rater]])
    assert 0 < differs.sum() < 150 and not (differs & ~undefined).any()
