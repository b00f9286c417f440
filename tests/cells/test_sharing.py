"""Large arrays are held once: what comes back is equal, mapped, and one's own as soon as it is written to."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from ldl.cells.coordinator import _known, _there
from ldl.cells.executors import devices_of, threads_of
from ldl.cells.sharing import SMALL, share, unshare
from ldl.data import RotatedDigits


def test_large_arrays_are_maps(tmp_path: Path) -> None:
    large, small = np.arange(SMALL, dtype=np.float32), np.arange(3)
    value = {"large": large, "small": small, "same": large, "tensor": torch.from_numpy(large).reshape(2, -1)}
    text = share(value, tmp_path / "shared")
    assert len(text) < 5000
    one, other = unshare(text), unshare(text)
    assert np.array_equal(one["large"], large) and torch.equal(one["tensor"], value["tensor"])
    assert isinstance(one["large"].base, np.memmap) and one["same"] is one["large"]
    assert not isinstance(one["small"].base, np.memmap) and len(list((tmp_path / "shared").iterdir())) == 2
    one["large"][0], one["tensor"][0, 0] = 7, 7
    assert other["large"][0] == 0 and other["tensor"][0, 0] == 0


def test_a_data_module_serves_the_same(tmp_path: Path) -> None:
    data = RotatedDigits(turns=1)
    data.setup()
    other = unshare(share(data, tmp_path))
    for mine, its in zip(data.train_dataloader(), other.train_dataloader(), strict=True):
        assert all(torch.equal(mine[name], its[name]) for name in mine)
    assert len(list(tmp_path.iterdir())) >= 2


def test_gpus_are_dealt() -> None:
    assert devices_of(4, None, 3) == ["0", "1", "2", "0"]
    assert devices_of(2, "GPU-a,5", 2) == ["GPU-a", "5"]
    assert devices_of(2, None, 0) == ["", ""]


def test_threads_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    assert threads_of(3)["OMP_NUM_THREADS"] == "2" and threads_of(20)["OMP_NUM_THREADS"] == "1"


def test_workers_of_a_cluster_have_the_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("LDL_DATA", "LDL_CACHE", "LDL_WEIGHTS")
    for name in names:
        monkeypatch.setenv(name, str(tmp_path))
    known = _known()
    for name in names:
        monkeypatch.delenv(name)
    assert _there(str(Path.cwd()), known, lambda: [os.environ.get(name) for name in names]) == 3 * [str(tmp_path)]
