"""Wrong input ends in one line that names the culprit and the fix, exit code 2, and nothing half-written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torch

from ldl.cli import main

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


def _spoilt(name: str, row: int, column: int, value: float) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    array = {"features": rng.normal(size=(30, 4)), "labels": rng.dirichlet(np.ones(3), 30)}[name]
    array[row, column] = value
    return {name: array}


def _text(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _tabular(path: Path, *more: str) -> list[str]:
    return ["--data", "TabularLDL", "--data.path", str(path), "--model.backbone", "null", *more]


def _foreign_checkpoint(path: Path) -> Path:
    torch.save({"state_dict": {}}, path)
    return path


# Each case: arguments made in a folder, and what the one line must contain: the culprit, and the fix.
CASES: dict[str, tuple[Callable[[Path], list[str]], list[str]]] = {
    # the command line and YAML
    "misspelt head": (lambda t: ["--model.head", "LDFL"], ["'LDFL'", "did you mean 'LDLF'"]),
    "unknown head": (lambda t: ["--model.head", "Zebra"], ["'Zebra'", "known: ", "Softmax"]),
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
    "misspelt group": (lambda t: ["--modle.head", "LDLF"], ["--modle.head", "did you mean"]),
    "misspelt trainer option": (lambda t: ["--trainer.max_epoks", "3"], ["--trainer.max_epoks", "trainer.max_epochs"]),
    "wrong type in the trainer": (lambda t: ["--trainer.max_epochs", "many"], ["trainer.max_epochs", "'many'", "int"]),
    "unknown stage": (lambda t: ["--stage", "train"], ["stage", "'train'", "'fit'"]),
    "unknown decoder": (lambda t: ["--model.decoder", "mode"], ["model.decoder", "'mode'", "'median'"]),
    "misspelt data": (lambda t: ["--data", "RotatedDigit"], ["'RotatedDigit'", "did you mean 'RotatedDigits'"]),
    "misspelt optimiser": (lambda t: ["--model.optimizer", "AdamX"], ["'AdamX'", "did you mean"]),
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
    "broken YAML": (lambda t: ["-c", str(_text(t / "a.yaml", "model: [\n"))], ["line 2"]),
    "misspelt YAML key": (
        lambda t: ["-c", str(_text(t / "a.yaml", "modle: {head: LDLF}\n"))],
        ["'modle.head'", "'model"],
    ),
    "misspelt nested YAML key": (
        lambda t: ["-c", str(_text(t / "a.yaml", "model: {head: {class_path: LDLF, init_args: {tree: 3}}}\n"))],
        ["LDLF has no option 'tree'", "did you mean 'trees'"],
    ),
    "unknown accelerator": (lambda t: ["--trainer.accelerator", "abacus"], ["abacus"]),
    "negative learning rate": (lambda t: ["--model.optimizer.lr=-1"], ["optimiser", "-1"]),
    "run directory in the way": (lambda t: ["--run_dir", str(_text(t / "file", ""))], ["--run_dir", "file"]),
    # arguments out of range
    "too few outputs": (lambda t: ["--model.head.outputs", "3"], ["outputs 3", "split nodes", "at least"]),
    "depth out of range": (lambda t: ["--model.head.depth", "1"], ["depth 1", "2..16"]),
    "no trees": (lambda t: ["--model.head.trees", "0"], ["trees 0", "in 1..10000"]),
    "dropout out of range": (lambda t: ["--model.head.dropout", "1.5"], ["dropout 1.5", "[0, 1)"]),
    "value objective on nominal labels": (
        lambda t: _tabular(_table(t / "a.mat"), "--model.head", "Softmax", "--model.head.objective", "dldl_v2"),
        ["'dldl_v2'", "labels with values", "'kl'"],
    ),
    "fold out of range": (lambda t: ["--data.fold", "10"], ["fold 10", "0..9"]),
    "validation share out of range": (lambda t: ["--data.val_fraction", "1"], ["val_fraction 1", "[0, 1)"]),
    "best without validation": (
        lambda t: ["--data.val_fraction", "0", "--select", "best"],
        ["--select best", "val_fraction"],
    ),
    "empty batch": (lambda t: ["--data.batch_size", "0"], ["RotatedDigits.batch_size 0", "in 1..2^31 - 1"]),
    "angle step that does not divide": (lambda t: ["--data.step", "7"], ["RotatedDigits.step 7", "divide"]),
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
    "unknown kind of file": (lambda t: _tabular(_text(t / "a.xls", "x")), ["'.xls'", ".csv"]),
    "damaged file": (lambda t: _tabular(_text(t / "a.mat", "no matlab")), ["a.mat", "cannot be read"]),
    "NaN feature": (
        lambda t: _tabular(_table(t / "a.mat", **_spoilt("features", 7, 2, np.nan))),
        ["row 7, column 2", "nan", "finite"],
    ),
    "negative mass": (
        lambda t: _tabular(_table(t / "a.mat", **_spoilt("labels", 4, 1, -0.1))),
        ["row 4, label 1", "-0.1", "negative"],
    ),
    "row sum": (
        lambda t: _tabular(_table(t / "a.mat", **_spoilt("labels", 5, 0, 2.0))),
        ["row 5", "sums to", "--data.normalize"],
    ),
    "unequal rows": (lambda t: _tabular(_table(t / "a.mat", features=np.ones((29, 4)))), ["29 rows", "30"]),
    "unknown key": (
        lambda t: _tabular(_table(t / "a.mat"), "--data.target_key", "label"),
        ["'label'", "did you mean 'labels'"],
    ),
    "wrong number of names": (
        lambda t: _tabular(_table(t / "a.mat"), "--data.label_names", "[a, b]"),
        ["label_names", "2 entries", "3 labels"],
    ),
    "values that do not rise": (
        lambda t: _tabular(_table(t / "a.mat"), "--data.label_values", "[1, 3, 2]"),
        ["rise strictly", "[1.0, 3.0, 2.0]"],
    ),
    "csv without labels": (lambda t: _tabular(_text(t / "a.csv", "a,b\n1,2\n")), ["label:NAME", "'a', 'b'"]),
    "text in a csv": (
        lambda t: _tabular(_text(t / "a.csv", "a,label:x,label:y\n1,.5,.5\nzwei,.5,.5\n")),
        ["line 3", "'a'", "'zwei'"],
    ),
    "more folds than rows": (lambda t: _tabular(_table(t / "a.mat"), "--data.folds", "31"), ["folds 31", "2..30"]),
    # checkpoints
    "no checkpoint": (lambda t: ["--ckpt_path", str(t / "none.ckpt")], ["none.ckpt", "no checkpoint at"]),
    "damaged checkpoint": (lambda t: ["--ckpt_path", str(_text(t / "a.ckpt", "x"))], ["a.ckpt", "cannot be read"]),
    "foreign checkpoint": (
        lambda t: ["--ckpt_path", str(_foreign_checkpoint(t / "a.ckpt"))],
        ["a.ckpt", "no checkpoint of ldl"],
    ),
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
