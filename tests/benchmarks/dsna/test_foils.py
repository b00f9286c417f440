"""Foils for imbalanced values: ordinal machines against scikit-learn's, and synthetic rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.svm import SVC, LinearSVC

from benchmarks.dsna.foils import FOILS, Oversampled, oversample
from benchmarks.dsna.ordinal_hyperplanes import OrdinalHyperplanes
from benchmarks.dsna.ordinal_svm import OrdinalSVM


def _rows(count: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 4))
    return features, np.clip(np.round(3 + 2 * features[:, 0] - features[:, 1] + rng.normal(size=count)), 0, 8)


def _extended(features: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The binary examples of the reduction, written out: a row beside minus the unit vector of its threshold."""
    labels = np.unique(values)
    rows = [(np.concatenate([row, -unit]), value > label) for row, value in zip(features, values)
            for unit, label in zip(np.eye(len(labels) - 1), labels)]  # fmt: skip
    return np.array([row for row, _ in rows]), np.array([above for _, above in rows])


@pytest.mark.parametrize("C", [0.1, 3.0])
def test_ordinal_machine_is_liblinear_on_the_extended_rows(C: float) -> None:
    features, values = _rows()
    machine = OrdinalSVM(C).fit(features, values)
    reference = LinearSVC(C=C, loss="squared_hinge", dual=False, fit_intercept=False, tol=1e-8)
    reference.fit(*_extended(features, values))
    learnt = np.concatenate([machine.direction_, machine.thresholds_])
    np.testing.assert_allclose(learnt, reference.coef_[0], atol=2e-3)


def test_thresholds_rise_and_predictions_are_labels() -> None:
    features, values = _rows()
    machine = OrdinalSVM(1.0).fit(features[:60], 10 * values[:60])
    assert (np.diff(machine.thresholds_) > 0).all()
    predicted = machine.predict(features)
    assert set(predicted) <= set(10 * values[:60])
    assert np.abs(predicted[60:] - 10 * values[60:]).mean() < 12


def test_kernel_machine_fits_what_no_line_can() -> None:
    rng = np.random.default_rng(1)
    features = rng.uniform(-2, 2, (300, 2))
    values = np.floor((features**2).sum(1))
    train, test = slice(0, 200), slice(200, None)
    errors = [
        np.abs(
            OrdinalSVM(10.0, gamma).fit(features[train], values[train]).predict(features[test]) - values[test]
        ).mean()
        for gamma in (None, "scale", 0.7)
    ]
    assert errors[0] > 1.2 and max(errors[1:]) < 0.5


def test_synthetic_rows_lie_between_rows_of_like_values() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.uniform(0, 5, 80), rng.uniform(5, 10, 12), rng.uniform(30, 35, 4), [64.0]])
    # Features that tell the value: a synthetic row between two rows then tells its own.
    features = np.stack([values, 2 * values + 1], 1)
    more, labels = oversample(features, values, 5.0, 0.5, 3, seed=1)
    assert np.array_equal(more[: len(values)], features) and np.array_equal(labels[: len(values)], values)
    assert np.bincount(np.floor(labels[len(values) :] / 5).astype(int)).sum() == (40 - 12) + (40 - 4) + (40 - 1)
    np.testing.assert_allclose(more[:, 0], labels, atol=1e-9)
    np.testing.assert_allclose(more[:, 1], 2 * labels + 1, atol=1e-9)
    fresh = labels[len(values) :]
    assert ((fresh < 10) | ((fresh >= 30) & (fresh <= 35)) | (fresh == 64)).all()
    again, other = (oversample(features, values, 5.0, 0.5, 3, seed)[1] for seed in (1, 2))
    assert np.array_equal(again, labels) and not np.array_equal(other, labels)


def test_nothing_is_added_where_nothing_is_rare() -> None:
    features, values = _rows()
    assert len(oversample(features, values, 5.0, 0.0, 5, 0)[0]) == len(features)


def test_synthetic_rows_move_a_line_towards_the_rare_values() -> None:
    """A line cannot fit a bent curve everywhere: what counts decides where it does."""
    rng = np.random.default_rng(0)
    place = np.concatenate([rng.uniform(0, 1, 400), rng.uniform(3, 4, 12)])
    features, values = place[:, None], 10 * place**2
    rare = values > 80

    def error(regressor: object) -> float:
        return float(np.abs(regressor.fit(features, values).predict(features) - values)[rare].mean())  # type: ignore[attr-defined]

    plain = error(Ridge(1e-6))
    assert error(Oversampled(Ridge(1e-6), share=1.0)) < 0.8 * plain


@pytest.mark.parametrize("name", list(FOILS))
def test_every_foil_beats_the_mean(name: str) -> None:
    features, values = _rows(160)
    features, ages = features / 2, 8 * values
    make, settings = FOILS[name]
    predicted = make(**settings[-1]).fit(features[:120], ages[:120]).predict(features[120:])
    assert np.abs(predicted - ages[120:]).mean() < 0.85 * np.abs(ages[:120].mean() - ages[120:]).mean()


def test_a_ranker_passes_the_thresholds_that_its_machines_tell() -> None:
    features, values = _rows()
    values = values**2
    predicted = OrdinalHyperplanes(3.0, 0.3).fit(features[:60], values[:60]).predict(features[60:])
    labels = np.unique(values[:60])
    expected = np.full(30, labels[0])
    for low, high in zip(labels, labels[1:]):
        cost = np.abs(values[:60] - (low + high) / 2)
        machine = SVC(C=3.0, gamma=0.3).fit(features[:60], values[:60] > low, cost / cost.mean())
        expected += (high - low) * machine.predict(features[60:])
    np.testing.assert_allclose(predicted, expected)
