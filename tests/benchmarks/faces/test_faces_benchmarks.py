"""Small runs of the scripts of faces: what they print is what the runs have measured."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from fake_faces import fgnet, utkface
from small_tasks import saved

from benchmarks.common import runs
from benchmarks.faces import cross_set, finetuned, five_folds, halves, holdout, steps, views
from ldl.backbones import Timm
from ldl.data import FGNET, UTKFace
from ldl.errors import LDLError
from ldl.heads import Softmax
from ldl.protocols import random_split
from ldl.running.crossval import all_folds
from ldl.task import Task


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint to begin from; configurations are of a small network, on few small pictures."""
    from ldl.cli import main

    root = fgnet(tmp_path / "data", persons=6)
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LDL_DATA", str(root))
    small = {
        "class_path": "Timm",
        "init_args": {"name": "mobilenetv2_035", "freeze_groups": 9, "views": 2, "mirror": True},
    }
    config = yaml.safe_load(runs.run_config("fgnet", "finetuned_softmax").read_text())
    config["model"]["backbone"] = small
    config["data"]["init_args"] |= {"crop_size": 32, "batch_size": 8}
    config["trainer"] |= {"max_epochs": 1, "enable_progress_bar": False}
    config["wandb"] = {"mode": "disabled"}
    (tmp_path / "configs/runs/fgnet").mkdir(parents=True)
    (tmp_path / "configs/runs/fgnet/finetuned_softmax.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.setattr(runs, "CONFIGS", tmp_path / "configs")
    main(["-c", str(runs.run_config("fgnet", "finetuned_softmax")), "--run_dir", str(tmp_path / "first")])
    return tmp_path / "first" / "checkpoints" / "last.ckpt"


@pytest.mark.usefixtures("blank_charts")
def test_seeds_and_their_ensemble(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- begin age_finetuned -->\n<!-- end age_finetuned -->\n")
    arguments = [
        "--heads",
        f"softmax={model}",
        "--seeds",
        "0",
        "1",
        "--out",
        str(tmp_path / "out"),
        "--page",
        str(page),
    ]
    monkeypatch.setattr(sys, "argv", ["finetuned.py", *arguments])
    finetuned.main()
    folders = [tmp_path / "out" / f"softmax_{seed}" for seed in (0, 1)]
    pooled = [json.loads((folder / "results.json").read_text())["pooled"] for folder in folders]
    rows = [finetuned.read_rows(folder) for folder in folders]
    alone = finetuned.ensemble(rows[:1])
    assert alone["mae"] == pytest.approx(pooled[0]["mae"], rel=1e-4)
    assert alone["mae_few"] == pytest.approx(pooled[0]["mae_few"], rel=1e-4)
    assert alone["coverage90"] == pytest.approx(pooled[0]["coverage90"], abs=1e-6)
    both = finetuned.ensemble(rows)
    values = np.argmax(np.cumsum(sum(row["prediction"] for row in rows) / 2, axis=1) >= 0.5 - 1e-6, axis=1)
    assert both["mae"] == pytest.approx(np.abs(values - rows[0]["value"]).mean(), rel=1e-4)
    text = page.read_text()
    assert "softmax, ensemble of 2" in text and f"{both['mae']:.3f}" in text
    assert "all" not in text
    before = text
    monkeypatch.setattr(runs, "main", None)  # what is there is read, not run again
    finetuned.main()
    assert page.read_text() == before
    monkeypatch.setattr(sys, "argv", ["finetuned.py", *arguments, "--options", "model.decoder=expectation"])
    with pytest.raises(LDLError, match="softmax_0 holds a run that was asked for otherwise than by .*expectation"):
        finetuned.main()
    for seed in (0, 1):
        (tmp_path / "out" / f"ldlf_{seed}").symlink_to(tmp_path / "out" / f"softmax_{seed}")
    monkeypatch.setattr(sys, "argv", ["finetuned.py", "--heads", f"ldlf={model}", *arguments[1:]])
    finetuned.main()
    lines = [line.split(" | ") for line in page.read_text().splitlines() if "ensemble of" in line]
    assert [line[0] for line in lines] == [
        "| ldlf, ensemble of 2", "| softmax, ensemble of 2", "| ensemble of all 4",
    ]  # fmt: skip
    assert lines[2][1:-1] == lines[0][1:-1]
    mean = finetuned.ensemble(rows, "expectation")
    values = sum(row["prediction"] for row in rows) / 2 @ np.arange(117)
    assert mean["mae"] == pytest.approx(np.abs(values - rows[0]["value"]).mean(), rel=1e-4)
    with pytest.raises(LDLError, match="the runs have tested other pictures"):
        finetuned.ensemble([rows[0], {**rows[1], "index": rows[1]["index"] + 1}])


def test_a_head_needs_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["finetuned.py", "--heads", "softmax", "--out", str(tmp_path)])
    with pytest.raises(LDLError, match="must be NAME=CHECKPOINT"):
        finetuned.main()


def test_halves_share_no_person_and_each_is_measured(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    persons = []
    for half in (0, 1):
        data = halves.HalfOfFGNET(half=half, protocol="subject_exclusive", folds=3, crop_size=32, val_fraction=0)
        data.setup()
        assert len(all_folds(data)) == 3
        persons.append({str(person) for person in data.records.persons})  # type: ignore[union-attr]
    assert not persons[0] & persons[1] and len(persons[0] | persons[1]) == 6
    monkeypatch.setattr(sys, "argv", [
        "halves.py", "--start", str(model), "--options", "model.optimizer.lr=1e-3,1e-2", "trainer.max_epochs=1",
    ])  # fmt: skip
    halves.main()
    printed = capsys.readouterr().out
    for rate in ("1e-3", "1e-2"):
        assert f"model.optimizer.lr={rate} trainer.max_epochs=1" in printed


def test_options_are_combined() -> None:
    assert halves.combinations(["a=1,2", "b=x,y"]) == [
        ["a=1", "b=x"], ["a=1", "b=y"], ["a=2", "b=x"], ["a=2", "b=y"],
    ]  # fmt: skip
    assert halves.combinations([]) == [[]]
    with pytest.raises(LDLError, match="'rate' must be NAME=VALUE"):
        halves.combinations(["rate"])


def test_one_set_is_trained_on_and_the_other_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = utkface(fgnet(tmp_path / "data", persons=4), 30)
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LDL_DATA", str(root))
    sets = {tested: cross_set.CrossSet(tested=tested, crop_size=32, val_fraction=0) for tested in cross_set.WAYS}
    for data in sets.values():
        data.setup()
    there = UTKFace(crop_size=32, protocol="holdout", val_fraction=0)
    there.setup()
    first, second = sets["FGNET"].split, sets["UTKFace"].split
    assert first.train.tolist() == there.split.train.tolist() and second.test.tolist() == there.split.test.tolist()
    assert second.train.tolist() == first.test.tolist() == list(range(30, 46))
    of_fgnet = FGNET(crop_size=32, val_fraction=0)
    of_fgnet.setup()
    np.testing.assert_array_equal(sets["FGNET"].crops[30], of_fgnet.crops[0])
    torch.manual_seed(0)
    task = Task(Softmax(), Timm("mobilenetv2_100"))
    task.build(sets["FGNET"].labels, (3, 32, 32))
    weights = saved(task, tmp_path / "a.ckpt")
    small = cross_set.CrossSet
    monkeypatch.setattr(cross_set, "CrossSet", lambda **options: small(**options, crop_size=32))
    monkeypatch.setattr(sys, "argv", ["cross_set.py", "--weights", str(weights), "--heads", "meanpredictor", "aaknn"])
    cross_set.main()
    printed = capsys.readouterr().out
    assert "'meanpredictor'" in printed and "'aaknn'" in printed and "own" in printed
    for data in sets.values():
        ages = np.asarray(data.values)
        away = np.abs(ages[data.split.test] - ages[data.split.train].mean()).mean()
        found = cross_set.measure("meanpredictor", 0, data, Namespace(weights=str(weights)))
        # But for distributions that end at age 0.
        assert found["mae"] == pytest.approx(away, abs=0.5)
        assert found["bias"] == pytest.approx(ages[data.split.train].mean() - ages[data.split.test].mean(), abs=0.5)
        task.backbone.mirror = True
        pictures = data.inputs(data.split.test, data.split.test, False)
        with torch.no_grad():
            values = data.labels.decode(task.eval()(pictures)).numpy()
        own = cross_set.own_head(data, str(weights))
        assert own["mae"] == pytest.approx(np.abs(values - ages[data.split.test]).mean(), rel=1e-3)
        assert own["bias"] == pytest.approx((values - ages[data.split.test]).mean(), rel=1e-3)


def test_kept_views_are_timed_beside_the_whole_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(views, "BATCH", 4)
    root = fgnet(tmp_path / "data", persons=6)
    options = ["--name", "mobilenetv2_035", "--groups", "14", "--turns", "1", "--batches", "3", "--size", "64"]
    monkeypatch.setattr(sys, "argv", ["views.py", *options, "--root", str(root)])
    views.main()
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│ 14")]
    whole, upper, ratio = (float(cell) for cell in row.strip("│ ").split("│")[1:])
    assert upper < whole and ratio > 1


@pytest.fixture
def faces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Configurations of UTKFace with a small network, on few small pictures."""
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LDL_DATA", str(utkface(tmp_path / "data", 40)))
    (tmp_path / "configs/runs/utkface").mkdir(parents=True)
    for name in ("pretrain", "softmax"):
        config = yaml.safe_load(runs.run_config("utkface", name).read_text())
        config["model"]["backbone"]["init_args"] |= {"name": "mobilenetv2_035", "pretrained": False}
        config["data"]["init_args"] |= {"crop_size": 32, "batch_size": 8}
        config["trainer"] |= {"max_epochs": 1, "enable_progress_bar": False}
        config["wandb"] = {"mode": "disabled"}
        (tmp_path / f"configs/runs/utkface/{name}.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.setattr(runs, "CONFIGS", tmp_path / "configs")
    return tmp_path


@pytest.mark.usefixtures("blank_charts")
def test_five_folds_are_run_but_once(faces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = faces / "page.md"
    page.write_text("<!-- begin age_five_folds -->\n<!-- end age_five_folds -->\n")
    arguments = ["--heads", "softmax", "--out", str(faces / "out"), "--page", str(page)]
    monkeypatch.setattr(sys, "argv", ["five_folds.py", *arguments])
    five_folds.main()
    results = json.loads((faces / "out/softmax/results.json").read_text())
    errors = [fold["metrics"]["mae"] for fold in results["folds"]]
    text = page.read_text()
    assert len(errors) == 5 and f"| softmax | {np.mean(errors):.3f} ± {np.std(errors, ddof=1):.3f} |" in text
    monkeypatch.setattr(runs, "main", None)  # what is there is read, not run again
    five_folds.main()
    assert page.read_text() == text


@pytest.mark.usefixtures("blank_charts")
def test_finished_runs_are_read(faces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ldl.cli import main

    page, run = faces / "page.md", faces / "run"
    page.write_text("<!-- begin age_holdout -->\n<!-- end age_holdout -->\n")
    config = str(runs.run_config("utkface", "softmax"))
    main(["-c", config, "--data.protocol", "holdout", "--run_dir", str(run)])
    monkeypatch.setattr(sys, "argv", ["holdout.py", f"plain={run}", f"again={run}", "--page", str(page)])
    holdout.main()
    mean = json.loads((run / "results.json").read_text())["mean"]
    for name in ("plain", "again"):
        assert f"| {name} | {mean['mae']:.3f} | {mean['balanced_mae']:.3f} |" in page.read_text()
    main(["-c", config, "--data.protocol", "stratified", "--run_dir", str(faces / "other")])
    for given in ("run", f"plain={faces}", f"other={faces / 'other'}"):
        monkeypatch.setattr(sys, "argv", ["holdout.py", given])
        with pytest.raises(LDLError, match="must be NAME=FOLDER, of a finished run on UTKFace"):
            holdout.main()


def test_steps_never_see_the_tenth_that_is_tested(
    faces: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = steps.KnownOfUTKFace(crop_size=32, protocol="holdout", val_fraction=0)
    data.setup()
    everyone = UTKFace().read().files
    unseen = {everyone[row] for row in random_split(40, 0.1, 0)[1]}
    assert data.size == 36 and not unseen & set(data.records.files)  # type: ignore[union-attr]
    seen: list[list[str]] = []
    plain = steps.measure

    def measure(taken: list[steps.Step], root: str | None) -> dict[str, float]:
        seen.append([step.name for step in taken])
        small = steps.Step("small", ("trainer.max_epochs=1", "model.backbone.name=mobilenetv2_035"), True)
        return plain([*taken, small], root)

    monkeypatch.setattr(steps, "measure", measure)
    monkeypatch.setattr(sys, "argv", ["steps.py", "--out", str(faces / "steps"), "--steps", "0", "8"])
    steps.main()
    kept = ["six epochs", "four groups of layers fixed, eight kept views", "averaged weights", "twelve epochs"]
    assert seen == [kept[:1], kept]
    first = json.loads((faces / "steps/six_epochs.json").read_text())
    assert f"'six epochs', '{first['mae']:.3f}'" in capsys.readouterr().out and first["minutes"] > 0
    steps.main()
    assert len(seen) == 2  # what is there is read
