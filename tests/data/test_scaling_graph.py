"""Scaling by torch alone gives what ``FeatureScaler`` gives."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from ldl.data.tables.scaling import FeatureScaler, Scaling
from ldl.data.tables.scaling_graph import HIGHEST, LOWEST, normal_quantile, scale


def table(rows: int, seed: int) -> np.ndarray:
    """Features that are smooth, rounded, constant, mostly one value, or large; none below 0."""
    features = np.abs(np.random.default_rng(seed).normal(size=(rows, 5)))
    features[:, 1] = np.round(2 * features[:, 1])
    features[:, 2] = 3.0
    features[:, 3] = np.where(features[:, 3] < 0.8, 0.25, features[:, 3])
    features[:, 4] *= 1e6
    return features


@pytest.mark.parametrize("kind", get_args(Scaling))
@settings(max_examples=15, deadline=None)
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


def test_a_root_of_a_negative_number_is_nan() -> None:
    learned = {"mean": torch.zeros(1).double(), "scale": torch.ones(1).double()}
    assert scale(torch.tensor([[-1.0]]).double(), "hellinger", None, learned).isnan().all()
