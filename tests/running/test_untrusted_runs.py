"""A run's folder that somebody else made: neither its checkpoint nor its configuration runs code or leaves a trace."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from ldl.checkpoint import AtomicCheckpointIO
from ldl.cli import main
from ldl.task import Task

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
LAST = "ModelCheckpoint{'monitor': None, 'mode': 'min', 'every_n_train_steps': 0, 'every_n_epochs': 1, "
LAST += "'train_time_interval': None}"
STOPPING = "EarlyStopping{'monitor': 'val_kl', 'mode': 'min'}"
GROUP = ("optimizer_states", 0, "param_groups", 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (drop("optimizer_states"), "KeyError 'optimizer_states'"),
        (put([], "optimizer_states"), "it has 0 optimisers and 1 schedulers"),
        (put("all", "optimizer_states"), "does not fit"),
        (put([{}], "optimizer_states"), "does not fit"),
        (drop(*GROUP, "betas"), "KeyError 'betas'"),
        (put("fast", *GROUP, "lr"), "does not fit"),
        (put([], *GROUP, "params"), "does not fit"),
        (drop("optimizer_states", 0, "state", 0, "exp_avg"), "KeyError 'exp_avg'"),
        (put(torch.ones(7), "optimizer_states", 0, "state", 0, "exp_avg"), "does not fit"),
        (drop("lr_schedulers"), "KeyError 'lr_schedulers'"),
        (put([], "lr_schedulers"), "1 optimisers and 0 schedulers"),
        (put("many", "lr_schedulers", 0, "T_max"), "lr_schedulers.0.T_max is a str, not a int"),
        (put(5, "lr_schedulers", 0, "step"), "does not fit"),
        (drop("pytorch-lightning_version"), "KeyError 'pytorch-lightning_version'"),
        (put("new", "pytorch-lightning_version"), "InvalidVersion"),
        (put("1.5", "pytorch-lightning_version"), "it is of Lightning 1.5"),
        (drop("loops"), "KeyError 'loops'"),
        (put([], *FIT), "loops.fit_loop is a list"),
        (drop(*FIT, "epoch_progress"), "loops.fit_loop has no entry 'epoch_progress'"),
        (put("two", *FIT, "epoch_progress", "current", "processed"), "processed is a str, not a int"),
        (put(-3, *FIT, "epoch_progress", "current", "processed"), "processed is out of range"),
        (put(10**9, *FIT, "epoch_progress", "current", "processed"), "it has trained 1000000000 epochs"),
        (put(7, *FIT, "epoch_progress", "reset"), "has an entry 'reset'"),
        (put([], "callbacks"), "does not fit"),
        (put("soon", "callbacks", STOPPING, "wait_count"), "wait_count is a str, not a int"),
        (put("ring", "leaf_update"), "does not fit"),
        (put(torch.tensor([10**6]), "leaf_update", "rows"), "the recent samples are not those"),
        (put({"loss": torch.ones(1)}, "train_means"), "does not fit"),
        (put({"val_kl": "low"}, "measured"), "measured.val_kl is a str, not a Tensor"),
        (put(torch.ones(9), "state_dict", "head.leaves"), "its head.leaves has shape"),
        (put("local:///etc", "callbacks", LAST, "best_model_path"), "best_model_path is 'local:///etc'"),
        (put(torch.zeros(4), "TabularLDL", "scale"), "scale of the features is no scaling"),
        (put(torch.ones(3), "TabularLDL", "mean"), "does not fit"),
        (drop("TabularLDL", "mean"), "mean of the features is no scaling"),
        (drop("TabularLDL", "kind"), "KeyError 'kind'"),
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


def test_another_optimiser_is_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    last = copy_of(run, tmp_path)
    for given in ("--model.optimizer=SGD", "--model.lr_scheduler=null"):
        assert "scheduler and data it was saved with" in refused(
            capsys, "--ckpt_path", last, given, "--trainer.max_epochs=2"
        )


@pytest.mark.parametrize("stage", ["test", "predict"])
def test_changed_scaling_is_refused(run: Path, tmp_path: Path, stage: str, capsys: pytest.CaptureFixture[str]) -> None:
    last = copy_of(run, tmp_path)
    checkpoint = torch.load(last, weights_only=True)
    checkpoint["TabularLDL"]["scale"][0] = 0
    torch.save(checkpoint, last)
    assert "is no scaling" in refused(capsys, "--stage", stage, "--ckpt_path", last, "--run_dir", tmp_path / "new")
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


def test_an_unchanged_copy_goes_on(run: Path, tmp_path: Path) -> None:
    main(["--ckpt_path", str(copy_of(run, tmp_path)), "--trainer.max_epochs=2"])
    assert torch.load(tmp_path / "run/checkpoints/last.ckpt", weights_only=True)["epoch"] == 1


EVIL = {"class_path": "downloaded.Thing"}


@pytest.mark.parametrize("stage", ["fit", "test"])
@pytest.mark.parametrize(
    ("key", "given", "words"),
    [
        ("model.optimizer", {"class_path": "os.system", "init_args": {"command": "touch PWNED"}}, "names os.system"),
        ("model.optimizer", EVIL, "the configuration found beside the checkpoint may name classes of ldl"),
        ("model.lr_scheduler", EVIL, "model.lr_scheduler names downloaded.Thing"),
        ("model.head", EVIL, "model.head names downloaded.Thing"),
        ("data", EVIL, "data names downloaded.Thing"),
        ("trainer.callbacks", [EVIL], "trainer.callbacks names downloaded.Thing"),
        ("trainer.logger", EVIL, "trainer.logger names downloaded.Thing"),
        ("trainer.strategy", EVIL, "trainer.strategy names downloaded.Thing"),
    ],
)
def test_a_configuration_beside_a_checkpoint_runs_nothing(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    stage: str, key: str, given: Any, words: str,
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
    assert words in refused(capsys, "--stage", stage, "--ckpt_path", last)
    assert not (tmp_path / "PWNED").exists()


def test_a_configuration_beside_a_checkpoint_does_not_say_where_to_write(run: Path, tmp_path: Path) -> None:
    last = copy_of(run, tmp_path)
    config = yaml.safe_load((tmp_path / "run/config.yaml").read_text())
    (tmp_path / "run/config.yaml").write_text(yaml.safe_dump(config | {"run_dir": str(tmp_path / "elsewhere")}))
    main(["--stage=test", "--ckpt_path", str(last), "--run_dir", str(tmp_path / "test")])
    main(["--ckpt_path", str(last)])
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("factory", ["os.system", "posix.system", "subprocess.run", "shutil.rmtree", "builtins.exec"])
def test_commands_are_no_optimisers(
    run: Path, tmp_path: Path, factory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"model": {"optimizer": {"class_path": factory, "init_args": {"command": "touch PWNED"}}}}
    (tmp_path / "evil.yaml").write_text(yaml.safe_dump(given))
    line = refused(capsys, "-c", run.parent / "config.yaml", "-c", tmp_path / "evil.yaml")
    assert f"model.optimizer names {factory}, which runs commands or loads code" in line


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


def test_a_resumed_run_removes_nothing_else(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were it not for the check of its path, Lightning would remove ``precious`` with all that is in it."""
    monkeypatch.setattr("ldl.running.resume._check_places", lambda *_: None)
    last = copy_of(run, tmp_path)
    (tmp_path / "precious").mkdir()
    checkpoint = torch.load(last, weights_only=True)
    checkpoint["callbacks"][LAST]["best_model_path"] = f"local://{tmp_path}/precious"
    torch.save(checkpoint, last)
    main(["--ckpt_path", str(last), "--trainer.max_epochs=2"])
    assert (tmp_path / "precious").is_dir()
