"""Scaling of tabular features."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from ldl.data import Bags, TabularLDL
from ldl.data.tables.scaling import FeatureScaler
from ldl.errors import LDLError

RNG = np.random.default_rng(0)
TRAIN = np.column_stack([RNG.exponential(size=400), RNG.normal(5, 3, 400), np.full(400, 0.1)])
OTHER = np.column_stack([RNG.exponential(size=100) - 0.5, RNG.normal(5, 9, 100), np.linspace(0, 1, 100)])


def _scaled(kind: str, clip: float | None = None) -> FeatureScaler:
    scaler = FeatureScaler(kind, clip)  # type: ignore[arg-type]
    scaler.fit(TRAIN)
    return scaler


def test_standard() -> None:
    scaler = _scaled("standard")
    scaled = scaler.transform(TRAIN)
    np.testing.assert_allclose(scaled[:, :2].mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled[:, :2].std(0), 1)
    np.testing.assert_allclose(scaled[:, 2], 0, atol=1e-12)
    np.testing.assert_allclose(scaler.transform(OTHER), (OTHER - TRAIN.mean(0)) / [*TRAIN.std(0)[:2], 1])


def test_hellinger_keeps_distances() -> None:
    histograms = RNG.dirichlet(np.ones(6), 50)
    scaler = FeatureScaler("hellinger", None)
    scaler.fit(histograms)
    scaled = scaler.transform(histograms)
    np.testing.assert_allclose(scaled.mean(0), 0, atol=1e-12)
    assert np.square(scaled).mean() == pytest.approx(1)
    hellinger = np.linalg.norm(np.sqrt(histograms[:25]) - np.sqrt(histograms[25:]), axis=1)
    ratio = np.linalg.norm(scaled[:25] - scaled[25:], axis=1) / hellinger
    np.testing.assert_allclose(ratio, ratio[0])
    with pytest.raises(LDLError, match=r"feature 0 is -1; use 'standard'"):
        scaler.transform(np.array([[-1.0, 0, 0, 0, 0, 0]]))


def test_quantiles_are_ranks() -> None:
    rank = (stats.rankdata(TRAIN[:, 0]) - 1) / (len(TRAIN) - 1)
    uniform = _scaled("quantile_uniform").transform(TRAIN)
    np.testing.assert_allclose(uniform[:, 0], (rank - 0.5) * np.sqrt(12), atol=1e-6)
    assert uniform[:, 0].std() == pytest.approx(1, abs=0.01)
    normal = _scaled("quantile_normal").transform(TRAIN)
    inner = (rank > 0) & (rank < 1)
    np.testing.assert_allclose(normal[inner, 0], stats.norm.ppf(rank[inner]), atol=1e-5)


def test_other_rows_stay_in_the_range_of_training() -> None:
    uniform = _scaled("quantile_uniform").transform(OTHER)
    assert np.abs(uniform).max() <= np.sqrt(3) + 1e-9


def test_none_and_clip() -> None:
    np.testing.assert_array_equal(_scaled("none").transform(OTHER), OTHER)
    clipped = _scaled("standard", 2.0).transform(OTHER)
    assert np.abs(clipped).max() == 2.0
    np.testing.assert_array_equal(clipped, _scaled("standard").transform(OTHER).clip(-2, 2))


@pytest.mark.parametrize("kind", ["standard", "quantile_normal", "quantile_uniform", "none"])
def test_state_comes_back_without_unpickling(kind: str) -> None:
    scaler = _scaled(kind)
    file = io.BytesIO()
    torch.save(scaler.state_dict(), file)
    file.seek(0)
    other = FeatureScaler(kind, None)  # type: ignore[arg-type]
    other.load_state_dict(torch.load(file, weights_only=True))
    np.testing.assert_array_equal(other.transform(OTHER), scaler.transform(OTHER))


@pytest.mark.parametrize("kind", ["standard", "quantile_normal", "none"])
def test_rows_lie_in_one_piece_whatever_order_the_file_has(kind: str) -> None:
    columns = _scaled(kind).apply(np.asfortranarray(OTHER), "file")
    assert columns.is_contiguous() and torch.equal(columns, _scaled(kind).apply(OTHER, "file"))


def test_errors() -> None:
    with pytest.raises(LDLError, match="Bags.scaling 'log' must be one of standard"):
        Bags("t.csv", scaling="log").setup()  # type: ignore[arg-type]
    with pytest.raises(LDLError, match="Bags.clip -1 must be above 0"):
        Bags("t.csv", clip=-1).setup()
    with pytest.raises(LDLError, match="have 2 features, but the checkpoint was trained on 3"):
        _scaled("standard").transform(OTHER[:, :2])
    with pytest.raises(LDLError, match="trained with data.scaling 'quantile_normal', not 'quantile_uniform'"):
        FeatureScaler("quantile_uniform", None).load_state_dict(_scaled("quantile_normal").state_dict())
    with pytest.raises(LDLError, match=r"trained with data.clip 2.0, not None"):
        FeatureScaler("standard", None).load_state_dict(_scaled("standard", 2.0).state_dict())


def test_features_that_float32_cannot_hold_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(20, 3)), rng.dirichlet(np.ones(2), 20)
    features[7, 1] = 1e39
    np.savez(tmp_path / "a.npz", features=features, labels=labels)
    with pytest.raises(
        LDLError, match=r"a\.npz: row 7, feature 1 is 1e\+39, with scaling 'none' 1e\+39; float32 holds"
    ):
        TabularLDL(path=str(tmp_path / "a.npz"), scaling="none").setup()
    data = TabularLDL(path=str(tmp_path / "a.npz"))
    data.setup()
    assert data.scaled.isfinite().all()
