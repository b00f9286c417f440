"""Tables with one row a vote have one row an item."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.voted_tables import COUNTS, FEATURES, ITEMS, LONG, ROWS, X, opened, shares_of

from ldl.errors import LDLError


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("options", [{}, {"vote_column": "label"}, {"item_column": "item", "rater_column": "rater"}])
def test_one_row_a_vote_beside_features(options: dict[str, Any], suffix: str, tmp_path: Path) -> None:
    table = LONG.merge(FEATURES.assign(item=ITEMS, site=["x", "y"] * (ROWS // 2)), on="item").sample(
        frac=1, random_state=0
    )
    data = opened(tmp_path / f"m{suffix}", table, **options)
    order = [ITEMS.index(name) for name in data.names]
    assert data.size == ROWS and data.feature_names == ["a", "b", "site=x", "site=y"]
    assert np.allclose(shares_of(data), COUNTS.iloc[order] / 3) and np.allclose(data.features[:, :2], X[order])


def test_what_differs_within_an_item_is_named(tmp_path: Path) -> None:
    table = LONG.merge(FEATURES.assign(item=ITEMS), on="item").assign(seconds=range(3 * ROWS))
    with pytest.raises(LDLError, match=r"one row a vote, and 'seconds' differ within an item.*--data.drop"):
        opened(tmp_path / "m.csv", table)
    assert opened(tmp_path / "m.csv", table, drop="seconds").feature_names == ["a", "b"]


def test_an_item_may_have_any_name_beside_one_row_a_vote(tmp_path: Path) -> None:
    table = LONG.merge(FEATURES.assign(item=ITEMS), on="item").rename(columns={"item": "nodule"})
    data = opened(tmp_path / "t.csv", table, item_column="nodule")
    assert data.size == ROWS and data.feature_names == ["a", "b"]
