"""Verbs that are no run: lists of what there is, plugins to start from, the benchmark of edges."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import fake_edges
import pytest
from PIL import Image
from scipy.io import loadmat

from ldl import heads
from ldl.cli import main
from ldl.cli.command import VERBS, command
from ldl.edges import evaluation
from ldl.plugins import PACKAGE
from ldl.start.help import help_page
from ldl.start.schema import Schema


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
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tests = [part for name, part in vars(module).items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test()


@pytest.mark.parametrize(("kind", "name", "quick"), [("head", "linear_one", "--data.turns=1"), ("data", "Sugars", "")])
def test_a_new_plugin_works(empty: Path, kind: str, name: str, quick: str, capsys: pytest.CaptureFixture[str]) -> None:
    command(["new", kind, name])
    *made, last = capsys.readouterr().out.splitlines()
    module = name.lower()
    assert made == [f"plugins/{module}.py", f"tests/test_{module}.py", f"configs/{module}.yaml"]
    run_test(empty / made[1])
    options = [
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
        (["data", "UTKFace"], "UTKFace is taken by ldl.data.faces.utkface.UTKFace"),
        (["head", "3a"], "is no name of a class"),
        (["head", "../a"], "is no name of a class"),
        (["head", "none"], "is no name of a class"),
        (["head", "Lambda"], "is no name of a class; give letters, digits and _, and no keyword of Python"),
        (["hed", "A"], "invalid choice: 'hed'"),
        (["head"], "required: name"),
        (["head", "There"], "configs/there.yaml is there already"),
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


@pytest.mark.parametrize("folder", ["plugins", "tests"])
def test_a_file_in_the_place_of_a_folder_is_named(empty: Path, folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    (empty / folder).write_text("mine")
    with pytest.raises(SystemExit) as ended:
        command(["new", "head", "MyHead"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        f"error: {empty / folder} cannot be written: File exists; move it away, or work in another folder\n"
    )
    assert [path.name for path in empty.rglob("*") if path.is_file()] == [folder]


@pytest.mark.parametrize("given", [".", "none.ckpt"])
def test_what_is_no_checkpoint_is_not_exported(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(["export", given])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said == f"error: no checkpoint at {given}; give a file, such as RUN/checkpoints/last.ckpt\n"


def test_all_heads_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    command(["heads"])
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line[0] != " "}
    assert set(heads.__all__) | {"Binomial"} <= set(rows)
    assert "alternating" in rows["LDLF"] and "bags" in rows["MILBoost"] and "missing" in rows["BoostedTrees"]
    assert "fitted on images" in rows["StructuredEdges"] and "by gradient" in rows["Softmax"]
    command(["heads", "Softmax"])
    assert "--model.head.feature_dropout" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ldl.heads.Softmax", "is not the name of a head, or of several; give ldl.heads.softmax.Softmax"),
        ("my-head", "'my-head' is not the name of a head, or of several; ldl heads lists all"),
    ],
)
def test_what_is_no_head_is_refused(name: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command(["heads", name])
    assert words in capsys.readouterr().err


def test_data_say_files_source_and_protocols(capsys: pytest.CaptureFixture[str]) -> None:
    command(["data"])
    said = " ".join(capsys.readouterr().out.split())
    assert "FGNET/images/001A02.JPG" in said and "yanweifu.github.io" in said and "leave_one_person_out" in said
    command(["data", "Pointing04"])
    assert "random_5fold" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command(["data", "Pointing05"])
    assert "did you mean 'Pointing04'" in capsys.readouterr().err


def test_every_verb_has_a_line() -> None:
    from ldl.cli.command import _first_lines

    lines = _first_lines()
    assert set(lines) == set(VERBS) and all(len(line) > 20 for line in lines.values())
    page = help_page(["--help"], Schema((), ()), lines) or ""
    assert all(f"  {verb} " in page for verb in VERBS)


def test_edges_are_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = fake_edges.bsds(tmp_path / "set", {"test": 2}) / "groundTruth" / "test"
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
