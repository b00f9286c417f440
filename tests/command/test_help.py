"""Help, lists of classes, and the message for a misspelt name."""

from __future__ import annotations

import inspect
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from fakes.paths import ROOT

from ldl import backbones, bags, data, edges, faces, heads
from ldl.command import main
from ldl.command.arguments import tokenize
from ldl.command.classes import BASES, OURS
from ldl.command.console import command
from ldl.command.help import help_page
from ldl.plugins import COMMANDS, registered

TABLE = ["-c", "tabular_ldlf"]
MISTAKES: list[tuple[list[str], str]] = [
    (["--data.batchsize", "3"], "RotatedDigits has no option 'batchsize'; did you mean 'batch_size'?"),
    (["--trainer.max_epohcs", "3"], "unknown option --trainer.max_epohcs; did you mean 'trainer.max_epochs'?"),
    (["--model.head", "Sofmax"], "model.head: there is no Head 'Sofmax'; did you mean 'Softmax'?"),
    (["--data", "UTKFaces"], "data: there is no LDLDataModule 'UTKFaces'; did you mean 'UTKFace'?"),
    (
        ["--stage", "tset"],
        "stage is 'tset', but must be one of 'compare', 'crossval', 'fit',",
    ),
    (["-c", "configs/runs/tabular/ldlff.yaml"], "did you mean 'tabular_ldlf'?"),
    ([*TABLE, "--model.head.treees=5"], "LDLF has no option 'treees'; did you mean 'trees'?"),
    ([*TABLE, "-c", "heads/softmax", "--model.head.depth", "7"], "Softmax has no option 'depth'"),
    (["--help.trainr"], "did you mean 'trainer'?"),
    (["--model.head.help", "Sofmax"], "did you mean 'Softmax'?"),
]


@pytest.mark.parametrize(("args", "message"), MISTAKES, ids=lambda value: " ".join(value)[:40])
def test_a_misspelt_name_is_corrected(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(args)
    error = capsys.readouterr().err
    assert ended.value.code == 2 and error.startswith("error: ") and error.count("\n") == 1
    assert message in error


def test_help_has_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In a process of its own, in which no test has imported or defined classes.
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    front = subprocess.check_output([sys.executable, "-m", "ldl", "--help"], cwd=tmp_path, text=True)
    lines = front.splitlines()
    assert len(lines) < 110 and max(map(len, lines)) <= 120
    public = [
        vars(package)[name] for package in (heads, data, backbones, bags, edges, faces) for name in package.__all__
    ]
    classes = [cls for cls in public if isinstance(cls, type) and not inspect.isabstract(cls)]
    listed = [cls.__name__ for cls in classes if any(issubclass(cls, BASES[key]) for key in OURS)]
    assert len(listed) > 40 and all(f"  {name} " in front for name in listed)
    assert all(f"  {name} " in front for name in registered(COMMANDS))
    assert front.index("LDLF") < front.index("UTKFace") < front.index("audit") < front.index("  --stage")
    assert "--trainer.max_epochs" not in front
    for group, option in (("trainer", "max_epochs"), ("model", "mixup"), ("wandb", "mode")):
        assert f"--{group}.{option}" in (help_page(tokenize([f"--help.{group}"])) or "")
    page = help_page(tokenize(["--model.head.help", "LDLF"])) or ""
    assert "--model.head.trees  int; in 1..10000; default 5" in page and "Number of trees K." in page
    assert "--data.protocol" in (help_page(tokenize(["--data.help=FaceFolder"])) or "")
    assert help_page(tokenize(["--model.optimizer.help", "SGD"])) is None and help_page(tokenize(TABLE)) is None
    assert "AAKNN" in (help_page(tokenize(["--model.head.help"])) or "")


def test_help_ends_the_process_without_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    for args, word in (
        (["--help"], "Heads: "),
        (["--model.optimizer.help", "SGD"], "momentum"),
        (["--version"], "ldl"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(args)
        assert not ended.value.code and word in capsys.readouterr().out


def test_lists_of_classes(capsys: pytest.CaptureFixture[str]) -> None:
    command(["heads"])
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line[0] != " "}
    assert {*heads.__all__, "Binomial"} <= set(rows)
    assert "alternating" in rows["LDLF"] and "bags" in rows["MILBoost"] and "missing" in rows["BoostedTrees"]
    assert "fitted on images" in rows["StructuredEdges"] and "by gradient" in rows["Softmax"]
    command(["heads", "Softmax"])
    assert "--model.head.feature_dropout" in capsys.readouterr().out
    command(["data"])
    listed = " ".join(capsys.readouterr().out.split())
    assert "FGNET/images/001A02.JPG" in listed and "yanweifu.github.io" in listed
    assert "leave_one_person_out" in listed
    command(["data", "Pointing04"])
    assert "random_5fold" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["heads", "LDLF"], "every `batches` batches the leaves are solved"),
        (["heads", "LDLF"], "every leaf (see `update_leaves`)"),
        (["heads", "Pool"], "towards equal weights (`ldl.methods.opinion_pool`)"),
        (["audit", "--help"], "those with the prefix `label:`."),
    ],
)
def test_help_keeps_backticks(args: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An option's name in a sentence would be read as a word of it."""
    with suppress(SystemExit):
        command(args)
    page = " ".join(capsys.readouterr().out.split())
    assert sentence in page and "``" not in page and ":mod:" not in page


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["heads", "my-head"], "'my-head' is not the name of a head, or of several; ldl heads lists all"),
        (["data", "Pointing05"], "did you mean 'Pointing04'"),
    ],
)
def test_what_is_no_class(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command(args)
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_command_in_a_new_process_lists_all_classes() -> None:
    """In this process other tests have imported them."""
    run = [sys.executable, "-m", "ldl", "heads"]
    said = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    public = (getattr(heads, each) for each in heads.__all__)
    wanted = {cls.__name__ for cls in public if issubclass(cls, BASES["model.head"]) and not inspect.isabstract(cls)}
    assert len(wanted) > 10 and wanted <= set(said.split())
