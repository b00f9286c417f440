"""Every shipped YAML runs through ``main``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from fakes import digit_images, edge_images, face_releases, image_votes, pointing04
from fakes.paths import CONFIGS
from fakes.user_inputs import check_predictor, kept_data

from ldl.command import main
from ldl.command.command_line import parse_anew
from ldl.command.configs import find_config
from ldl.errors import LDLError

SHORT = ["--trainer.max_epochs=1", "--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]
LISTS = {"ImageLDL": "split.csv", "ImageValues": "values.csv"}
"""Lists of images."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small table, to run configurations whose data may be missing here; named so that labels of all sets fit."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("data")
    for count in (4, 5, 6):
        np.savez(
            folder / f"{count}.npz", features=rng.exponential(size=(60, 59)), labels=rng.dirichlet(np.ones(count), 60)
        )
    bags = [f"{bag % 2},{bag},{rng.normal():.3f},{rng.normal() + bag % 2:.3f}\n" for bag in range(20) for _ in range(3)]
    (folder / "bags.csv").write_text("".join(bags))
    return folder


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small trees of all data sets of pictures."""
    root = tmp_path_factory.mktemp("faces")
    face_releases.fgnet_aam(root / "FG-NET_AAM.mat")
    pointing04.pointing04(root, persons=2)
    digit_images.mnist(digit_images.bsds(root))
    image_votes.voted(image_votes.cifar10h(image_votes.ferplus(image_votes.lidc(root))))
    return face_releases.morph_release(face_releases.fgnet(face_releases.utkface(root)))


@pytest.fixture(scope="module")
def edges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small tree of edges."""
    return edge_images.bsds(tmp_path_factory.mktemp("edges"))


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blank: None) -> None:
    """No pretrained weights and no cache from outside; charts are drawn in tests of their own."""
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))


def _name(path: Path) -> str:
    return path.stem if path.parent in (CONFIGS, CONFIGS / "runs") else f"{path.parent.name}_{path.stem}"


def _data_options(config: dict, table: Path, faces: Path, edges: Path) -> list[str]:
    data = config.get("data", {})
    if data.get("class_path") == "BSDS500":
        options = [f"--data.path={edges}", "--data.crop=32", "--data.batch_size=2"]
        if "backbone" not in config["model"]:
            return options
        return [*options, "--model.backbone.name=mobilenetv2_050", "--model.backbone.pretrained=false"]
    if data.get("class_path") == "TabularLDL":
        arguments = data["init_args"]
        count = len(arguments.get("label_names") or arguments.get("label_values") or range(4))
        return [f"--data.path={table / f'{count}.npz'}"]
    if data.get("class_path") == "Bags":
        return [f"--data.path={table / 'bags.csv'}", "--data.folds=2"]
    if data.get("class_path") in ("FGNET", "Morph", "Pointing04", "UTKFace", *LISTS, "FERPlus", "CIFAR10H"):
        options = [f"--data.root={faces}", "--data.crop_size=32", "--data.batch_size=16"]
        options += [f"--data.path={LISTS[data['class_path']]}"] if data["class_path"] in LISTS else []
        options += ["--data.val_fraction=0.25"] if data["class_path"] == "Morph" else []
        backbone = config.get("model", {}).get("backbone", {}).get("init_args", {})
        options += ["--model.backbone.pretrained=false"] if "pretrained" in backbone else []
        # Compiling takes a minute.
        return options + (["--model.backbone.compiled=false"] if backbone.get("compiled") else [])
    if data.get("class_path") in ("MixedDigits", "PosedFaces", "ShiftedDigits", "ShiftedFaces"):
        return [f"--data.root={faces}", "--data.pictures=40", "--data.train_fraction=0.5", "--model.backbone.pool=20"]
    if data.get("class_path") == "LIDC":
        return [f"--data.root={faces}", "--data.folds=3", "--data.val_fraction=0.2"]
    if data.get("class_path") == "FGNETAAM":
        return [f"--data.path={faces / 'FG-NET_AAM.mat'}"]
    return ["--data.turns=1"]


RUNS = sorted(CONFIGS.glob("runs/**/*.yaml"))
OTHER_HEADS = {
    **dict.fromkeys(("pretrain", "dldl_v2", "softmax_blended", "softmax_enlarged", "softmax_crisp"), "softmax"),
    "structured": "structurededges",
    "default": "ldlf",
    "tabular": "boostedtrees",
}
"""Of runs that are not named after their head."""
QUICKER = {
    "BoostedTrees": ["rounds=3"],
    "CostSensitiveForest": ["trees=2"],
    "DSNA": ["trees=2"],
    "MaxEnt": ["iterations=5"],
    "Pool": ["folds=2"],
    "Trained": ["epochs=1"],
    "StructuredEdges": ["trees=2", "patches=200", "votes=1"],
}
"""What makes heads quick of which a tree alone takes seconds."""
SMALL: dict[str, dict[str, int]] = {
    "BoostedTrees": {"rounds": 3},
    "LDLF": {"trees": 2},
    "MaxEnt": {"iterations": 5},
    "Pool": {"folds": 2},
    "StructRF": {"trees": 2},
    "Trained": {"epochs": 1, "repeats": 1},
}
"""The same of members of pools."""


def _few(members: Any) -> Any:
    """The members of a pool as they are configured, but for sizes."""
    if isinstance(members, list):
        return [_few(member) for member in members]
    if isinstance(members, dict):
        kept = {name: _few(value) for name, value in members.items()}
        if small := SMALL.get(kept.get("class_path", "")):
            kept["init_args"] = {**kept.get("init_args", {}), **small}
        return kept
    return members


def _quick(head: Any) -> list[str]:
    """Options that make a configured head quick."""
    name = head if isinstance(head, str) else head["class_path"]
    options = [f"--model.head.{option}" for option in QUICKER.get(name, [])]
    if name == "Pool":
        options.append(f"--model.head.members={json.dumps(_few(head['init_args']['members']))}")
    if name in ("Mirrored", "Scaled"):
        options.append(f"--model.head.head={json.dumps(_few(head['init_args']['head']))}")
    return options


FAST = {"default", "tabular", "tabular_ldlf", "tabular_softmax", "bags_milboost"}
"""Runs of the default tier."""


def _tiers() -> list[Any]:
    """The default tier, and in the slow tier the first run of every head and of every data set."""
    found, seen = [], set[str]()
    for path in [CONFIGS / "default.yaml", *RUNS]:
        config = yaml.safe_load(path.read_text())
        head = config["model"]["head"]
        new = {head if isinstance(head, str) else head["class_path"], path.parent.name}
        if _name(path) in FAST or new - seen:
            marks = [] if _name(path) in FAST else [pytest.mark.slow]
            found.append(pytest.param(path, marks=marks, id=_name(path)))
            seen |= new
    return found


checked: set[str] = set()
"""What a predictor was tried on."""


@pytest.mark.parametrize("path", _tiers())
def test_run(
    path: Path, table: Path, faces: Path, edges: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = kept_data(monkeypatch)
    config = yaml.safe_load(path.read_text())
    head = config["model"]["head"]
    options = _data_options(config, table, faces, edges)
    options += _quick(head)
    main(["-c", str(path), *options, *SHORT, "--run_dir", str(tmp_path)])
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["mean"]["kl"] >= 0
    bagged = path.parent.name == "bags" and path.stem == "softmax"
    named = path.stem.removesuffix("_paper").removesuffix("_long").removeprefix("finetuned_").removeprefix("resnet_")
    named = "bagged" if bagged else named
    assert results["head"].lower() == OTHER_HEADS.get(named, named)
    # Every head on rows, pictures and so on, and every data set.
    kind = sorted(kept[0].preprocessing or {})
    if new := {type(kept[0]).__name__, f"{results['head']} {kind}"} - checked:
        check_predictor(tmp_path, kept[0])
        checked.update(new)


def test_names() -> None:
    for path in RUNS:
        assert (
            find_config(_name(path))
            == find_config(str(path.relative_to(CONFIGS / "runs").with_suffix("")))
            == str(path)
        )


PARTS = [
    path for folder in ("heads", "trainer", "logger", "data") for path in sorted((CONFIGS / folder).glob("*.yaml"))
]


@pytest.mark.slow
def test_all_files_are_parsed() -> None:
    for path in RUNS:
        own = path.parent.name in ("tabular", "bags", "images", "imagevalues") or path.stem == "tabular"
        parse_anew(["-c", str(path), *(["--data.path=x"] if own else [])])
    for path in PARTS:
        more = ["--data.path=x"] if path.stem == "tabular" else []
        parse_anew(["-c", str(CONFIGS / "default.yaml"), "-c", str(path), *more])


@pytest.mark.parametrize("path", sorted((CONFIGS / "sweeps").glob("*.yaml")), ids=lambda path: path.stem)
def test_sweep_names_real_options(path: Path) -> None:
    sweep = yaml.safe_load(path.read_text())
    config = CONFIGS.parent / sweep["command"][sweep["command"].index("-c") + 1]
    values = {
        name: spec["values"][0] if "values" in spec else spec["max"] for name, spec in sweep["parameters"].items()
    }
    parsed = parse_anew(["-c", str(config), *(f"--{name}={value}" for name, value in values.items())]).values
    assert parsed.model.head.init_args.trees == values["model.head.trees"]
    with pytest.raises(LDLError, match="has no option 'no_such_option'"):
        parse_anew(["-c", str(config), "--model.head.no_such_option=1"])
