"""The command ``ldl``: the audit, and without a subcommand ``train.py``."""

from __future__ import annotations

import csv
import json
import runpy
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from ldl.command import main
from ldl.command.console import command
from ldl.plugins import left_out

RNG = np.random.default_rng(0)
CENTRES = np.repeat(RNG.normal(size=(20, 6)), 5, axis=0)
X, D = CENTRES + 0.3 * RNG.normal(size=CENTRES.shape), RNG.dirichlet(np.ones(3), 100)
RUN = ["-c", "configs/runs/tabular/meanpredictor.yaml", "--wandb.mode", "disabled"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    np.savez(tmp_path / "a.npz", features=X, labels=D, who=np.repeat(np.arange(20), 5))
    return tmp_path / "a.npz"


def audited(capsys: pytest.CaptureFixture[str], *args: Any) -> dict[str, str]:
    """What ``ldl audit`` prints, by the first word of each line."""
    command(["audit", *map(str, args)])
    said = capsys.readouterr().out
    lines = [line.split(maxsplit=1) for line in said[said.index("\nrows ") :].strip().splitlines()]
    return {first: rest for first, rest in lines}


def test_a_table_of_unknown_groups(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = audited(capsys, table)
    assert (said["rows"], said["features"], said["labels"]) == ("100", "6", "3: 0, 1, 2")
    assert said["order"].startswith("rows look grouped: ") and said["duplicates"].startswith("0 ")
    assert said["groups"] == "unknown; name them with --group_key, or the folds may leak them"
    assert said["protocol"] == "random_kfold: groups unknown, so group leakage cannot be audited"


def test_a_table_of_known_groups(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = audited(capsys, table, "--group_key", "who")
    assert said["groups"] == "20, of 5 to 5 rows"
    assert said["protocol"] == "group_exclusive: 0.0% of the test rows share a group with training, over 10 folds"
    said = audited(capsys, table, "--group_key", "who", "--protocol", "shuffled")
    share = float(said["protocol"].removeprefix("shuffled: ").partition("%")[0])
    assert 99 <= share <= 100


def test_warnings_are_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """Here that of a plugin which cannot be imported."""
    monkeypatch.chdir(tmp_path)
    # pytest keeps warnings to itself; this is what Python does with them.
    monkeypatch.setattr(warnings, "showwarning", lambda *args: print(warnings.formatwarning(*args[:4]), end=""))
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "one_that_fails.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(SystemExit), warnings.catch_warnings():
        warnings.simplefilter("always")
        main(["--stage", "predict"])
    del left_out[str(tmp_path / "plugins" / "one_that_fails.py")]
    lines = capsys.readouterr().out.splitlines()
    assert any("one_that_fails.py left out: ModuleNotFoundError: " in line for line in lines)
    assert all(line.startswith("warning: ") for line in lines)


def test_a_table_of_values_with_equal_rows_and_constants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    features = np.hstack([X, np.ones((100, 1))])
    features[[7, 8]] = features[3]
    values = np.arange(100) % 12
    values[7] = values[3]
    np.savez(tmp_path / "b.npz", features=features, years=values)
    said = audited(capsys, tmp_path / "b.npz", "--value_key", "years")
    assert said["features"] == "7, 1 of them constant" and said["labels"] == "12: 0, 1, 2, 3, ..., 11"
    assert said["duplicates"] == "2 (rows with the features of an earlier one), 1 of them with its labels too"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["adit", "a"], "begin with -; did you mean 'audit'?"),
        (["audit"], "the following arguments are required: file; see ldl audit --help"),
        (["audit", "x.npz", "--grp", "a"], "unrecognized arguments: --grp a"),
        (["audit", "x.npz"], "no data file"),
        (["audit", "{}", "--group_key", "whom"], "no key 'whom'; did you mean 'who'?"),
        (["audit", "{}", "--protocol", "person"], "TabularLDL.protocol 'person' must be one of"),
        (["audit", "{}", "--protocol", "persons"], "no groups to leave out"),
        (["--stage", "fitt"], "fitt"),
        (
            ["-c", "heads/aaknn", "--data.path", "{}"],
            "--data.path is given, but no data to have it; name its class too, as in --data TabularLDL",
        ),
        (
            ["-c", "trainer/gpu"],
            "data has options, {'num_workers': 8, 'prefetch': 4}, and no class to have them; name it",
        ),
    ],
)
def test_mistakes_end_in_one_line(
    table: Path, capsys: pytest.CaptureFixture[str], args: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        command([arg.replace("{}", str(table)) for arg in args])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and said.startswith("error: ") and said.count("\n") == 1
    assert message in said


def test_without_a_verb_it_is_train_py(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [*RUN, "--data.path", str(table), "--run_dir"]
    monkeypatch.setattr(sys, "argv", ["ldl", *options, str(tmp_path / "a")])
    runpy.run_module("ldl", run_name="__main__")
    said = capsys.readouterr().out
    first = json.loads((tmp_path / "a" / "results.json").read_text())
    assert (first["leaky"], first["folds"][0]["leak"], first["protocol"]) == (None, None, "random_kfold")
    assert first["order_audit"]["grouped"] and {near["width"] for near in first["order_audit"]["nearness"]} == {1, 5}
    assert said.count("rows look grouped") == 1 and "groups unknown" in said and "0.0%" not in said


def test_predictions_name_groups_as_the_file_does(tmp_path: Path) -> None:
    names = [f"LIDC-IDRI-{78 - row // 10:04d}" for row in range(100)]
    rows = [f"{row / 7:.3f},{name},{a:.3f},{1 - round(a, 3):.3f}" for row, (name, a) in enumerate(zip(names, D[:, 0]))]
    (tmp_path / "a.csv").write_text("\n".join(["x,patient,label:a,label:b", *rows]))
    command([*RUN, "--data.path", str(tmp_path / "a.csv"), "--run_dir", str(tmp_path / "run")])
    with (tmp_path / "run" / "predictions.csv").open() as stream:
        found = list(csv.DictReader(stream))
    assert len(found) == 10 and all(row["group"] == names[int(row["index"])] for row in found)


@pytest.mark.slow
def test_a_run_from_before_protocols_is_tested_on_its_own_rows(table: Path, tmp_path: Path) -> None:
    run = tmp_path / "old"
    main(
        [
            *RUN,
            "--data.path",
            str(table),
            "--data.group_key",
            "who",
            "--data.protocol",
            "shuffled",
            "--run_dir",
            str(run),
        ]
    )
    before = json.loads((run / "results.json").read_text())
    config = yaml.safe_load((run / "config.yaml").read_text())
    assert config["data"]["init_args"].pop("protocol") == "shuffled"
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    main(["--stage", "test", "--ckpt_path", str(run / "checkpoints" / "last.ckpt"), "--run_dir", str(tmp_path / "new")])
    after = json.loads((tmp_path / "new" / "results.json").read_text())
    assert after["protocol"] == "random_kfold" and after["leaky"] is True
    assert after["mean"] == pytest.approx(before["mean"])


def test_full_garbage_collections_leave_out_what_was_imported() -> None:
    """Only once: what a program makes between two runs is freed as ever."""
    program = """
import gc
from ldl.command import main
counts = []
for _ in range(2):
    try:
        main(["--help"])
    except SystemExit:
        counts.append(gc.get_freeze_count())
assert gc.isenabled() and counts[0] >= counts[1] > 100_000, counts
"""
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
