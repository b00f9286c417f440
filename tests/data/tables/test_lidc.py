"""LIDC-IDRI: a fake tree in its layout, and the real files where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fakes.image_votes import GEOMETRY, lidc

from ldl.data import LIDC
from ldl.errors import LDLError
from ldl.validation.files import EXAMPLES


def _opened(root: Path, **options: Any) -> LIDC:
    data = LIDC(root=str(root), **options)
    data.setup()
    return data


def test_nodules_have_the_distribution_of_their_ratings(tmp_path: Path) -> None:
    data = _opened(lidc(tmp_path), folds=3, val_fraction=0.2)
    assert data.labels.kind == "ordinal" and set(data.labels.axes[0]) <= {1, 2, 3, 4, 5}
    assert data.feature_names == list(GEOMETRY) and data.size == 24
    assert data.columns["votes"].tolist() == [1, 2, 3, 4] * 6
    assert (data.protocol, data.num_folds, data.leak) == ("group_exclusive", 3, 0)
    assert _opened(tmp_path, protocol="leave_one_group_out", val_fraction=0).num_folds == 12
    assert len(_opened(tmp_path, vote_column="texture", folds=3).labels) == 1


def test_files_that_are_absent_are_named(tmp_path: Path) -> None:
    lidc(tmp_path)
    (tmp_path / "lidc" / "readings.csv").unlink()
    with pytest.raises(LDLError, match="no LIDC-IDRI at .*readings.csv: it lies as lidc/nodules.csv"):
        _opened(tmp_path)


def test_the_real_files(ldl_data: Path) -> None:
    if not (ldl_data / "lidc").is_dir():
        pytest.skip("LDL_DATA has no lidc")
    data = _opened(ldl_data, weighting="dirichlet")
    assert data.size == 2673 and data.columns["votes"].sum() == 6859 and len(set(data.groups.tolist())) == 875
    assert data.prior.concentration == pytest.approx(3.9, abs=0.3)


def test_the_example_has_the_real_malignancy(ldl_data: Path) -> None:
    if not (ldl_data / "lidc").is_dir():
        pytest.skip("LDL_DATA has no lidc")
    released = {name: pd.read_csv(ldl_data / "lidc" / name) for name in ("nodules.csv", "readings.csv")}
    example = {name: pd.read_csv(EXAMPLES / name) for name in released}
    pd.testing.assert_frame_equal(example["nodules.csv"], released["nodules.csv"].drop(columns="readings"))
    ratings = released["readings.csv"][["item", "malignancy"]].rename(columns={"malignancy": "rating"})
    pd.testing.assert_frame_equal(example["readings.csv"], ratings)


def test_no_line_names_an_option_that_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _opened(lidc(tmp_path), folds=3)
    assert "label_type" not in capsys.readouterr().out
