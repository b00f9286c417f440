"""Two processes on bags: the stumps, weights and metrics of one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from fakes.forks import run_several
from fakes.processes import ROOT, TWO, assert_close, run_here, weights, without_times

pytestmark = pytest.mark.usefixtures("blank_charts")

# 31 bags in 3 folds, in batches of 5: both processes come away with unequal shares, and with batches of padding.
RUN = [
    *("--wandb.mode=disabled", "--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false"),
    *("--trainer.enable_model_summary=false", "--trainer.max_epochs=2", "--trainer.precision=64-true"),
    *("--data.folds=3", "--data.batch_size=5", "--data.val_fraction=0.2"),
]
HEADS = {
    "milboost": ["--model.head.features=0.5", "--model.head.validation=0.2", "--model.head.rounds=10"],
    "softmax": ["--model.head.head.dropout=0"],
}


def make_runs(head: str, folder: Path) -> None:
    """Make folders one/ and two/ with a run by one process and by two."""
    rng = np.random.default_rng(0)
    lines = [
        f"{bag % 2},{bag}," + ",".join(f"{number:.4f}" for number in rng.normal(size=4) + bag % 2)
        for bag in range(31)
        for _ in range(rng.integers(1, 5))
    ]
    (folder / "bags.csv").write_text("\n".join(lines))

    def command(name: str, *more: str) -> list[str]:
        options = ["-c", str(ROOT / f"configs/runs/bags_{head}.yaml"), "--data.path", str(folder / "bags.csv")]
        return [*options, *RUN, *HEADS[head], *more, "--run_dir", str(folder / name)]

    run_here(command("one"), folder)
    run_several([command("two", *TWO)], folder)


@pytest.mark.parametrize("head", [pytest.param("milboost", marks=pytest.mark.slow), "softmax"])
def test_two_processes_learn_and_measure_what_one_does(head: str, tmp_path: Path) -> None:
    make_runs(head, tmp_path)
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    assert list(one) == list(two)
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, two[name], atol=1e-5, rtol=1e-5, equal_nan=True, msg=name)
    if head == "milboost":
        assert len(one["head.feature"]) > 0 and torch.equal(one["head.feature"], two["head.feature"])
    results = [without_times(json.loads((tmp_path / name / "results.json").read_text())) for name in ("one", "two")]
    assert results[0]["mean"]["auc"] > 0
    assert_close(*results)
