"""Two processes on pictures: the metrics of one, every test picture counted once, augmentation included."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from fakes.face_releases import utkface
from fakes.processes import ROOT, TORCHRUN, TWO, assert_close, launch, logged, run_here, without_times

# 53 pictures in 3 folds: 18 or 17 test pictures, in batches of 5, so that processes come away with unequal shares.
RUN = [
    *("-c", str(ROOT / "configs/runs/utkface_softmax.yaml"), "--wandb.mode", "disabled", "--trainer.accelerator=cpu"),
    *("--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false", "--trainer.max_epochs=2"),
    *("--model.backbone", "Identity", "--model.backbone.flatten=true", "--trainer.precision=64-true"),
    *("--data.crop_size=16", "--data.folds=3", "--data.batch_size=5", "--data.val_fraction=0.2"),
]


pytestmark = [pytest.mark.usefixtures("blank_charts"), pytest.mark.slow]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders one/ and two/, with the run by one process, and by two that share an empty crop cache."""
    folder = tmp_path_factory.mktemp("faces")
    script, commands = str(ROOT / "tests" / "fakes" / "several_runs.py"), folder / "two.json"
    data = ["--data.root", str(utkface(folder, 53))]
    with pytest.MonkeyPatch.context() as patched:
        for name, options in (("one", []), ("two", [*TWO, "--data.num_workers=1"])):
            patched.setenv("LDL_CACHE", str(folder / f"cache_{name}"))
            command = [*RUN, *data, *options, "--run_dir", str(folder / name)]
            if name == "one":
                run_here(command, folder)
            else:
                commands.write_text(json.dumps([command]))
                done = launch([*TORCHRUN, script, str(commands)], folder)
                assert done.returncode == 0, done.stderr[-3000:]
                assert done.stdout.count("cropping 53 images") == 1
    return folder


def _predictions(run: Path) -> list[dict[str, str]]:
    with (run / "predictions.csv").open() as stream:
        return list(csv.DictReader(stream))


def test_two_processes_measure_what_one_measures(runs: Path) -> None:
    one, two = (without_times(json.loads((runs / name / "results.json").read_text())) for name in ("one", "two"))
    assert one["mean"]["mae"] > 0
    assert_close(one, two)
    assert_close(logged(runs / "one" / "metrics.csv"), logged(runs / "two" / "metrics.csv"))


def test_every_test_picture_is_counted_once(runs: Path) -> None:
    one, two = (_predictions(runs / name) for name in ("one", "two"))
    results = json.loads((runs / "two" / "results.json").read_text())
    (fold,) = results["folds"]
    index = [int(row["index"]) for row in two]
    assert [row["name"] for row in one] == [row["name"] for row in two]
    assert len(index) == fold["n_test"] == len(set(index)) and index == sorted(index)
    errors = [abs(float(row["predicted_value"]) - float(row["value"])) for row in two]
    assert results["mean"]["mae"] == pytest.approx(sum(errors) / len(errors), rel=1e-5)
    for a, b in zip(one, two):
        assert float(a["prediction:40"]) == pytest.approx(float(b["prediction:40"]), rel=1e-5)
