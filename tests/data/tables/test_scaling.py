"""Scaling of tabular features."""

from __future__ import annotations

import io
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from ldl.data import TabularLDL
from ldl.data.tables.scaling import HIGHEST, LOWEST, FeatureScaler, Scaling, normal_quantile, scale
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


def test_ranks_by_hand() -> None:
    """Ties get their mean rank, also at the ends; ends stay within 3; two numbers become 0 and 1."""
    columns = {
        "distinct": [1.0, 2, 3, 4, 1e300],
        "many zeros": [0.0, 0, 0, 7, 9],
        "two numbers": [5.0, 7, 5, 5, np.nan],
        "constant": [3.0, 3, 3, 3, 3],
    }
    table = np.array(list(columns.values())).T
    scaler = FeatureScaler("ranks", None)
    scaler.fit(table)
    share = np.array([[0, 0.25, 0.5, 0.75, 1], [0.25, 0.25, 0.25, 0.75, 1], [0.5] * 5, [0.5] * 5])
    wanted = norm.ppf(share).clip(-3, 3)
    wanted[2] = [0, 1, 0, 0, np.nan]
    learned = {name: torch.from_numpy(array) for name, array in scaler.learned.items()}
    for scaled in (scaler.transform(table), scale(torch.from_numpy(table), "ranks", None, learned).numpy()):
        np.testing.assert_allclose(scaled, wanted.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["standard", "ranks", "quantile_normal", "quantile_uniform", "none"])
def test_state_comes_back_without_unpickling(kind: str) -> None:
    scaler = _scaled(kind)
    file = io.BytesIO()
    torch.save(scaler.state_dict(), file)
    file.seek(0)
    other = FeatureScaler(kind, None)  # type: ignore[arg-type]
    other.load_state_dict(torch.load(file, weights_only=True))
    np.testing.assert_array_equal(other.transform(OTHER), scaler.transform(OTHER))


def test_errors() -> None:
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


def table(rows: int, seed: int) -> np.ndarray:
    """Features that are smooth, rounded, constant, mostly one value, or large; none below 0."""
    features = np.abs(np.random.default_rng(seed).normal(size=(rows, 5)))
    features[:, 1] = np.round(2 * features[:, 1])
    features[:, 2] = 3.0
    features[:, 3] = np.where(features[:, 3] < 0.8, 0.25, features[:, 3])
    features[:, 4] *= 1e6
    return features


@pytest.mark.parametrize("kind", get_args(Scaling))
@settings(max_examples=6, deadline=None)
@given(rows=st.integers(2, 1200), seed=st.integers(0, 9), clip=st.sampled_from([None, 1.5]))
def test_as_the_scaler_scales(kind: Scaling, rows: int, seed: int, clip: float | None) -> None:
    scaler = FeatureScaler(kind, clip)
    scaler.fit(table(rows, seed))
    asked = np.concatenate([table(rows, seed)[:50], table(50, seed + 1), 3 * table(50, seed + 2)])
    asked[::7, 0] = np.nan
    learned = {name: torch.from_numpy(array) for name, array in scaler.learned.items()}
    found = scale(torch.from_numpy(asked), kind, clip, learned)
    np.testing.assert_allclose(found.numpy(), scaler.transform(asked.copy()), rtol=1e-12, atol=1e-12)


def test_normal_quantiles_are_scipys() -> None:
    share = np.concatenate([[0, 1e-7, 0.5, 1], np.random.default_rng(0).random(1000), np.geomspace(1e-7, 1, 1000)])
    wanted = norm.ppf(share).clip(LOWEST, HIGHEST)
    np.testing.assert_allclose(normal_quantile(torch.from_numpy(share)).numpy(), wanted, rtol=1e-13, atol=1e-15)


CSV = "a,b,label:x,label:y\n1,,0.5,0.5\n2,nan,0.25,0.75\n3,4,1,0\nNA,5,0,1\n"
NAN = np.nan


@pytest.mark.parametrize("kind", ["standard", "ranks", "hellinger", "quantile_normal", "quantile_uniform", "none"])
def test_what_is_missing_stays_so_and_the_rest_is_scaled_by_what_is_known(kind: str) -> None:
    random = np.random.default_rng(0)
    features = random.exponential(size=(50, 3))
    missing = random.random((50, 3)) < 0.3
    missing[:, 2] = False
    scaler = FeatureScaler(kind, None)  # type: ignore[arg-type]
    scaler.fit(np.where(missing, NAN, features))
    scaled = scaler.transform(np.where(missing, NAN, features))
    assert np.array_equal(np.isnan(scaled), missing)
    if kind == "hellinger":
        assert np.allclose(np.nanmean(scaled, 0), 0) and np.isclose(np.nanmean(np.square(scaled)), 1)
        return
    for f in range(3):
        known = ~missing[:, f]
        # Each feature as if its known rows were all there is; quantiles lie elsewhere, but keep the order.
        assert np.array_equal(scaled[known, f].argsort(), features[known, f].argsort())
        alone = FeatureScaler(kind, None)  # type: ignore[arg-type]
        alone.fit(features[known, f : f + 1])
        expected = alone.transform(features[known, f : f + 1])[:, 0]
        np.testing.assert_allclose(scaled[known, f], expected, atol=1e-9 if kind in ("standard", "hellinger") else 0.3)


def test_csv_files_say_it_in_several_ways(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(CSV)
    data = TabularLDL(path=str(tmp_path / "table.csv"), missing="keep", scaling="none", folds=2, val_fraction=0)
    data.setup()
    assert data.has_missing
    expected = [[1, NAN], [2, NAN], [3, 4], [NAN, 5]]
    assert torch.equal(data.scaled.isnan(), torch.tensor(expected).isnan())
    with pytest.raises(LDLError, match="line 2, column 'b' is '', not a finite number"):
        TabularLDL(path=str(tmp_path / "table.csv"), missing="refuse").setup()
    (tmp_path / "table.csv").write_text(CSV.replace("nan", "many"))
    with pytest.raises(LDLError, match="column 'b' is 'many', not a finite number"):
        TabularLDL(path=str(tmp_path / "table.csv"), missing="keep").setup()
    (tmp_path / "table.csv").write_text(CSV.replace("0.25", ""))
    with pytest.raises(LDLError, match="column 'label:x' is ''"):
        TabularLDL(path=str(tmp_path / "table.csv"), missing="keep").setup()
