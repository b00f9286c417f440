"""What a run prints into a pipe, and on a terminal."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from ldl import charts
from ldl.backbones import Identity
from ldl.bags import EachInstance
from ldl.command import main
from ldl.data import RotatedDigits, TabularLDL
from ldl.faces.ages import FaceFolder
from ldl.run.console import held_out, pretrained
from ldl.run.run_dir import run_name, subject

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """They say nothing."""
    monkeypatch.setattr(charts, "overview", lambda *_, **__: {})
    monkeypatch.setattr("ldl.jobs.crossval.MAX_DRAWN", 0)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    np.savez(tmp_path / "votes.npz", features=RNG.normal(size=(50, 3)), labels=RNG.dirichlet(np.ones(4), 50))
    return tmp_path / "votes.npz"


def lines_of(capfd: pytest.CaptureFixture[str], *args: object) -> list[str]:
    """Standard output and standard error of a run, as a pipe would get them."""
    capfd.readouterr()
    main([str(arg) for arg in args])
    out, err = capfd.readouterr()
    return (out + err).splitlines()


def test_default_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """All that the default prints, at fewer and smaller epochs; their lines are those of its metrics.csv."""
    folder = tmp_path / "first"
    small = ["--trainer.max_epochs=13", "--data.turns=1", "--model.head.iterations=1", "--data.batch_size=512"]
    lines = lines_of(capfd, *small, "--wandb.mode=offline", "--run_dir", folder)
    assert len(lines) <= 60, lines
    assert lines[0].startswith("fit: LDLF on RotatedDigits, kfold, fold 0 of 10: 1,") and lines[0].endswith(", cpu")
    assert [line for line in lines if "wandb" in line] == [lines[1]] and "wandb sync" in lines[1]
    assert lines[-1].startswith(f"results: {folder}/results.json, beside charts/, checkpoints/, config.yaml, ")
    assert not any(re.search("[━\r\x1b]", line) for line in lines)
    rows = list(csv.DictReader((folder / "metrics.csv").open()))
    logged = {
        name: {int(row["epoch"]): float(row[name]) for row in rows if row[name]} for name in ("train_loss", "val_kl")
    }
    told = [re.fullmatch(r"epoch (\d+) of 13: train_loss ([\d.]+), val_kl ([\d.]+)", line) for line in lines]
    epochs = {int(found[1]): found for found in told if found}
    assert 5 <= len(epochs) <= 11 and 13 in epochs
    for epoch, found in epochs.items():
        expected = f"{logged['train_loss'][epoch - 1]:.4f}", f"{logged['val_kl'][epoch - 1]:.4f}"
        assert found.groups()[1:] == expected


@pytest.mark.slow
def test_bars_on_a_terminal(
    table: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    options = ["-c", "tabular_softmax", "--data.path", table, "--data.val_fraction=0.2", "--trainer.max_epochs=40"]
    text = "\n".join(lines_of(capfd, *options, "--wandb.mode=disabled", "--run_dir", tmp_path / "run"))
    assert re.search(r"val_kl:\s+\d\.\d", text) and "━" in text
    assert "v_num" not in text and "epoch 40 of 40" not in text


def test_the_backbone_inside_another_tells_of_its_weights() -> None:
    inner = Identity()
    outer = EachInstance(inner)
    assert pretrained(outer) == ""
    inner.pretrained_from = "here.safetensors"
    assert pretrained(outer) == "weights: EachInstance from here.safetensors"


DECIDES = "calibrate intervals and sets; data.val_fraction decides"
TOO_FEW = (
    "intervals and sets stay as predicted: a tenth of {} is fewer than {}; "
    "set data.val_fraction above 0 to calibrate them"
)


@pytest.mark.parametrize(
    ("size", "groups", "options", "line"),
    [
        (1367, None, {}, f"119 of 1,230 rows {DECIDES}"),
        (213, None, {}, TOO_FEW.format("191 rows", 50)),
        (1100, 100, {}, f"99 of 990 rows, 9 of 90 groups, {DECIDES}"),
        (1100, 99, {}, TOO_FEW.format("89 groups", 9)),
        (1100, 99, {"protocol": "shuffled"}, f"99 of 990 rows {DECIDES}"),
        (1100, 99, {"val_fraction": 0.1}, ""),
        (213, None, {"val_fraction": 0.0}, ""),
    ],
)
def test_a_run_says_which_rows_calibrate(
    tmp_path: Path, size: int, groups: int | None, options: dict[str, object], line: str
) -> None:
    columns = {} if groups is None else {"group": np.arange(size) % groups}
    np.savez(tmp_path / "t.npz", features=RNG.normal(size=(size, 2)), labels=RNG.dirichlet(np.ones(3), size), **columns)
    data = TabularLDL(str(tmp_path / "t.npz"), **{"val_fraction": None, **options})
    data.setup()
    assert held_out(data) == line


def test_a_published_validation_set_needs_no_line(tmp_path: Path) -> None:
    sets = np.array(["train"] * 560 + ["val"] * 40 + ["test"] * 50)
    columns = {"features": RNG.normal(size=(650, 2)), "labels": RNG.dirichlet(np.ones(3), 650)}
    lines = []
    for split in (sets, np.where(sets == "val", "train", sets)):
        np.savez(tmp_path / "t.npz", **columns, split=split)
        data = TabularLDL(str(tmp_path / "t.npz"), val_fraction=None)
        data.setup()
        lines.append((len(data.split.val), held_out(data)))
    assert lines == [(40, ""), (59, f"59 of 600 rows {DECIDES}")]


@pytest.mark.parametrize(
    ("data", "title"),
    [
        (TabularLDL(path="ldl/SJAFFE.mat"), "SJAFFE"),
        (FaceFolder(path="lists/actors.csv"), "actors"),
        (TabularLDL(path=f"{'x' * 300}.csv"), "x" * 60),
    ],
    ids=str,
)
def test_names_carry_data_and_head(data: RotatedDigits, title: str) -> None:
    assert subject(data, "LDLF") == f"{title}_LDLF"
    assert run_name(Path(f"runs/2026-11-22_15-20-31_{title}_LDLF"), data, "LDLF") == f"2026-11-22_15-20-31_{title}_LDLF"
    assert run_name(Path("tried/third"), data, "LDLF") == f"third_{title}_LDLF"
