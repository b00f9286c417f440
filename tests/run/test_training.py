"""The callbacks that write checkpoints, and the choice of the best weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint

from ldl.data.synthetic import RotatedDigits
from ldl.errors import LDLError
from ldl.run.signals import StopCheckpoint
from ldl.run.training import best_weights, make_checkpoints


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_the_best_weights_are_kept_with_a_validation_set(share: float, tmp_path: Path) -> None:
    data = RotatedDigits(val_fraction=share)
    data.setup()
    callbacks = make_checkpoints(tmp_path, data)
    names = [each.filename for each in callbacks if isinstance(each, ModelCheckpoint)]
    assert names == (["best", "last"] if share else ["last"])
    stop = next(each for each in callbacks if isinstance(each, StopCheckpoint))
    assert callbacks.index(stop) > len(names) - 1
    if not share:
        with pytest.raises(LDLError, match="--select best needs a validation set"):
            make_checkpoints(tmp_path, data, "best")


def test_nothing_is_best_before_a_validation(tmp_path: Path) -> None:
    checkpoint = ModelCheckpoint(tmp_path, monitor="val_kl", mode="min")
    trainer = pl.Trainer(logger=False, callbacks=[checkpoint], accelerator="cpu", enable_progress_bar=False)
    with pytest.raises(LDLError, match="nothing is validated, so no weights are best"):
        best_weights(trainer)
    checkpoint.best_model_path = "best.ckpt"
    assert best_weights(trainer) == "best.ckpt"
