"""Methods of the tabular benchmark: what they depend on, and that they are what users have."""

from __future__ import annotations

from functools import partialmethod
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
import yaml
from places import ROOT
from scipy.sparse import csr_matrix

from benchmarks.common.folds import inputs_of
from benchmarks.tables import methods, tabular
from ldl.data import TabularLDL
from ldl.heads import MaxEnt


@pytest.mark.parametrize(("share", "handed"), [(0.05, True), (0.3, False)])
def test_sparse_rows_are_handed_to_peers_that_take_them(share: float, handed: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features = (rng.random((200, 40)) < share) * rng.random((200, 40))  # without ties, which are broken by order
    np.savez(tmp_path / "sparse.npz", features=features, labels=rng.dirichlet([1, 1, 1], 200))
    data = TabularLDL(path=str(tmp_path / "sparse.npz"), scaling="none", val_fraction=0.0, folds=5)
    data.setup()
    arguments = {"n_estimators": 20, "random_state": 0, "max_features": 1.0}
    predicted = []
    for takes in (True, False):
        method = tabular.Method("trees", "sklearn.ensemble.RandomForestRegressor", arguments, sparse=takes)
        with patch.object(methods, "csr_matrix", wraps=csr_matrix) as spy:
            predicted.append(methods.fit(method, {}, data, 0)(inputs_of(data)[data.split.test]))
        assert spy.called == (takes and handed)
    torch.testing.assert_close(*predicted, atol=1e-6, rtol=0)
    assert predicted[0].std(0).min() > 0.01


def test_other_defaults_of_a_head_are_another_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = {"members": [{"class_path": "MaxEnt"}, {"class_path": "MeanPredictor"}]}
    methods = [tabular.Method("one", "MaxEnt"), tabular.Method("pool", "Pool", pool), tabular.Method("kNN", "a.Peer")]

    def digests() -> list[int]:
        return [tabular.digest(method, tabular.Choice(), False) for method in methods]

    before = digests()
    assert digests() == before and len({*before}) == 3
    plain = MaxEnt.__init__
    monkeypatch.setattr(MaxEnt, "__init__", partialmethod(plain, l2=0.5))
    assert [old == new for old, new in zip(before, digests())] == [False, False, True]


def test_the_pool_is_measured_beside_each_of_its_members() -> None:
    """And is that of the run that users have, in the table of heads and peers, too."""
    methods = yaml.safe_load((ROOT / "benchmarks/tables/pool.yaml").read_text())["methods"]
    everything = yaml.safe_load((ROOT / "benchmarks/tables/tabular.yaml").read_text())["methods"]
    assert everything["Pool"] == methods["Pool"]
    run = yaml.safe_load((ROOT / "configs/runs/tabular/pool.yaml").read_text())["model"]["head"]
    assert methods.pop("Pool") == run
    assert methods.pop("random forest")["class_path"] == "sklearn.ensemble.RandomForestRegressor"  # the foil
    alone = [{"init_args": {}, **method} for method in methods.values()]
    assert alone == [{"init_args": {}, **member} for member in run["init_args"]["members"]]


def test_what_knows_the_mirror_is_a_run_that_users_have() -> None:
    measured = yaml.safe_load((ROOT / "benchmarks/tables/tabular.yaml").read_text())["methods"]["Pool, mirrored"]
    run = yaml.safe_load((ROOT / "configs/runs/sjaffe/mirrored.yaml").read_text())["model"]["head"]
    assert {name: measured[name] for name in run} == run
