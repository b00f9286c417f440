"""Agents of torchrun on one machine, one of which is lost and replaced: the leaves and metrics of one process."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fakes.forks import Agent, Pair
from fakes.processes import LEAVES, RUN, TOLERANCE, assert_close, logged, run_here, weights, without_times

OPTIONS = [*RUN, *LEAVES, "--model.head.batches", "10", "--trainer.max_epochs", "3", "--data.batch_size", "53"]
LOSSES: dict[str, Callable[[Agent], None]] = {
    "agent and process": Agent.kill_all,
    "agent by SIGTERM": lambda agent: os.kill(agent.leader, signal.SIGTERM),
}


@pytest.fixture(scope="module")
def one(blank_charts: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run by one process."""
    folder = tmp_path_factory.mktemp("agents")
    run_here([*OPTIONS, "--run_dir", str(folder / "one")], folder)
    return folder / "one"


@pytest.mark.slow
@pytest.mark.parametrize("lost", LOSSES)
def test_lost_agent_is_replaced_and_the_run_goes_on(one: Path, tmp_path: Path, lost: str) -> None:
    two = tmp_path / "two"
    pair = Pair(OPTIONS, two)
    deadline = time.monotonic() + 120
    while not pair.last.is_file() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert pair.last.is_file(), pair.log.read_text()
    pair.lose(LOSSES[lost])
    assert pair.end() == [], pair.log.read_text()
    assert f"weights: {pair.last}, after step" in pair.log.read_text()
    expected = weights(one)
    for name, tensor in weights(two).items():
        torch.testing.assert_close(tensor, expected[name], rtol=TOLERANCE, atol=TOLERANCE, msg=name)
    assert_close(*(without_times(json.loads((run / "results.json").read_text())) for run in (one, two)))
    assert_close(logged(one / "metrics.csv"), logged(two / "metrics.csv"))
