"""A resumed run whose backbone is frozen: its features are those of the checkpoint's weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import timm
from fakes.face_releases import utkface
from safetensors.torch import save_file

from ldl.backbones import timm_network
from ldl.command import main


@pytest.mark.usefixtures("blank")
@pytest.mark.slow
def test_a_resumed_run_has_the_features_of_its_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever random network it would begin with, and where pretrained weights are not at hand any more."""
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LDL_WEIGHTS", str(tmp_path))
    monkeypatch.setattr(timm_network, "not_on_hub", {"test_resnet"})
    save_file(timm.create_model("test_resnet").state_dict(), weights := tmp_path / "test_resnet.safetensors")
    network = ["--model.backbone=Timm", "--model.backbone.name=test_resnet"]
    run = ["--data=UTKFace", "--data.root", str(utkface(tmp_path)), "--data.crop_size=32", "--data.protocol=holdout"]
    run += ["--trainer.max_epochs=1", "--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]
    network += ["--model.head=Softmax", "--model.backbone.freeze=true", "--model.backbone.pretrained=auto"]
    main([*network, *run, "--run_dir", str(tmp_path / "run")])
    weights.unlink()
    last = str(tmp_path / "run/checkpoints/last.ckpt")
    main(["--ckpt_path", last, "--seed_everything=5", "--trainer.max_epochs=2"])
    assert len(list((tmp_path / "cache/features").glob("*/features.npy"))) == 1
