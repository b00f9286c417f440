"""What a test or prediction takes from the command line, beside the model of its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.paths import ROOT

from ldl.bags.bagged import Bagged
from ldl.bags.each_instance import EachInstance
from ldl.command import main
from ldl.edges.pixel_features import PixelFeatures
from ldl.heads import MaxEnt, Pool, Scaled, Softmax, StructRF
from ldl.spec import differences, to_spec, with_changes

pytestmark = pytest.mark.usefixtures("blank_charts")

RUN = [
    *("--model.head=Softmax", "--model.backbone=Timm", "--model.backbone.name=test_resnet", "--data.turns=1"),
    *("--data.val_fraction=0", "--trainer.max_epochs=1", "--trainer.limit_train_batches=2", "--wandb.mode=disabled"),
    *("--trainer.enable_progress_bar=false", "--trainer.accelerator=cpu"),
]


def kl(folder: Path) -> float:
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))["mean"]["kl"]


@pytest.mark.slow
def test_options_that_may_change_are_those_that_were_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mirror images, which a test may look at too, are looked at, and that is said; what was trained stays."""
    main([*RUN, "--run_dir", str(tmp_path / "run")])
    test = ["--stage=test", f"--ckpt_path={tmp_path / 'run/checkpoints/last.ckpt'}"]
    assert "in place of" not in capsys.readouterr().out
    config = tmp_path / "config.yaml"
    config.write_text("model: {backbone: {class_path: Timm, init_args: {name: test_vit, mirror: true}}}")
    main(
        [*test, "-c", str(ROOT / "configs/default.yaml"), "-c", str(config), *RUN, "--run_dir", str(tmp_path / "same")]
    )
    assert "in place of" not in capsys.readouterr().out
    main([*test, "--model.backbone.mirror=true", "--run_dir", str(tmp_path / "mirrored")])
    assert "backbone: mirror True in place of False\n" in capsys.readouterr().out
    assert kl(tmp_path / "same") == kl(tmp_path / "run") != kl(tmp_path / "mirrored")
    for option, says in (
        ("--model.backbone.name=test_vit", "backbone has name 'test_resnet' instead of 'test_vit'"),
        ("--model.head=LDLF", "head has Softmax instead of LDLF"),
    ):
        with pytest.raises(SystemExit):
            main([*test, option, "--run_dir", str(tmp_path / "other")])
        said = capsys.readouterr().err
        assert said == f"error: the checkpoint's {says}: --stage test and predict take it as it was trained\n"


def test_changes_go_into_the_parts_and_into_no_other_class() -> None:
    spec = to_spec(Scaled(StructRF(trees=3)))
    found, words = with_changes(spec, Scaled(StructRF(trees=5, threads=2)))
    assert found["init_args"]["head"]["init_args"]["threads"] == 2 and words == ["head.threads 2 in place of None"]
    assert found["init_args"]["head"]["init_args"]["trees"] == 3
    pool, words = with_changes(to_spec(Pool([MaxEnt(), StructRF()])), Pool([MaxEnt(), StructRF(threads=2)]))
    assert pool == to_spec(Pool([MaxEnt(), StructRF(threads=2)])) and words == ["members[1].threads 2 in place of None"]
    assert with_changes(spec, Scaled(StructRF(threads=2)), asked=lambda where: where == "threads") == (spec, [])
    other = Scaled(StructRF(trees=5, depth=3))
    assert differences(spec, other, asked=lambda where: where == "head.depth") == ["head.depth 20 instead of 3"]
    assert with_changes(spec, Scaled(MaxEnt())) == (spec, [])
    assert with_changes(spec, StructRF(threads=2)) == (spec, [])
    assert spec["init_args"]["head"]["init_args"]["threads"] is None


def test_saved_parts_get_their_current_paths() -> None:
    """A configuration of a test holds the paths of a checkpoint, and the parser imports no old one."""
    head, backbone = Scaled(Bagged(Softmax())), EachInstance(PixelFeatures())
    old_head, old_backbone = to_spec(head), to_spec(backbone)
    old_head["init_args"]["head"]["class_path"] = "ldl.heads.bagged.Bagged"
    old_backbone["class_path"] = "ldl.backbones.EachInstance"
    old_backbone["init_args"]["backbone"]["class_path"] = "ldl.backbones.pixel_features.PixelFeatures"
    assert with_changes(old_head, head) == (to_spec(head), [])
    assert with_changes(old_backbone, backbone) == (to_spec(backbone), [])
    assert old_backbone["class_path"] == "ldl.backbones.EachInstance"  # the checkpoint itself stays
