"""What a data module serves is of the weights that are measured and trained on, a checkpoint's too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl

from ldl.backbones.timm import Timm
from ldl.data import UTKFace
from ldl.heads import Softmax
from ldl.task import Task


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("options", [{"freeze": True}, {"freeze_groups": 5, "views": 2}], ids=["features", "views"])
def test_a_checkpoint_has_what_its_own_fixed_layers_make(options: dict[str, Any], root: Path, tmp_path: Path) -> None:
    """Whatever random network the task begins with that loads it."""

    def trainer() -> pl.Trainer:
        quiet: dict[str, Any] = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        return pl.Trainer(max_epochs=1, accelerator="cpu", enable_checkpointing=False, **quiet)

    def task() -> Task:
        return Task(Softmax(), Timm("mobilenetv2_035", **options))

    def served() -> Any:
        return data.features_key or data.views.key

    data, run, trained = UTKFace(root=str(root), crop_size=32, protocol="holdout", val_fraction=0), trainer(), task()
    run.fit(trained, data)
    (expected,) = run.test(trained, data, verbose=False)
    run.save_checkpoint(file := tmp_path / "a.ckpt")
    key = served()
    (found,) = trainer().test(task(), data, ckpt_path=file, weights_only=True, verbose=False)
    assert found == pytest.approx(expected, nan_ok=True)
    trainer().fit(task(), data, ckpt_path=file, weights_only=True)
    assert served() == key
