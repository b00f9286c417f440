"""The law of several processes: two give the same leaves, weights and metrics as one on the same global batches."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import torch
from fakes.paths import ROOT
from fakes.processes import (
    HEADS,
    LEAVES,
    RUN,
    TOLERANCE,
    TORCHRUN,
    TWO,
    assert_close,
    launch,
    logged,
    run_here,
    without_times,
)

pytestmark = [pytest.mark.usefixtures("blank_charts"), pytest.mark.slow]


def command_lines(folder: Path, *options: str) -> list[list[str]]:
    return [[*RUN, *head, *options, "--run_dir", str(folder / name)] for name, head in HEADS.items()]


CROSSVAL = [
    *(*LEAVES, "--model.head.batches", "5", "--trainer.max_epochs", "1"),
    *("--data.folds", "2", "--data.batch_size", "75", "--stage", "crossval"),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders one/ and two/ with the same runs by one process and by two, which torchrun started.

    The two processes end with a run whose data are refused; stderr.txt is what they said.
    """
    folder = tmp_path_factory.mktemp("ddp")
    for arguments in (*command_lines(folder / "one"), [*RUN, *CROSSVAL, "--run_dir", str(folder / "one" / "crossval")]):
        run_here(arguments, folder)
    two = folder / "two.json"
    two.write_text(json.dumps([*command_lines(folder / "two", *TWO), [*RUN, *TWO, "--data.step", "7"]]))
    script = str(ROOT / "tests" / "fakes" / "several_runs.py")
    done = launch([*TORCHRUN, script, str(two)], folder)
    (folder / "stderr.txt").write_text(done.stderr)
    return folder


@pytest.mark.parametrize("head", HEADS)
def test_two_processes_equal_one(runs: Path, head: str) -> None:
    """Weights, leaves, calibration, metrics, and predictions of every test instance once and in order."""
    one, two = runs / "one" / head, runs / "two" / head
    states = [torch.load(run / "checkpoints" / "last.ckpt", weights_only=True) for run in (one, two)]
    assert list(states[0]["state_dict"]) == list(states[1]["state_dict"])
    for name, tensor in states[0]["state_dict"].items():
        close(states[1]["state_dict"][name], tensor, name)
    calibrations = [state["calibration"][0] for state in states]
    assert calibrations[0]["units"] == calibrations[1]["units"] > 9
    for name in ("score", "weight"):
        close(calibrations[1][name], calibrations[0][name], name)
    assert_close(*(without_times(json.loads((run / "results.json").read_text())) for run in (one, two)))
    assert_close(logged(one / "metrics.csv"), logged(two / "metrics.csv"))
    predicted = [logged(run / "predictions.csv") for run in (one, two)]
    index = [row["index"] for row in predicted[1]]
    assert len(index) == 599 and index == sorted(set(index))
    assert_close(*predicted)


def close(found: torch.Tensor, expected: torch.Tensor, name: str) -> None:
    torch.testing.assert_close(found, expected, rtol=TOLERANCE, atol=TOLERANCE, msg=name)


def test_the_rate_falls_in_both_by_what_the_validation_measures(runs: Path) -> None:
    rates = [
        torch.load(runs / n / "steps" / "checkpoints" / "last.ckpt", weights_only=True)["optimizer_states"][0]
        for n in ("one", "two")
    ]
    one, two = (state["param_groups"][0]["lr"] for state in rates)
    assert one == two < 0.01


def test_leaves_were_updated_several_times(runs: Path) -> None:
    checkpoint = torch.load(runs / "two" / "ldlf" / "checkpoints" / "last.ckpt", weights_only=True)
    leaves = checkpoint["state_dict"]["head.leaves"]
    assert (leaves - 1 / leaves.shape[-1]).abs().max() > 0.01
    # 94 batches, one update every 10: 4 were seen since the ninth, and the others will not be seen again.
    assert int(checkpoint["state_dict"]["head.steps"]) == 94
    assert int(checkpoint["leaf_update"]["observed"]) == 4
    assert checkpoint["leaf_update"]["rows"].tolist() == [23] * 3 + [1]


def test_gathered_ring_has_the_rows_of_one_process_in_order(runs: Path) -> None:
    one, two = (
        torch.load(runs / n / "ldlf" / "checkpoints" / "last.ckpt", weights_only=True)["leaf_update"]
        for n in ("one", "two")
    )
    assert torch.equal(one["target"], two["target"])
    close(two["kept"], one["kept"], "kept")


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Folder and end of two processes that Lightning starts: a cross-validation, then a run with a damaged row."""
    folder = tmp_path_factory.mktemp("launched")
    damaged = [*HEADS["softmax"], "--data", "fakes.processes.DamagedDigits", "--data.num_workers", "1"]
    commands = [[*RUN, *more, *TWO, "--run_dir", name] for name, more in (("run", CROSSVAL), ("damaged", damaged))]
    (folder / "runs.json").write_text(json.dumps(commands))
    return folder, launch([str(ROOT / "tests" / "fakes" / "several_runs.py"), "runs.json"], folder)


def test_crossval_of_two_processes_ends_with_the_results_of_one(
    runs: Path, launched: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    folder, done = launched
    assert (folder / "run" / "results.json").exists(), done.stderr[-3000:]
    one, two = (json.loads((run / "results.json").read_text()) for run in (runs / "one" / "crossval", folder / "run"))
    assert [fold["fold"] for fold in two["folds"]] == [0, 1]
    assert_close(without_times(one), without_times(two))
    assert sorted(path.name for path in (folder / "run").iterdir()) == [
        ".ldl",
        "charts",
        "fold_0",
        "fold_1",
        "model_card.md",
        "results.json",
    ]


def test_bad_setting_is_said_once_by_two_processes(runs: Path) -> None:
    said = (runs / "stderr.txt").read_text()
    assert re.findall(r"^error:.*$", said, re.MULTILINE) == ["error: RotatedDigits.step 7 must divide max_angle 120"], (
        said[-3000:]
    )
    assert len(re.findall(r"exitcode *: 2 ", said)) == 1, said[-3000:]


def test_data_error_in_one_share_ends_all_processes_with_one_line(
    launched: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    done = launched[1]
    assert done.returncode == 2, done.stderr[-3000:]
    assert re.findall(r"^error:.*$", done.stderr, re.MULTILINE) == [
        "error: digit.png cannot be read as an image; replace the file"
    ]
    assert "Traceback" not in done.stderr
