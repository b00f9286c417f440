"""Features that are not known: kept where that is asked for, with every scaling."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ldl.data.tables.scaling import FeatureScaler
from ldl.data.tables.tabular import TabularLDL
from ldl.data.tables.tabular_values import TabularValues
from ldl.errors import LDLError

CSV = "a,b,label:x,label:y\n1,,0.5,0.5\n2,nan,0.25,0.75\n3,4,1,0\nNA,5,0,1\n"
NAN = np.nan


@pytest.mark.parametrize("kind", ["standard", "hellinger", "quantile_normal", "quantile_uniform", "none"])
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
        np.testing.assert_allclose(scaled[known, f], expected, atol=0.3 if "quantile" in kind else 1e-9)


@pytest.mark.parametrize("kind", ["standard", "hellinger", "quantile_normal", "none"])
@pytest.mark.filterwarnings("error")
def test_a_feature_that_no_row_knows_is_no_error(kind: str) -> None:
    features = np.array([[1.0, NAN], [2, NAN], [4, NAN]])
    scaler = FeatureScaler(kind, None)  # type: ignore[arg-type]
    scaler.fit(features)
    other = FeatureScaler(kind, None)  # type: ignore[arg-type]
    other.load_state_dict(scaler.state_dict())
    assert np.array_equal(np.isnan(other.transform(features)), np.isnan(features))


def test_csv_files_say_it_in_several_ways(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(CSV)
    data = TabularLDL(path=str(tmp_path / "table.csv"), missing="keep", scaling="none", folds=2, val_fraction=0)
    data.setup()
    assert data.has_missing
    expected = [[1, NAN], [2, NAN], [3, 4], [NAN, 5]]
    assert torch.equal(data.scaled.isnan(), torch.tensor(expected).isnan())
    with pytest.raises(LDLError, match="line 2, column 'b' is '', not a finite number"):
        TabularLDL(path=str(tmp_path / "table.csv")).setup()
    (tmp_path / "table.csv").write_text(CSV.replace("nan", "many"))
    with pytest.raises(LDLError, match="column 'b' is 'many', not a finite number"):
        TabularLDL(path=str(tmp_path / "table.csv"), missing="keep").setup()
    (tmp_path / "table.csv").write_text(CSV.replace("0.25", ""))
    with pytest.raises(LDLError, match="column 'label:x' is ''"):
        TabularLDL(path=str(tmp_path / "table.csv"), missing="keep").setup()


def test_values_keep_missing_features_too(tmp_path: Path) -> None:
    features = np.arange(24.0).reshape(12, 2)
    features[3, 1] = NAN
    np.savez(tmp_path / "table.npz", features=features, value=np.arange(12.0))
    data = TabularValues(path=str(tmp_path / "table.npz"), missing="keep", folds=2, val_fraction=0)
    data.setup()
    assert int(data.scaled.isnan().sum()) == 1
    with pytest.raises(LDLError, match="features row 3, column 1 is nan"):
        TabularValues(path=str(tmp_path / "table.npz")).setup()
    np.savez(tmp_path / "table.npz", features=features, value=np.where(np.arange(12) == 5, NAN, 1.0))
    with pytest.raises(LDLError, match="values row 5"):
        TabularValues(path=str(tmp_path / "table.npz"), missing="keep").setup()
