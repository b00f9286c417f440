"""A run's folder that somebody else made: neither its checkpoint nor its configuration runs code or leaves a trace."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from ldl.checkpoint import AtomicCheckpointIO
from ldl.command import main
from ldl.errors import LDLError
from ldl.search.runs import read_run
from ldl.task import Task

pytestmark = pytest.mark.usefixtures("blank_charts")

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one epoch, with all that is resumed: momentum, a scheduler, and callbacks."""
    folder = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(0)
    table = np.hstack([rng.normal(size=(30, 4)), rng.dirichlet(np.ones(3), 30)])
    header = "f0,f1,f2,f3,label:a,label:b,label:c"
    np.savetxt(folder / "table.csv", table, delimiter=",", header=header, comments="", fmt="%.9f")
    config = {
        "data": {"class_path": "TabularLDL", "init_args": {"path": str(folder / "table.csv")}},
        "model": {
            "head": {"class_path": "LDLF", "init_args": {"trees": 2, "depth": 3, "outputs": 5, "batches": 3}},
            "optimizer": {"class_path": "Adam", "init_args": {"lr": 0.1}},
            "lr_scheduler": {"class_path": "CosineAnnealingLR", "init_args": {"T_max": 4}},
        },
        "trainer": {
            "accelerator": "cpu", "max_epochs": 1, "logger": False, "enable_progress_bar": False,
            "callbacks": [{"class_path": "EarlyStopping", "init_args": {"monitor": "val_kl"}}],
        },
        "run_dir": str(folder / "run"),
    }  # fmt: skip
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    main(["-c", str(folder / "config.yaml")])
    return folder / "run"


def copy_of(run: Path, folder: Path) -> Path:
    """Its configuration and checkpoint elsewhere; returns the checkpoint."""
    (folder / "run/checkpoints").mkdir(parents=True)
    shutil.copy(run / "config.yaml", folder / "run")
    (folder / "run/.ldl").touch()
    return Path(shutil.copy(run / "checkpoints/last.ckpt", folder / "run/checkpoints"))


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def refused(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    """The one line with which a command line is refused."""
    with pytest.raises(SystemExit) as exit_:
        main([*map(str, args)])
    lines = capsys.readouterr().err.splitlines()
    assert exit_.value.code == 2
    assert [line for line in lines if line.startswith("error: ")] == lines[-1:]
    return lines[-1]


def put(value: Any, *path: Any) -> Change:
    def change(checkpoint: dict[Any, Any]) -> None:
        for name in path[:-1]:
            checkpoint = checkpoint[name]
        checkpoint[path[-1]] = value

    return change


def drop(*path: Any) -> Change:
    def change(checkpoint: dict[Any, Any]) -> None:
        for name in path[:-1]:
            checkpoint = checkpoint[name]
        del checkpoint[path[-1]]

    return change


FIT = ("loops", "fit_loop")
GROUP = ("optimizer_states", 0, "param_groups", 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (drop("optimizer_states"), "does not fit"),
        (put([{}], "optimizer_states"), "does not fit"),
        (put([], *GROUP, "params"), "does not fit"),
        (drop("optimizer_states", 0, "state", 0, "exp_avg"), "exp_avg"),
        (put("many", "lr_schedulers", 0, "T_max"), "optimiser or scheduler does not accept its options"),
        (put(10**9, *FIT, "epoch_progress", "current", "completed"), "max_epochs=2"),
        (put(torch.tensor([10**6]), "leaf_update", "rows"), "the recent samples are not those"),
        (put({"loss": torch.ones(1)}, "train_means"), "does not fit"),
        (put(torch.ones(9), "state_dict", "head.leaves"), "its head.leaves has shape"),
        (put(torch.zeros(4), "TabularLDL", "scale"), "scale of the features is no scaling"),
        (put(2**30, "ldl", "head", "init_args", "trees"), "head has trees 1073741824 instead of 2"),
    ],
)  # fmt: skip
def test_changed_training_state_is_refused(
    run: Path, tmp_path: Path, change: Change, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    last = copy_of(run, tmp_path)
    checkpoint = torch.load(last, weights_only=True)
    change(checkpoint)
    torch.save(checkpoint, last)
    before = content(tmp_path)
    line = refused(capsys, "--ckpt_path", last, "--trainer.max_epochs=2")
    assert words in line
    assert content(tmp_path) == before


def test_changed_scaling_is_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    last = copy_of(run, tmp_path)
    checkpoint = torch.load(last, weights_only=True)
    checkpoint["TabularLDL"]["scale"][0] = 0
    torch.save(checkpoint, last)
    assert "is no scaling" in refused(capsys, "--stage=test", "--ckpt_path", last, "--run_dir", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_other_rows_are_scaled_as_in_training(run: Path, tmp_path: Path) -> None:
    """The checkpoint's weights and scaling, by hand, on a table that has another mean and deviation."""
    table = run.parent / "table.csv"
    values = np.loadtxt(table, delimiter=",", skiprows=1)
    values[:, :4] = 3 * values[:, :4] + 1
    header = table.read_text().splitlines()[0]
    np.savetxt(tmp_path / "other.csv", values, delimiter=",", header=header, comments="")
    last = run / "checkpoints/last.ckpt"
    options = {"ckpt_path": last, "run_dir": tmp_path / "test", "data.path": tmp_path / "other.csv"}
    main(["--stage=test", *(f"--{name}={path}" for name, path in options.items())])
    found = np.genfromtxt(tmp_path / "test/predictions.csv", delimiter=",", names=True)
    scaling = torch.load(last, weights_only=True)["TabularLDL"]
    rows = (torch.from_numpy(values[:, :4]) - scaling["mean"]) / scaling["scale"]
    with torch.no_grad():
        wanted = Task.load_from_checkpoint(last)(rows.float())[found["index"].astype(int)]
    predicted = np.stack([found[name] for name in found.dtype.names if name.startswith("predict")][:3], 1)
    np.testing.assert_allclose(predicted, wanted, atol=1e-5)


EVIL = {"class_path": "downloaded.Thing"}


@pytest.mark.parametrize(
    ("key", "given", "words"),
    [
        ("model.optimizer", {"class_path": "os.system", "init_args": {"command": "touch PWNED"}}, "names os.system"),
        ("model.optimizer", EVIL, "the configuration found beside the checkpoint may name classes of ldl"),
        ("model.head", EVIL, "model.head names downloaded.Thing"),
        ("trainer.callbacks", [EVIL], "trainer.callbacks names downloaded.Thing"),
        ("trainer.logger", EVIL, "trainer.logger names downloaded.Thing"),
        (
            "trainer.callbacks",
            [{"class_path": "LambdaCallback", "init_args": {"on_train_start": "torch.seed"}}],
            "trainer.callbacks names pytorch_lightning.callbacks.LambdaCallback",
        ),
        (
            "trainer.callbacks",
            [
                {
                    "class_path": "StochasticWeightAveraging",
                    "init_args": {"swa_lrs": 0.1, "avg_fn": "ldl.checkpoint.os.system"},
                }
            ],
            "names ldl.checkpoint.os.system",
        ),
        ("trainer.callbacks", [{"class_path": "ldl.checkpoint.write_whole"}], "names ldl.checkpoint.write_whole"),
        (
            "trainer.callbacks",
            [{"class_path": "OnExceptionCheckpoint", "init_args": {"dirpath": None}}],
            "names pytorch_lightning.callbacks.OnExceptionCheckpoint",
        ),
        (
            "trainer.callbacks",
            [{"class_path": "ModelCheckpoint", "init_args": {"dirpath": "PWNED"}}],
            "dirpath 'PWNED' leads out of the folder of the run; this file was found beside the checkpoint, so if its "
            "source is safe, name it with -c /",
        ),
        (
            "trainer.callbacks",
            {"class_path": "ModelCheckpoint", "init_args": {"filename": "../../PWNED"}},
            "filename '../../PWNED' leads out of the folder of the run",
        ),
        ("trainer.logger", {"class_path": "CSVLogger", "init_args": {"save_dir": "PWNED"}}, "save_dir 'PWNED' leads"),
        ("trainer.logger", [{"class_path": "TensorBoardLogger", "init_args": {"save_dir": "."}}], "save_dir '.' leads"),
        (
            "trainer.profiler",
            {"class_path": "SimpleProfiler", "init_args": {"filename": "a"}},
            "trainer.profiler names pytorch_lightning.profilers.SimpleProfiler",
        ),
        ("trainer.plugins", ["ldl.checkpoint.AtomicCheckpointIO"], "names ldl.checkpoint.AtomicCheckpointIO"),
        ("model.optimizer", {"class_path": "torch.optim.optimizer.os.system"}, "names torch.optim.optimizer.os.system"),
    ],
)
def test_a_configuration_beside_a_checkpoint_runs_nothing(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    key: str, given: Any, words: str,
) -> None:  # fmt: skip
    (tmp_path / "downloaded.py").write_text("open('PWNED', 'w')\nclass Thing: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    last = copy_of(run, tmp_path)
    config = yaml.safe_load((tmp_path / "run/config.yaml").read_text())
    place = config
    *path, name = key.split(".")
    for part in path:
        place = place[part]
    place[name] = given
    (tmp_path / "run/config.yaml").write_text(yaml.safe_dump(config))
    assert words in refused(capsys, "--ckpt_path", last)
    assert not (tmp_path / "PWNED").exists()


def test_a_configuration_beside_a_checkpoint_does_not_say_where_to_write(run: Path, tmp_path: Path) -> None:
    last = copy_of(run, tmp_path)
    config = yaml.safe_load((tmp_path / "run/config.yaml").read_text())
    (tmp_path / "run/config.yaml").write_text(yaml.safe_dump(config | {"run_dir": str(tmp_path / "elsewhere")}))
    main(["--stage=test", "--ckpt_path", str(last), "--run_dir", str(tmp_path / "test")])
    main(["--ckpt_path", str(last)])
    assert not (tmp_path / "elsewhere").exists()


def test_a_function_is_no_optimiser(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "evil.yaml").write_text("model: {optimizer: {class_path: torch.seed}}")
    line = refused(capsys, "-c", run.parent / "config.yaml", "-c", tmp_path / "evil.yaml")
    assert "model.optimizer names torch.seed, which is no Optimizer" in line


@pytest.mark.parametrize("place", ["{here}/checkpoints/../precious", "{here}/precious", "local://{here}/precious"])
def test_a_checkpoint_does_not_say_what_to_remove(tmp_path: Path, place: str) -> None:
    """What a resumed ``ModelCheckpoint`` believes to have saved last is removed once it has saved again."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/work").write_text("a thesis")
    files, last = AtomicCheckpointIO(), tmp_path / "checkpoints/last.ckpt"
    files.save_checkpoint({}, last)
    for named in (place, f"{place}/work"):
        files.remove_checkpoint(named.format(here=tmp_path))
    files.remove_checkpoint(last.parent / "..")
    assert (tmp_path / "precious/work").read_text() == "a thesis"
    files.remove_checkpoint(last)
    assert not list(last.parent.iterdir())


def test_a_resumed_run_removes_nothing_else(run: Path, tmp_path: Path) -> None:
    """Lightning alone would remove ``precious`` with all that is in it."""
    last = copy_of(run, tmp_path)
    (tmp_path / "precious").mkdir()
    checkpoint = torch.load(last, weights_only=True)
    (name,) = (name for name in checkpoint["callbacks"] if name.startswith("ModelCheckpoint{'monitor': None"))
    checkpoint["callbacks"][name]["best_model_path"] = f"local://{tmp_path}/precious"
    torch.save(checkpoint, last)
    main(["--ckpt_path", str(last), "--trainer.max_epochs=2"])
    assert (tmp_path / "precious").is_dir()
    assert torch.load(last, weights_only=True)["epoch"] == 1


def nested(depth: int = 9) -> str:
    """242 bytes that unfold to 10^9 nodes."""
    lines = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    return "\n".join(
        [
            *lines,
            *(f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]" for old, new in zip("abcdefghi"[:depth], "bcdefghij")),
        ]
    )


@pytest.mark.parametrize("text", [nested(), "a: &a [*a]", "a: &a {b: *a}"])
def test_a_configuration_that_unfolds_without_end_is_refused(
    run: Path, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside a checkpoint, named with ``-c``, and as a run that is listed."""
    last = copy_of(run, tmp_path)
    (tmp_path / "run/config.yaml").write_text(text)
    started = time.monotonic()
    words = "has more than 100000 nodes with its aliases expanded, or contains itself"
    assert words in refused(capsys, "--ckpt_path", last)
    assert words in refused(capsys, "-c", tmp_path / "run/config.yaml")
    with pytest.raises(LDLError, match="has more than 100000 nodes"):
        read_run(tmp_path / "run")
    assert time.monotonic() - started < 5


def test_a_configuration_beside_a_checkpoint_chooses_no_cache(run: Path, tmp_path: Path) -> None:
    last = copy_of(run, tmp_path)
    config = yaml.safe_load((tmp_path / "run/config.yaml").read_text())
    config["data"]["init_args"] |= {"cache_dir": str(tmp_path / "elsewhere"), "in_memory": 0, "download": True}
    (tmp_path / "run/config.yaml").write_text(yaml.safe_dump(config))
    main(["--stage=test", "--ckpt_path", str(last), "--run_dir", str(tmp_path / "test")])
    assert not (tmp_path / "elsewhere").exists()
    written = yaml.safe_load((tmp_path / "test/config.yaml").read_text())
    assert written["data"]["init_args"]["cache_dir"] is None and not written["data"]["init_args"]["download"]


def test_callbacks_and_loggers_inside_the_run_stay(run: Path, tmp_path: Path) -> None:
    last = copy_of(run, tmp_path)
    config = yaml.safe_load((tmp_path / "run/config.yaml").read_text())
    config["trainer"]["callbacks"].append({"class_path": "ModelCheckpoint", "init_args": {"filename": "mine"}})
    config["trainer"]["logger"] = {"class_path": "CSVLogger", "init_args": {"save_dir": str(tmp_path / "run/logs")}}
    (tmp_path / "run/config.yaml").write_text(yaml.safe_dump(config))
    main(["--ckpt_path", str(last), "--trainer.max_epochs=2"])
    assert list((tmp_path / "run/logs").rglob("metrics.csv"))


def test_config_is_replaced_and_not_written_through_a_link(run: Path, tmp_path: Path) -> None:
    last = copy_of(run, tmp_path)
    precious = tmp_path / "precious"
    precious.write_text("a thesis")
    (tmp_path / "new").mkdir()
    (tmp_path / "new/.ldl").touch()
    (tmp_path / "new/config.yaml").symlink_to(precious)
    main(["--stage=test", "--ckpt_path", str(last), "--run_dir", str(tmp_path / "new")])
    assert precious.read_text() == "a thesis"
    assert not (tmp_path / "new/config.yaml").is_symlink()
