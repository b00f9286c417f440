"""Loader processes serve the same batches, and receive little."""

from __future__ import annotations

import io
import pickle
from importlib import import_module
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pytest
import torch
from fakes.face_releases import fgnet

from ldl.data import loader
from ldl.faces import FGNET

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.slow
def test_loader_processes_serve_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "PRELOADED", "ldl.data")  # imports less
    data = FGNET(root=str(fgnet(tmp_path)), crop_size=16, batch_size=8, num_workers=1)
    data.setup()
    theirs = list(data.train_dataloader())
    data.num_workers = 0
    for one, other in zip(theirs, data.train_dataloader(), strict=True):
        assert list(one) == list(other)
        for name in one:
            torch.testing.assert_close(one[name], other[name], rtol=0, atol=0, equal_nan=True)


def test_what_goes_to_a_loader_process_is_small(tmp_path: Path) -> None:
    """Neither the whole data module, nor the trainer, nor a memory map of the crops."""
    data = FGNET(root=str(fgnet(tmp_path)), crop_size=64)
    data.setup()
    data.trainer = lambda: None  # type: ignore[assignment]  # cannot be pickled
    assert data.input_shape == (3, 64, 64)  # the crops are open
    instances = data.dataset(data.split.train, train=True)
    file = io.BytesIO()
    ForkingPickler(file).dump(instances)
    assert file.tell() < data.size * 64 * 64 * 3 / 10
    received: Any = pickle.loads(file.getvalue())
    server = vars(received.source)
    assert not server.keys() & {"trainer", "columns", "split", "records", "names", "values", "groups"}
    assert data.names is not None and data.columns and data.trainer


def test_what_the_server_of_loader_processes_imports_has_everything() -> None:
    preloaded = vars(import_module(loader.PRELOADED))
    assert "Command" in preloaded and "run" in preloaded
