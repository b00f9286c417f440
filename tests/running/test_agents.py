"""Two agents of torchrun, of which one is lost with its process and replaced: the leaves and metrics of one process."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import torch
from processes import LEAVES, RUN, TOLERANCE, assert_close, logged, run_here, weights, without_times

from benchmarks.robustness.agents import Pair
from benchmarks.robustness.elastic import Agent

OPTIONS = [*RUN, *LEAVES, "--model.head.batches", "10", "--trainer.max_epochs", "3", "--data.batch_size", "53"]


@pytest.mark.usefixtures("blank_charts")
def test_lost_agent_is_replaced_and_the_run_goes_on(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    run_here([*OPTIONS, "--run_dir", str(one)], tmp_path)
    pair = Pair(OPTIONS, two, forks=True)
    deadline = time.monotonic() + 120
    while not pair.last.is_file() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert pair.last.is_file(), pair.log.read_text()
    pair.lose(Agent.kill_all)
    assert pair.end() == [], pair.log.read_text()
    assert f"weights: {pair.last}, after step" in pair.log.read_text()
    expected = weights(one)
    for name, tensor in weights(two).items():
        torch.testing.assert_close(tensor, expected[name], rtol=TOLERANCE, atol=TOLERANCE, msg=name)
    assert_close(*(without_times(json.loads((run / "results.json").read_text())) for run in (one, two)))
    assert_close(logged(one / "metrics.csv"), logged(two / "metrics.csv"))
