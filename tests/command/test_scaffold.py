"""Subcommands: plugins to start from, export, the benchmark of edges."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import edge_images
from fakes.paths import load_script
from PIL import Image
from scipy.io import loadmat

from ldl.command import main
from ldl.command.console import command
from ldl.edges import evaluation
from ldl.plugins import PACKAGE

pytestmark = pytest.mark.usefixtures("blank_charts")


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working directory; plugins that are made there are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith(PACKAGE):
            del sys.modules[name]


def run_test(path: Path) -> None:
    """Run all functions of a file of tests."""
    tests = [part for name, part in vars(load_script(path)).items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test()


@pytest.mark.parametrize(
    ("kind", "name", "quick"),
    [
        ("head", "linear_one", "--data.turns=1"),
        pytest.param("data", "Sugars", "", marks=pytest.mark.slow),
    ],
)
def test_a_new_plugin_works(empty: Path, kind: str, name: str, quick: str, capsys: pytest.CaptureFixture[str]) -> None:
    command(["new", kind, name])
    *made, last = capsys.readouterr().out.splitlines()
    module = name.lower()
    assert made == [f"plugins/{module}.py", f"tests/test_{module}.py", f"configs/{module}.yaml"]
    run_test(empty / made[1])
    options = [
        "--trainer.limit_train_batches=2",
        "--trainer.max_epochs=1",
        "--wandb.mode=disabled",
        "--trainer.enable_progress_bar=false",
        "--run_dir=run",
    ]
    main([*last.removeprefix("train it: ldl ").split(), *options, *filter(None, [quick])])
    results = json.loads((empty / "run" / "results.json").read_text())
    assert results["head" if kind == "head" else "data"] == ("LinearOne" if kind == "head" else "Sugars")
    text = (empty / made[0]).read_text()
    with pytest.raises(SystemExit):
        command(["new", kind, name])
    assert "is taken by ldl_plugins" in capsys.readouterr().err and (empty / made[0]).read_text() == text


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["head", "LDLF"], "LDLF is taken by ldl.heads.ldlf.LDLF"),
        (["head", "3a"], "is not a class name"),
        (["head", "Lambda"], "is not a class name; give letters, digits and _, and no keyword of Python"),
        (["head", "There"], "configs/there.yaml exists and was not changed"),
    ],
)
def test_what_cannot_be_made(empty: Path, args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    (empty / "configs").mkdir()
    (empty / "configs" / "there.yaml").write_text("mine")
    with pytest.raises(SystemExit) as ended:
        command(["new", *args])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and message in said and said.count("\n") == 1
    assert sorted(path.name for path in empty.rglob("*")) == ["configs", "there.yaml"]


@pytest.mark.slow
def test_edges_are_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = edge_images.bsds(tmp_path / "set", {"test": 2}) / "groundTruth" / "test"
    (tmp_path / "maps").mkdir()
    for file in truth.glob("*.mat"):
        drawn = loadmat(file)["groundTruth"][0, 0]["Boundaries"][0, 0]
        Image.fromarray(255 * drawn).save(tmp_path / "maps" / f"{file.stem}.png")
    options = ["--pred", str(tmp_path / "maps"), "--gt", str(truth), "--thresholds", "3", "--workers", "1", "--out"]
    command(["edges-eval", *options, str(tmp_path / "a.json")])
    evaluation.main([*options, str(tmp_path / "b.json")])
    first, second = ((tmp_path / f"{name}.json").read_text() for name in "ab")
    assert first == second and json.loads(first)["ods"] > 0.6
    capsys.readouterr()
    for args, message in (([*options[:2]], "are required: --gt, --out"), ([*options[:3], "x", *options[4:], "y"], "x")):
        with pytest.raises(SystemExit) as ended:
            command(["edges-eval", *args])
        said = capsys.readouterr().err
        assert ended.value.code == 2 and message in said and said.count("\n") == 1
