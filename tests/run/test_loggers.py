"""Weights & Biases, for real and offline: what lies in its files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import wandb
from pytorch_lightning.loggers import Logger
from pytorch_lightning.loggers.logger import DummyExperiment

from ldl.errors import LDLError
from ldl.run.loggers import MetricsFile, WandbOptions, fault_tolerant, finish, make_loggers, resolve_mode


@pytest.mark.parametrize("of_fold", [False, True])
def test_what_is_said_of_an_offline_run_finds_it(
    of_fold: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = WandbOptions(mode="offline", group="several")
    logger = make_loggers(tmp_path / "run" / "fold_0", options, {}, of_fold=of_fold)[1]
    try:
        lies = Path(logger.experiment.dir).parent
    finally:
        finish([logger])
    place = capsys.readouterr().out.partition("`wandb sync ")[2].partition("`")[0]
    assert list(Path("/").glob(place.removeprefix("/"))) == [lies] and ("*" in place) == of_fold


@pytest.fixture
def anew() -> Iterator[None]:
    """wandb reads its variables once a process."""
    wandb.teardown()
    yield
    wandb.teardown()


@pytest.mark.parametrize(
    ("variables", "options", "said"),
    [
        ({"WANDB_MODE": "nonsense"}, {}, "nonsense"),
        ({"WANDB_INIT_TIMEOUT": "soon"}, {}, "init_timeout"),
        ({}, {"project": "a/b"}, "Invalid project name 'a/b'"),
        ({}, {"tags": [""]}, "run_tags"),
    ],
)
def test_plain_mistakes_are_refused_in_a_line(
    variables: dict[str, str],
    options: dict[str, Any],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    anew: None,
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(LDLError, match=re.escape(said)) as refused:
        make_loggers(tmp_path, WandbOptions(**options), {})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("key", "why"), [("0" * 40, "Failed to authenticate with http://127.0.0.1:9"), ("bad", "40+")])
def test_without_a_server_or_a_key_a_run_is_kept_offline(
    key: str,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    anew: None,
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    variables = {"API_KEY": key, "BASE_URL": "http://127.0.0.1:9", "HTTP_TIMEOUT": "1"}
    for name, value in variables.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    folder = tmp_path / "fold_0"
    folder.mkdir()
    logger = make_loggers(folder, WandbOptions(group=key), {}, of_fold=True)[1]
    try:
        assert logger.experiment.offline
        logger.log_metrics({"loss": 1.0}, 0)
    finally:
        finish([logger])
    assert resolve_mode("auto", key)[0] == "offline"  # not asked again
    out, err = capfd.readouterr()
    assert len(out.splitlines()) == 1 and "kept offline, since it cannot be sent now" in out and why in out and not err


def test_run_that_goes_on_in_its_directory_stays_one_run(tmp_path: Path) -> None:
    for name in ("run-20260102_000000-second", "offline-run-20260101_000000-first", "latest-run"):
        (tmp_path / "wandb" / name).mkdir(parents=True)
    ids = {
        step: make_loggers(tmp_path, WandbOptions(mode="offline"), {}, first_step=step)[1].version for step in (0, 7)
    }
    assert ids == {0: None, 7: "second"}


def test_metrics_file_survives_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start of a resumed run, in the middle of a row, and while a new column is added."""
    path = tmp_path / "metrics.csv"
    first = MetricsFile(tmp_path)
    for step in range(4):
        first.log_metrics({"loss": step / 10}, step)
    whole = path.read_text()
    assert whole.splitlines() == ["loss,step", "0.0,0", "0.1,1", "0.2,2", "0.3,3"]

    path.write_text(whole + "0.4,1")  # of step 13, cut short
    MetricsFile(tmp_path, first_step=3).save()
    assert path.read_text().splitlines() == ["loss,step", "0.0,0", "0.1,1", "0.2,2"]

    def kill(*_: Any) -> None:
        raise KeyboardInterrupt

    resumed, before = MetricsFile(tmp_path, first_step=2), path.read_text()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(os, "replace", kill)
        resumed.log_metrics({"loss": 0.25}, 2)
    assert path.read_text() == before
    resumed = MetricsFile(tmp_path, first_step=2)
    resumed.log_metrics({"loss": 0.25}, 2)
    before = path.read_text()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(os, "replace", kill)
        resumed.log_metrics({"val_kl": 1.5}, 2)
    assert path.read_text() == before
    MetricsFile(tmp_path, first_step=3).log_metrics({"val_kl": 1.75}, 2)
    assert path.read_text().splitlines() == ["loss,step,val_kl", "0.0,0,", "0.1,1,", "0.25,2,", ",2,1.75"]
    MetricsFile(tmp_path).save()
    assert not path.exists()


class _Broken(Logger):
    """Fails at the given place."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self.at = at

    name, version = "broken", "0"  # type: ignore[assignment]

    def _fail(self, at: str) -> Any:
        if at == self.at:
            raise ConnectionError("the server\nis gone")

    @property
    def experiment(self) -> Any:
        self._fail("experiment")
        return DummyExperiment()

    def log_metrics(self, *_: Any, **__: Any) -> None:
        self._fail("log_metrics")

    def log_hyperparams(self, *_: Any, **__: Any) -> None:
        self._fail("log_hyperparams")

    def save(self) -> None:
        self._fail("save")

    def finalize(self, status: str) -> None:
        self._fail("finalize")


@pytest.mark.parametrize("at", ["experiment", "log_metrics", "log_hyperparams", "save", "finalize"])
def test_a_logger_that_fails_costs_a_line(at: str) -> None:
    logger = fault_tolerant(_Broken(at))
    assert isinstance(logger, _Broken)
    with pytest.warns(UserWarning) as said:
        for _ in range(2):
            logger.experiment.anything()  # type: ignore[attr-defined]
            logger.log_hyperparams({})
            logger.log_metrics({"loss": 1.0}, 0)
            logger.save()
            logger.finalize("success")
    assert [str(line.message) for line in said] == ["_Broken logs no more: ConnectionError: the server is gone"]


def test_a_folder_that_wandb_cannot_have_costs_a_line(tmp_path: Path) -> None:
    (tmp_path / "wandb").touch()
    logger = fault_tolerant(make_loggers(tmp_path, WandbOptions(mode="offline"), {})[1])
    with pytest.warns(UserWarning, match="QuietWandb logs no more: NotADirectoryError"):
        logger.log_metrics({"loss": 1.0}, 0)
    finish([logger])
