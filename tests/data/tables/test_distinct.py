"""Different numbers of a column stay different in float32, in training, prediction and export."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from fakes.tasks import saved
from hypothesis import given, settings
from hypothesis import strategies as st

from ldl.data import TabularLDL
from ldl.data.storage import RowFile
from ldl.data.tables.scaling import FeatureScaler, Scaling, scale
from ldl.deploy.export_graph import Deployed
from ldl.errors import LDLError
from ldl.estimator import LDLRegressor
from ldl.head import FittedHead
from ldl.heads import AAKNN, BoostedTrees, CostSensitiveForest, StructRF
from ldl.inference import Predictor

DAY = 1.7e9 + np.arange(600.0)
TIMES = {
    "seconds of a day": DAY,
    "seconds of a day and a code": np.r_[0.0, DAY[1:]],
    "milliseconds": 1.7e12 + np.arange(600.0),
    "seconds of years, in pairs": np.sort(np.r_[np.linspace(1.4e9, 1.7e9, 300), np.linspace(1.4e9, 1.7e9, 300) + 1]),
    "numbers beside a large one": np.r_[np.arange(599) / 7, 1e12],
    "close to one": 1 + np.arange(600) * 1e-12,
}


def learned(column: np.ndarray, kind: Any, clip: float | None = None) -> FeatureScaler:
    scaler = FeatureScaler(kind, clip)
    features = np.stack([column, np.arange(len(column)) % 7], 1)
    scaler.fit(features)
    scaler.keep_distinct(features, np.arange(len(column)))
    return scaler


@pytest.mark.parametrize("kind", get_args(Scaling))
@pytest.mark.parametrize("name", TIMES)
def test_order_and_number_are_kept(name: str, kind: str) -> None:
    column = np.random.default_rng(0).permutation(TIMES[name])
    scaler = learned(column, kind)
    rows = np.stack([column, np.zeros(len(column))], 1)
    scaled = scaler.apply(rows, "t")[:, 0]
    assert scaled.dtype == torch.float32
    assert torch.equal(scaled.argsort(), torch.from_numpy(column).argsort())
    assert len(scaled.unique()) == len(column)
    arrays = {key: torch.from_numpy(array) for key, array in scaler.learned.items()}
    graph = scale(torch.from_numpy(rows), kind, None, arrays).float()
    torch.testing.assert_close(graph[:, 0], scaled, rtol=1e-6, atol=1e-6)
    assert kind not in ("none", "standard") or torch.equal(graph[:, 0], scaled)
    other = FeatureScaler(kind, None)  # type: ignore[arg-type]
    other.load_state_dict(scaler.state_dict())
    between = np.stack([(np.sort(column)[1:] + np.sort(column)[:-1]) / 2, np.full(len(column) - 1, np.nan)], 1)
    scaled_between = other.apply(between, "t")[:, 0]
    assert (scaled_between.diff() >= 0).all()
    assert (scaled_between <= scaled.sort().values[1:]).all() and (scaled_between >= scaled.sort().values[:-1]).all()


@settings(max_examples=40, deadline=None)
@given(
    level=st.floats(-1e13, 1e13), steps=st.lists(st.floats(1e-4, 1e9), min_size=1, max_size=60),
    kind=st.sampled_from(["none", "standard", "ranks", "quantile_uniform"]), repeats=st.integers(1, 2),
)  # fmt: skip
def test_any_column(level: float, steps: list[float], kind: Any, repeats: int) -> None:
    column = np.repeat(level + np.r_[0.0, np.cumsum(steps)], repeats)
    scaled = learned(column, kind).apply(np.stack([column, column], 1), "t")[:, 0]
    assert torch.equal(scaled.diff() > 0, torch.from_numpy(np.diff(column) > 0))


@pytest.mark.parametrize("kind", get_args(Scaling))
def test_what_loses_nothing_keeps_its_bits(kind: Any) -> None:
    column = np.random.default_rng(0).integers(0, 1000, 300).astype(float)
    plain, scaler = FeatureScaler(kind, None), learned(column, kind)
    rows = np.stack([column, np.arange(300) % 7], 1)
    plain.fit(rows)
    assert plain.learned.keys() == scaler.learned.keys()
    assert torch.equal(plain.apply(rows, "t"), scaler.apply(rows, "t"))
    # Of a column of whole numbers with one close pair, all other numbers keep their bits.
    column[:3] = 0.0, 2.0**40, 2.0**40 + 1
    column[3:] *= 2.0**20
    plain.fit(rows := np.stack([column, np.arange(300) % 7], 1))
    scaler = learned(column, kind)
    changed = plain.apply(rows, "t")[:, 0] != scaler.apply(rows, "t")[:, 0]
    assert changed.nonzero().tolist() == ([] if "quantile" in kind or kind == "ranks" else [[2]])
    # One close pair of fractions is noise.
    column = np.random.default_rng(0).normal(size=300)
    column[:2] = 0.25, 0.25 + 1e-10
    plain.fit(rows := np.stack([column, np.arange(300) % 7], 1)) if kind != "hellinger" else None
    assert kind == "hellinger" or plain.learned.keys() == learned(column, kind).learned.keys()


def test_clipped_numbers_stay_equal() -> None:
    scaler = learned(DAY, "standard", clip=0.5)
    scaled = scaler.apply(np.stack([DAY, DAY], 1), "t")[:, 0]
    assert (scaled[:100] == -0.5).all() and (scaled[-100:] == 0.5).all()


def times(seed: int, rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Unix seconds, of which float32 keeps every 128th, and a distribution that changes after 64 seconds."""
    seconds = np.random.default_rng(seed).integers(0, 512, rows)
    share = np.where(seconds // 64 % 2, 0.9, 0.1)
    return 1.7e9 + seconds[:, None].astype(float), np.stack([share, 1 - share], 1)


HEADS = [
    StructRF(trees=5, out_of_bag=False), BoostedTrees(rounds=60, patience=None, min_leaf=1), AAKNN(),
    CostSensitiveForest(trees=5),
]  # fmt: skip


@pytest.mark.parametrize("scaling", ["none", "standard", "quantile_normal"])
@pytest.mark.parametrize("head", HEADS, ids=lambda head: type(head).__name__)
def test_seconds_predict_as_well_as_small_numbers(head: FittedHead, scaling: Any, tmp_path: Path) -> None:
    X, D = times(0)
    fitted = LDLRegressor(head, scaling=scaling).fit(X, D)
    small = LDLRegressor(head, scaling=scaling).fit(X - 1.7e9, D)
    test, true = times(1)
    # Single rows may differ, since rounding decides between neighbours, or splits, that are equally good.
    error, wanted = (np.abs(found - true).mean() for found in (fitted.predict(test), small.predict(test - 1.7e9)))
    assert error < wanted + 0.02 and wanted < 0.3
    task = fitted.predictor_.task
    reloaded = Predictor.from_checkpoint(saved(task, tmp_path / "a.ckpt"))
    assert np.array_equal(reloaded.predict(test).distribution, fitted.predict(test))
    with torch.no_grad():
        graph = Deployed(task).eval()(torch.from_numpy(test))[0]
    np.testing.assert_allclose(graph, fitted.predict(test), atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_features_on_disk(dtype: Any, tmp_path: Path) -> None:
    X, D = times(0)
    (tmp_path / "t").mkdir()
    np.save(tmp_path / "t" / "features.npy", X.astype(dtype))
    np.save(tmp_path / "t" / "labels.npy", D)
    for scaling in ("none", "standard"):
        data = TabularLDL(str(tmp_path / "t"), scaling=scaling, in_memory=0.0)  # type: ignore[arg-type]
        data.setup()
        assert isinstance(data.features, RowFile)
        scaled = data.scaled[torch.from_numpy(data.split.train)][:, 0]
        assert len(scaled.unique()) == len(np.unique(X[data.split.train]))
        np.savez(tmp_path / "t.npz", features=X, labels=D)
        memory = TabularLDL(str(tmp_path / "t.npz"), scaling=scaling)  # type: ignore[arg-type]
        memory.setup()
        assert torch.equal(scaled, memory.scaled[torch.from_numpy(data.split.train)][:, 0])


def test_a_model_without_offsets_keeps_its_scaling(tmp_path: Path) -> None:
    """A checkpoint of an earlier version scales as it was trained."""
    X, D = times(0)
    np.savez(tmp_path / "t.npz", features=X, labels=D)
    data = TabularLDL(str(tmp_path / "t.npz"), scaling="none")
    data.setup()
    assert data.scaler.learned["mean"][0] > 1e9
    data.prepare_as({"features": None, "key": None, "scaling": {"kind": "none", "clip": None}})
    assert torch.equal(data.scaled, torch.from_numpy(X).float())
    with pytest.raises(LDLError, match="have 2 features, but the checkpoint was trained on 1"):
        learned_of_one = FeatureScaler("none", None)
        learned_of_one.fit(X)
        learned_of_one.keep_distinct(X, np.arange(len(X)))
        learned_of_one.transform(np.zeros((3, 2)))
