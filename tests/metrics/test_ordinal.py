"""Measures of ordinal predictions against loops written from their definitions, and the theorems they must obey."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldl.labels import LabelSpace
from ldl.metrics.ordinal import (
    OrdinalPredictions,
    band_groups,
    bands,
    calibration_error,
    coverage,
    crps,
    line_results,
    nll,
    pit,
)

AGES = LabelSpace.ordinal(range(0, 101), "years")
UNEVEN = np.array([-3.0, -1.0, 0.0, 0.5, 4.0, 9.0])


def rows(count: int, labels: LabelSpace, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions, decoded values and true values; some of the latter halfway between labels."""
    rng = np.random.default_rng(seed)
    axis = np.array(labels.axes[0])
    prediction = rng.dirichlet(np.full(len(axis), 0.2), count)
    value = rng.choice(np.concatenate([axis, (axis[1:] + axis[:-1]) / 2]), count)
    return prediction, prediction @ axis, value


def measured_of(*columns: Any) -> dict[str, float]:
    return line_results(OrdinalPredictions(*columns))


def spans_by_loop(prediction: np.ndarray, value: np.ndarray, axis: np.ndarray) -> list[tuple[float, float]]:
    spans = []
    for p, y in zip(prediction, value):
        label = min(range(len(axis)), key=lambda k: abs(axis[k] - y))
        below = sum(p[:label])
        spans.append((below, below + p[label]))
    return spans


def held_by_loop(spans: list[tuple[float, float]], low: float, high: float) -> float:
    held = [max(0.0, min(upper, high) - max(lower, low)) / (upper - lower) for lower, upper in spans]
    return sum(held) / len(held)


@pytest.mark.parametrize("axis", [UNEVEN, np.arange(31.0)], ids=["uneven", "ages"])
def test_distribution_scores_equal_their_definitions(axis: np.ndarray) -> None:
    prediction, _, value = rows(60, LabelSpace.ordinal(axis.tolist()))
    score, log_score = crps(prediction, value, axis), nll(prediction, value, axis)
    for row, (p, y) in enumerate(zip(prediction, value)):
        to_truth = sum(p[k] * abs(axis[k] - y) for k in range(len(axis)))
        apart = sum(p[k] * p[j] * abs(axis[k] - axis[j]) for k in range(len(axis)) for j in range(len(axis)))
        assert score[row] == pytest.approx(to_truth - apart / 2, rel=1e-9, abs=1e-12)
        label = min(range(len(axis)), key=lambda k: abs(axis[k] - y))
        assert log_score[row] == pytest.approx(-math.log(max(p[label], 1e-12)), rel=1e-9, abs=1e-12)


def test_coverage_and_calibration_equal_their_definitions() -> None:
    prediction, _, value = rows(200, LabelSpace.ordinal(UNEVEN.tolist()), seed=1)
    spans, expected = pit(prediction, value, UNEVEN), spans_by_loop(prediction, value, UNEVEN)
    np.testing.assert_allclose(spans, expected, atol=1e-12)
    for percent in (50, 80, 90, 95):
        low, high = 0.5 - percent / 200, 0.5 + percent / 200
        assert coverage(spans, percent) == pytest.approx(held_by_loop(expected, low, high), abs=1e-9)
    differences = [abs(held_by_loop(expected, -1, 0.05 * k) - 0.05 * k) for k in range(1, 20)]
    assert calibration_error(spans) == pytest.approx(sum(differences) / 19, abs=1e-9)


@settings(max_examples=30)
@given(st.integers(0, 5), st.floats(-3, 9))
def test_crps_of_a_point_mass_is_the_distance(label: int, value: float) -> None:
    score = crps(np.eye(6)[[label]], np.array([value]), UNEVEN)[0]
    assert score == pytest.approx(abs(UNEVEN[label] - value), abs=1e-12)


masses = st.lists(st.integers(0, 20), min_size=6, max_size=6).filter(any).map(lambda m: np.array(m) / sum(m))


@settings(max_examples=30)
@given(masses, masses)
def test_crps_is_proper(truth: np.ndarray, other: np.ndarray) -> None:
    """Nothing scores better, on average, than the distribution that the values are drawn from."""
    honest, another = (truth @ crps(np.tile(p, (6, 1)), UNEVEN, UNEVEN) for p in (truth, other))
    assert honest <= another + 1e-12


@settings(max_examples=30)
@given(st.lists(st.integers(0, 9), min_size=6, max_size=6).filter(any))
def test_calibrated_predictions_have_no_calibration_error(counts: list[int]) -> None:
    """Exactly none, also for few labels, where the middle of the span would have some."""
    value = np.repeat(UNEVEN, counts)
    prediction = np.tile(np.array(counts) / sum(counts), (len(value), 1))
    spans = pit(prediction, value, UNEVEN)
    assert calibration_error(spans) == pytest.approx(0, abs=1e-12)
    assert [coverage(spans, percent) for percent in (50, 80, 90)] == pytest.approx([0.5, 0.8, 0.9])


def geometric_mean_by_loop(errors: list[float]) -> float:
    return math.exp(sum(math.log(max(abs(error), 0.01)) for error in errors) / len(errors))


def test_values_and_groups_equal_their_definitions() -> None:
    prediction, predicted, value = rows(300, AGES, seed=2)
    predicted[:20] = value[:20]  # exact hits, which the geometric mean raises to 0.01
    count = np.random.default_rng(3).choice([0, 19, 20, 60, 100, 101, 500], 300)
    measured = measured_of(prediction, predicted, value, AGES, count)
    error = [float(p - y) for p, y in zip(predicted, value)]
    assert measured["gm"] == pytest.approx(geometric_mean_by_loop(error))
    by_label: dict[int, list[float]] = {}
    for e, y in zip(error, value):
        by_label.setdefault(math.ceil(y - 0.5), []).append(abs(e))
    assert measured["balanced_mae"] == pytest.approx(np.mean([np.mean(errors) for errors in by_label.values()]))
    for theta in (0, 1, 4, 6, 10):
        assert measured[f"cs{theta}"] == pytest.approx(sum(abs(e) <= theta for e in error) / 300)
    shots = {"few": (0, 19), "medium": (20, 100), "many": (101, 500)}
    for name, (low, high) in shots.items():
        part = [e for e, c in zip(error, count) if low <= c <= high]
        assert measured[f"n_{name}"] == len(part) > 0
        assert measured[f"mae_{name}"] == pytest.approx(sum(map(abs, part)) / len(part))
        assert measured[f"gm_{name}"] == pytest.approx(geometric_mean_by_loop(part))
    for low in range(0, 100, 10):
        part = [e for e, y in zip(error, value) if low <= y < low + 10]
        name = f"{low}_{low + 9}"
        assert measured[f"n_{name}"] == len(part) > 0
        assert measured[f"mae_{name}"] == pytest.approx(sum(map(abs, part)) / len(part))
        assert measured[f"bias_{name}"] == pytest.approx(sum(part) / len(part))


def test_empty_groups_are_nan_with_a_count_of_none() -> None:
    prediction, predicted, _ = rows(4, AGES)
    measured = measured_of(prediction, predicted, np.full(4, 25.0), AGES, np.zeros(4, int))
    assert measured["n_few"] == measured["n_20_29"] == 4 and math.isfinite(measured["mae_few"])
    for group in ("many", "medium", "30_39"):
        assert measured[f"n_{group}"] == 0 and math.isnan(measured[f"mae_{group}"])
    assert math.isnan(measured["gm_many"]) and math.isnan(measured["bias_30_39"])


@pytest.mark.parametrize(
    ("axis", "names"),
    [
        (range(16, 70), ["10_19", "20_29", "30_39", "40_49", "50_59", "60_69"]),
        (range(-10, 11), ["-10_-1", "0_9", "10_19"]),
        ([0, 0.5, 1], []),
        ([3], []),
    ],
)
def test_bands_cover_the_labels_where_ten_units_make_sense(axis: list[float], names: list[str]) -> None:
    labels = LabelSpace.ordinal(axis)
    assert list(bands(labels)) == names
    covered = np.zeros(len(labels), int)
    for members in band_groups(np.array(labels.axes[0]), labels).values():
        covered += members
    assert set(covered) == ({1} if names else {0})
