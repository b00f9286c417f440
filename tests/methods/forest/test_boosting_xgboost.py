"""Boosting a tree a label against XGBoost on rows that are repeated once a label, with their mass as weight."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from ldl.collective import Collective
from ldl.data.tables.distributions import read_table
from ldl.heads import BoostedTrees
from ldl.labels import LabelSpace
from ldl.metrics.functional import kl

ROUNDS, DEPTH, ETA, LAMBDA = 50, 4, 0.2, 3.0


@pytest.mark.parametrize("name", ["SJAFFE", "Natural_Scene"])
def test_equals_xgboost_on_repeated_rows(name: str) -> None:
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    path = Path(os.environ.get("LDL_DATA", "")) / f"ldl/{name}.mat"
    if not path.is_file():
        pytest.skip(f"{path} is not there; set LDL_DATA")
    table = read_table(path)
    # With a bin for each value the bins are the same.
    features = np.stack([np.digitize(x, np.quantile(x, np.arange(1, 32) / 32)) for x in table.features[:, :12].T], 1)
    features, target = features.astype(np.float32), table.distributions.astype(np.float32)
    count, labels = target.shape
    row, label = np.nonzero(target)
    start = np.log(target.mean(0, dtype=np.float64)).astype(np.float32)
    margin = np.tile(start, (count, 1))
    repeated = xgboost.DMatrix(features[row], label, weight=target[row, label], base_margin=margin[row])
    rules = {"objective": "multi:softprob", "num_class": labels, "tree_method": "hist", "nthread": 1}
    rules |= {"eta": ETA, "max_depth": DEPTH, "lambda": LAMBDA, "min_child_weight": 0}
    expected = xgboost.train(rules, repeated, ROUNDS).predict(xgboost.DMatrix(features, base_margin=margin))
    head = BoostedTrees(
        rounds=ROUNDS, depth=DEPTH, learning_rate=ETA / 2, l2=LAMBDA / 2, trees="label", min_leaf=1, sampling=1.0,
        features=1.0, search="histogram", patience=None, threads=1,
    )  # fmt: skip
    head.build(features.shape[1], LabelSpace.nominal([str(c) for c in range(labels)]))
    rows, distributions = torch.from_numpy(features), torch.from_numpy(target)
    head.fit(rows, distributions, Collective())
    found = head(rows)
    mine, its = (float(kl(each, distributions).mean()) for each in (found, torch.from_numpy(expected)))
    assert mine == pytest.approx(its, abs=1e-5)
    assert float(kl(found, torch.from_numpy(expected)).mean()) < 1e-5
