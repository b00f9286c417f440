"""Wrong input ends in one line that names the culprit and the fix, exit code 2, and nothing half-written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from ldl.command import main

DIGITS = [
    "--data",
    "RotatedDigits",
    "--data.turns",
    "1",
    "--model.backbone",
    "Identity",
    "--model.backbone.flatten",
    "true",
]


def _table(path: Path, **changes: np.ndarray) -> Path:
    rng = np.random.default_rng(0)
    arrays = {"features": rng.normal(size=(30, 4)), "labels": rng.dirichlet(np.ones(3), 30), **changes}
    scipy.io.savemat(path, arrays)
    return path


def _text(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _tabular(path: Path, *more: str) -> list[str]:
    return ["--data", "TabularLDL", "--data.path", str(path), "--model.backbone", "null", *more]


# Each case: arguments made in a folder, and what the one line must contain: the culprit, and the fix.
CASES: dict[str, tuple[Callable[[Path], list[str]], list[str]]] = {
    # the command line and YAML
    "misspelt head": (lambda t: ["--model.head", "LDFL"], ["'LDFL'", "did you mean 'LDLF'"]),
    "misspelt option of a head": (
        lambda t: ["--model.head.dept", "5"],
        ["LDLF has no option 'dept'", "did you mean 'depth'"],
    ),
    "no option": (lambda t: ["t.npz"], ["'t.npz' is no option", "--data.path t.npz"]),
    "a list without brackets": (
        lambda t: _tabular(_table(t / "a.mat"), "--data.label_names", "a,b"),
        ["data.label_names is 'a,b', but must be a list, such as [a, b]"],
    ),
    "a table for a checkpoint": (
        lambda t: ["--stage", "test", "--ckpt_path", str(_text(t / "a.csv", "a,b\n1,2\n"))],
        ["a.csv cannot be read as a checkpoint: it is no archive of torch", "RUN/checkpoints/last.ckpt"],
    ),
    "wrong type": (lambda t: ["--model.head.depth", "deep"], ["model.head.depth", "'deep'", "int"]),
    "misspelt trainer option": (lambda t: ["--trainer.max_epoks", "3"], ["--trainer.max_epoks", "trainer.max_epochs"]),
    "unknown stage": (lambda t: ["--stage", "train"], ["stage", "'train'", "'fit'"]),
    "misspelt option of the optimiser": (
        lambda t: ["--model.optimizer.lrr", "1"],
        ["AdamW has no option 'lrr'", "'lr'"],
    ),
    "ambiguous scheduler": (
        lambda t: ["--model.lr_scheduler", "ReduceLROnPlateau"],
        ["'ReduceLROnPlateau'", "torch.optim.lr_scheduler.ReduceLROnPlateau"],
    ),
    "missing option": (lambda t: ["--data", "TabularLDL"], ["TabularLDL", "--data.path"]),
    "no such config": (lambda t: ["-c", str(t / "none.yaml")], ["none.yaml", "does not exist"]),
    "misspelt YAML key": (
        lambda t: ["-c", str(_text(t / "a.yaml", "modle: {head: LDLF}\n"))],
        ["'modle.head'", "'model"],
    ),
    "unknown accelerator": (lambda t: ["--trainer.accelerator", "abacus"], ["abacus"]),
    "negative learning rate": (lambda t: ["--model.optimizer.lr=-1"], ["optimiser", "-1"]),
    "run directory in the way": (lambda t: ["--run_dir", str(_text(t / "file", ""))], ["--run_dir", "file"]),
    # arguments out of range
    "too few outputs": (lambda t: ["--model.head.outputs", "3"], ["outputs 3", "split nodes", "at least"]),
    "value objective on nominal labels": (
        lambda t: _tabular(_table(t / "a.mat"), "--model.head", "Softmax", "--model.head.objective", "dldl_v2"),
        ["'dldl_v2'", "labels with values", "'kl'"],
    ),
    "fold out of range": (lambda t: ["--data.fold", "10"], ["fold 10", "0..9"]),
    "best without validation": (
        lambda t: ["--data.val_fraction", "0", "--select", "best"],
        ["--select best", "val_fraction"],
    ),
    "image into Identity": (lambda t: ["--model.backbone.flatten", "false"], ["1x12x12", "flatten: true"]),
    "unknown timm model": (
        lambda t: ["--model.backbone", "Timm", "--model.backbone.name", "resnet81"],
        ["'resnet81'", "did you mean 'resnet18'"],
    ),
    "missing weights": (
        lambda t: ["--model.backbone", "Timm", "--model.backbone.weights", "none.safetensors"],
        ["none.safetensors", "model.backbone.weights"],
    ),
    # data files
    "no data file": (lambda t: _tabular(t / "none.mat"), ["none.mat", "--data.path"]),
    "row sum": (
        lambda t: _tabular(_table(t / "a.mat", labels=np.ones((30, 3)))),
        ["row 0", "sums to", "--data.normalize"],
    ),
    "more folds than rows": (lambda t: _tabular(_table(t / "a.mat"), "--data.folds", "31"), ["folds 31", "2..30"]),
    # checkpoints
    "no checkpoint": (lambda t: ["--ckpt_path", str(t / "none.ckpt")], ["none.ckpt", "no checkpoint at"]),
    "test without a checkpoint": (lambda t: ["--stage", "test"], ["--stage test", "--ckpt_path"]),
    "cross-validation of a checkpoint": (
        lambda t: ["--stage", "crossval", "--ckpt_path", "a.ckpt"],
        ["crossval", "--ckpt_path"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_line_names_the_culprit(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, expected = CASES[case]
    run_dir = tmp_path / "run"
    with pytest.raises(SystemExit) as exit_:
        main(["--model.head", "LDLF", *DIGITS, "--wandb.mode", "disabled", "--run_dir", str(run_dir), *make(tmp_path)])
    assert exit_.value.code == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    missing = [part for part in expected if part not in errors[0]]
    assert not missing, f"{missing} not in {errors[0]!r}"
    assert len(errors[0]) < 500
    assert not run_dir.exists()
