"""Folds are read back to the last bit, and all processes train the same ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ldl.backbones.base import Identity
from ldl.collective import Collective
from ldl.data import TabularLDL
from ldl.edges import BSDS500
from ldl.errors import LDLError
from ldl.heads import Softmax
from ldl.jobs.crossval import crossvalidate
from ldl.jobs.folds import Folds, all_folds
from ldl.run import resume
from ldl.task import Task

ONCE = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu", "max_epochs": 1}


@pytest.fixture
def data(tmp_path: Path) -> TabularLDL:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "table.npz", features=rng.normal(size=(30, 3)), labels=rng.dirichlet(np.ones(3), 30))
    data = TabularLDL(path=str(tmp_path / "table.npz"), folds=3, val_fraction=0.2, batch_size=32)
    data.setup()
    return data


def softmax() -> Task:
    return Task(Softmax(), Identity(), lambda groups: torch.optim.SGD(groups, lr=0.1))


def test_a_finished_fold_is_read_to_the_last_bit(data: TabularLDL, tmp_path: Path) -> None:
    folds = Folds(softmax, data, 0, ONCE, tmp_path, key={"of": "these"}, draws=False)
    assert folds.read(1) is None
    task, tested = folds.fit(1)
    stored = folds.read(1)
    assert stored is not None and stored.content["folds"] == tested.content["folds"]
    assert stored.rows.keys() == tested.rows.keys()
    assert all(np.array_equal(stored.rows[name], tested.rows[name]) for name in tested.rows)
    weights = folds.restore(1).state_dict()
    assert data.fold == 1 and all(torch.equal(weights[name], value) for name, value in task.state_dict().items())


@pytest.mark.parametrize("damage", [b"PK", b"PK\x03\x04 and no archive"])
def test_a_damaged_fold_is_named(data: TabularLDL, tmp_path: Path, damage: bytes) -> None:
    folds = Folds(softmax, data, 0, ONCE, tmp_path, key={"of": "these"}, draws=False)
    folds.fit(0)
    assert folds.read(0) is not None
    (tmp_path / "fold_0" / "rows.npz").write_bytes(damage)
    with pytest.raises(LDLError, match="fold_0 cannot be read: .*; remove it"):
        folds.read(0)
    assert folds.read(1) is None


class _Behind(Collective):
    """With a second process that trains the first fold after those of this one."""

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        return [tensor, torch.cat([tensor, torch.zeros_like(tensor[:1])])]


def test_processes_that_train_other_folds_are_refused(data: TabularLDL, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them did not see on its disk that the first fold is done."""
    monkeypatch.setattr(resume, "current_collective", _Behind)
    with pytest.raises(LDLError, match="process 1 trains folds 2, 1, 0, but process 0 trains folds 2, 1; let --run"):
        crossvalidate(softmax, data, [2, 1], trainer=ONCE)


def test_data_without_folds_are_named() -> None:
    with pytest.raises(LDLError, match="BSDS500 has a published split and no folds; take data with folds"):
        all_folds(BSDS500("unused"), "take data with folds")
