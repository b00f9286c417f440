"""Every shipped YAML runs through ``main``."""

from __future__ import annotations

import json
from pathlib import Path

import fake_edges
import fake_faces
import fake_pictures
import fake_pointing04
import numpy as np
import pytest
import yaml
from jsonargparse import ArgumentError
from places import CONFIGS

from ldl import charts
from ldl.cli import main
from ldl.running.parser import LDLCLI

SHORT = ["--trainer.max_epochs=1", "--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small table, to run configurations whose data may be missing here; named so that labels of all sets fit."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("data")
    for count in (4, 5, 6):
        np.savez(
            folder / f"{count}.npz", features=rng.exponential(size=(60, 7)), labels=rng.dirichlet(np.ones(count), 60)
        )
    bags = [f"{bag % 2},{bag},{rng.normal():.3f},{rng.normal() + bag % 2:.3f}\n" for bag in range(20) for _ in range(3)]
    (folder / "bags.csv").write_text("".join(bags))
    return folder


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small trees of all data sets of pictures."""
    root = tmp_path_factory.mktemp("faces")
    fake_faces.fgnet_aam(root / "FG-NET_AAM.mat")
    fake_pointing04.pointing04(root, persons=2)
    fake_pictures.mnist(fake_pictures.bsds(root))
    return fake_faces.morph_release(fake_faces.fgnet(fake_faces.utkface(root)))


@pytest.fixture(scope="module")
def edges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small tree of edges."""
    return fake_edges.bsds(tmp_path_factory.mktemp("edges"))


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pretrained weights and no cache from outside; charts are drawn in tests of their own."""
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(charts, "overview", lambda *arguments: {})
    monkeypatch.setattr(charts, "learning_curves", lambda *arguments: None)


def _data_options(config: dict, table: Path, faces: Path, edges: Path) -> list[str]:
    data = config.get("data", {})
    if data.get("class_path") == "BSDS500":
        options = [f"--data.path={edges}", "--data.crop=32", "--data.batch_size=2"]
        if "StructuredEdges" in str(config):
            return [*options, "--model.head.patches=200", "--model.head.trees=2", "--model.head.votes=1"]
        return [*options, "--model.backbone.name=mobilenetv2_050", "--model.backbone.pretrained=false"]
    if data.get("class_path") == "TabularLDL":
        arguments = data["init_args"]
        count = len(arguments.get("label_names") or arguments.get("label_values") or range(4))
        return [f"--data.path={table / f'{count}.npz'}"]
    if data.get("class_path") == "Bags":
        return [f"--data.path={table / 'bags.csv'}", "--data.folds=2"]
    if data.get("class_path") in ("FGNET", "Morph", "Pointing04", "UTKFace"):
        options = [f"--data.root={faces}", "--data.crop_size=32", "--data.batch_size=16"]
        options += ["--data.val_fraction=0.25"] if data["class_path"] == "Morph" else []
        backbone = config.get("model", {}).get("backbone", {}).get("init_args", {})
        options += ["--model.backbone.pretrained=false"] if "pretrained" in backbone else []
        # Compiling takes a minute.
        return options + (["--model.backbone.compiled=false"] if backbone.get("compiled") else [])
    if data.get("class_path") in ("MixedDigits", "PosedFaces", "ShiftedDigits", "ShiftedFaces"):
        return [f"--data.root={faces}", "--data.pictures=40", "--data.train_fraction=0.5", "--model.backbone.pool=20"]
    if data.get("class_path") == "FGNETAAM":
        return [f"--data.path={faces / 'FG-NET_AAM.mat'}"]
    return ["--data.turns=1"]


@pytest.mark.parametrize(
    "path", sorted(CONFIGS.glob("runs/*.yaml")) + [CONFIGS / "default.yaml"], ids=lambda path: path.stem
)
def test_run(path: Path, table: Path, faces: Path, edges: Path, tmp_path: Path) -> None:
    config = yaml.safe_load(path.read_text())
    options = _data_options(config, table, faces, edges)
    # Of these a tree alone takes seconds.
    slow = any(name in str(config["model"]["head"]) for name in ("CostSensitiveForest", "DSNA"))
    options += ["--model.head.trees=2"] if slow else []
    main(["-c", str(path), *options, *SHORT, "--run_dir", str(tmp_path)])
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["mean"]["kl"] >= 0
    named = path.stem.replace("default", "_ldlf").replace("dldl_v2", "softmax").replace("pretrain", "softmax")
    named = named.replace("bags_softmax", "bagged").replace("bsds_structured", "structurededges")
    assert results["head"].lower() == named.partition("_paper")[0].rpartition("_")[2]


PARTS = [path for folder in ("heads", "trainer", "logger") for path in sorted((CONFIGS / folder).glob("*.yaml"))]


@pytest.mark.parametrize("path", PARTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_part_composes_with_the_default(path: Path, tmp_path: Path) -> None:
    more = (
        ["--trainer.accelerator=cpu", "--trainer.devices=1", "--trainer.strategy=auto"]
        if path.parent.name == "trainer"
        else []
    )
    more += ["--model.head.iterations=5"] if path.stem == "maxent" else []
    silent = [] if path.parent.name == "logger" else ["--wandb.mode=disabled"]
    main(
        [
            "-c",
            str(CONFIGS / "default.yaml"),
            "-c",
            str(path),
            "--data.turns=1",
            "--trainer.max_epochs=1",
            *more,
            *silent,
        ]
        + ["--trainer.enable_progress_bar=false", "--run_dir", str(tmp_path)]
    )
    assert (tmp_path / "results.json").is_file()


@pytest.mark.parametrize("path", sorted((CONFIGS / "data").glob("*.yaml")), ids=lambda path: path.stem)
def test_data_composes_with_a_head(path: Path, table: Path, faces: Path, edges: Path, tmp_path: Path) -> None:
    options = _data_options(yaml.safe_load(path.read_text()), table, faces, edges)
    main(["-c", str(path), "-c", str(CONFIGS / "heads/softmax.yaml"), *options, *SHORT, "--run_dir", str(tmp_path)])
    assert json.loads((tmp_path / "results.json").read_text())["head"] == "Softmax"


@pytest.mark.parametrize("path", sorted((CONFIGS / "sweeps").glob("*.yaml")), ids=lambda path: path.stem)
def test_sweep_names_real_options(path: Path) -> None:
    sweep = yaml.safe_load(path.read_text())
    config = CONFIGS.parent / sweep["command"][sweep["command"].index("-c") + 1]
    values = {
        name: spec["values"][0] if "values" in spec else spec["max"] for name, spec in sweep["parameters"].items()
    }
    parsed = LDLCLI(["-c", str(config), *(f"--{name}={value}" for name, value in values.items())]).config
    assert parsed.model.head.init_args.trees == values["model.head.trees"]
    with pytest.raises(ArgumentError):
        LDLCLI(["-c", str(config), "--model.head.no_such_option=1"])
