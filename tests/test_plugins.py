"""Heads from a plugins folder. `test_wheel` has those of an installed package."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from fakes.paths import ROOT

from ldl.command import main
from ldl.command.console import command
from ldl.errors import LDLError
from ldl.plugins import _check_installation, discover, left_out, load_registered, registered, usual_folders
from ldl.task import Task
from ldl.testing import check_head

pytestmark = pytest.mark.usefixtures("blank_charts")

HEAD = '''
import torch
from torch import nn
from ldl.head import Head

class {name}(Head):
    """A linear layer and a softmax.

    Args:
        sharpness: Factor of the scores.
    """

    def __init__(self, sharpness: float = 1.0) -> None:
        super().__init__()
        self.sharpness = sharpness

    def build(self, in_features, labels):
        super().build(in_features, labels)
        self.layer = nn.Linear(in_features, len(labels))

    def forward(self, features):
        scores = self.sharpness * self.layer(features)
        return torch.softmax(scores.to(torch.promote_types(scores.dtype, torch.float32)), -1)
'''
SMALL = [
    "--data.turns=1", "--data.folds=3", "--trainer.max_epochs=1", "--trainer.enable_progress_bar=false",
    "--wandb.mode=disabled",
]  # fmt: skip


@pytest.fixture(autouse=True)
def none_left_out() -> Iterator[None]:
    """What these tests break is not told by later ones."""
    yield
    left_out.clear()


@pytest.fixture(scope="module")
def dropped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugins folder with one good head and two broken files, discovered."""
    folder = tmp_path_factory.mktemp("project") / "plugins"
    folder.mkdir()
    (folder / "dropped_in.py").write_text(HEAD.format(name="DroppedIn"))
    (folder / "broken.py").write_text("import no_such_module_anywhere\n")
    (folder / "_private.py").write_text("raise RuntimeError\n")
    (folder / "coded.py").write_bytes(b"name = '\xf6'\n")
    with pytest.warns(UserWarning) as caught:
        assert "ldl_plugins.dropped_in" in discover(folder)
    said = " ".join(str(warning.message) for warning in caught)
    assert "broken.py left out: ModuleNotFoundError" in said
    assert "coded.py left out: SyntaxError" in said
    return folder


def test_worked_example_keeps_the_contract() -> None:
    discover()
    check_head(sys.modules["ldl_plugins.binomial"].Binomial)


def test_dropped_head_by_its_name(dropped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = sys.modules["ldl_plugins.dropped_in"].DroppedIn
    check_head(head)

    with pytest.raises(SystemExit) as help_:
        main(["--model.head.help", "DroppedIn"])
    assert help_.value.code == 0
    assert "Factor of the scores" in capsys.readouterr().out

    for name in ("BarHead", "ldl_plugins.broken.BarHead"):
        with pytest.raises(SystemExit):
            main(["--model.head", name])
        said = capsys.readouterr().err
        assert f"there is no {'class' if '.' in name else 'Head'} {name!r}" in said
        assert "broken.py was left out: ModuleNotFoundError: No module named 'no_such_module_anywhere'" in said

    with pytest.raises(SystemExit):
        main(["--model.head", "DroppedIn", "--model.head.sharpness", "very"])
    assert "sharpness is 'very', but must be float" in capsys.readouterr().err

    config = tmp_path / "run.yaml"
    config.write_text(
        "model:\n  backbone: {class_path: Identity, init_args: {flatten: true}}\n"
        "  head: {class_path: DroppedIn, init_args: {sharpness: 2.0}}\ndata: RotatedDigits\n"
    )
    main(["-c", str(config), *SMALL, "--run_dir", str(tmp_path / "run")])
    checkpoint = tmp_path / "run/checkpoints/last.ckpt"
    assert torch.load(checkpoint, weights_only=True)["ldl"]["head"]["class_path"] == "ldl_plugins.dropped_in.DroppedIn"
    task = Task.load_from_checkpoint(checkpoint)
    assert type(task.head) is head and task.head.sharpness == 2.0

    test = ["--stage=test", f"--ckpt_path={checkpoint}", f"--run_dir={tmp_path / 'test'}"]
    main(["-c", str(config), *SMALL, *test])
    trained, tested = (json.loads((tmp_path / name / "results.json").read_text()) for name in ("run", "test"))
    assert tested["mean"] == trained["mean"]


def test_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its plugins are found after those of the project; one of a name that is taken is told and left out."""
    (tmp_path / "plugins").mkdir()
    for name in ("worked_here", "binomial"):
        (tmp_path / "plugins" / f"{name}.py").write_text(HEAD.format(name=f"Own{name.title().replace('_', '')}"))
    monkeypatch.chdir(tmp_path)
    assert usual_folders() == [ROOT / "plugins", tmp_path / "plugins"]
    with pytest.warns(UserWarning, match=rf"binomial\.py left out: {ROOT}/plugins/binomial\.py has its name"):
        assert "ldl_plugins.worked_here" in discover()
    assert sys.modules["ldl_plugins.binomial"].__file__ == str(ROOT / "plugins" / "binomial.py")
    assert discover() == []
    monkeypatch.chdir(ROOT)
    assert usual_folders() == [ROOT / "plugins"]


@pytest.mark.slow
def test_project_folder_under_ddp(dropped: Path, tmp_path: Path) -> None:
    """From another working directory, beside a broken plugin, cross-validated by two processes."""
    project = dropped.parent
    shutil.copy(ROOT / "train.py", project)
    command = [
        sys.executable, str(project / "train.py"), "--model.head=DroppedIn", "--data=RotatedDigits",
        "--data.val_fraction=0",
        "--model.backbone=Identity", "--model.backbone.flatten=true", *SMALL, "--data.folds=2", "--stage=crossval",
        "--run_dir", str(tmp_path / "run"), "--trainer.accelerator=cpu",
        "--trainer.devices=2", "--trainer.strategy=ddp",
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "broken.py left out" in done.stderr
    results = json.loads((tmp_path / "run/results.json").read_text())
    assert results["head"] == "DroppedIn"
    assert [fold["fold"] for fold in results["folds"]] == [0, 1]


def install(folder: Path, points: str) -> None:
    """Write the metadata of a package with these entry points."""
    metadata = folder / "their_tool-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their_tool\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(points)


def test_a_package_registers_a_subcommand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "their_tool.py").write_text(
        'def count(args: list[str]) -> None:\n    """Count words. More."""\n    print(len(args), "words")\n'
    )
    install(tmp_path, "[ldl.commands]\ncount-words = their_tool:count\nbroken = not_there:run\n")
    monkeypatch.syspath_prepend(tmp_path)
    load_registered.cache_clear()
    command(["count-words", "a", "--b"])
    assert capsys.readouterr().out == "2 words\n"
    with pytest.raises(SystemExit):
        command(["count-wrods"])
    assert "did you mean 'count-words'?" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command(["broken"])
    error = capsys.readouterr().err
    assert error == "error: subcommand 'broken' (not_there:run) cannot be imported: No module named 'not_there'\n"
    with pytest.raises(SystemExit), pytest.warns(UserWarning, match=r"broken \(not_there:run\) left out"):
        command(["--help"])
    shown = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert ["count-words", "Count words"] in shown and not any(line[:1] == ["broken"] for line in shown)
    load_registered.cache_clear()


def test_an_installation_older_than_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a pull that adds an entry point."""
    of_ldl = importlib.metadata.distribution("ldl")
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: importlib.metadata.PathDistribution(Path()))
    _check_installation.cache_clear()
    with pytest.raises(LDLError, match=rf"older than the checkout {ROOT}: it lacks .* run pip install -e {ROOT}$"):
        registered("ldl.plugins")
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: of_ldl)
    assert registered("ldl.plugins").keys() == {"bags", "edges", "faces"}


def test_the_core_imports_no_subcommand() -> None:
    script = "from ldl.command.console import command; command(['nothing'])"
    watched = f"try:\n    {script}\nfinally:\n    assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", f"import sys\n{watched}"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("error: no subcommand 'nothing'; give audit, data, ")
