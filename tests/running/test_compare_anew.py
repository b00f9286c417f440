"""A comparison that is given again in its folder measures anew what has changed: features of one candidate, workers."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from distributed import LocalCluster

from ldl.cells.store import Store
from ldl.cli import main

pytestmark = pytest.mark.usefixtures("blank")

RUN = ["--data.folds=2", "--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]
Compare = Callable[..., float]


def table(path: Path, seed: int) -> None:
    """Features of a seed, and labels that are the same for all."""
    labels = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    np.savez(path, features=np.random.default_rng(seed).normal(size=(60, 3)), labels=labels)


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """Compares a head with the mean predictor on ``table.npz``; returns the mean KL of the head."""

    def go(run: str, options: dict[str, Any], *more: str) -> float:
        data = {"class_path": "TabularLDL", "init_args": {"path": str(tmp_path / "table.npz")}}
        content = {"candidates": {"head": {"run": run, "options": options}}, "data": data}
        (tmp_path / "compare.yaml").write_text(yaml.safe_dump(content))
        place = ["-c", str(tmp_path / "compare.yaml"), "--run_dir", str(tmp_path / "run")]
        main(["--stage", "compare", *place, *RUN, *more])
        return json.loads((tmp_path / "run" / "comparison.json").read_text())["candidates"][1]["kl"]["mean"]

    return go


def test_features_that_one_candidate_alone_reads(compare: Compare, tmp_path: Path) -> None:
    table(tmp_path / "table.npz", 0)
    found = set()
    for seed in (1, 2):
        table(tmp_path / "own.npz", seed)
        found.add(compare("tabular/aaknn", {"data.path": str(tmp_path / "own.npz")}))
    rows = Store(tmp_path / "run" / "cells").rows
    kept = [row for row in rows if row["candidate"] == "MeanPredictor" and row["fold"] != "all"]
    assert len(found) == 2 and len(kept) == 2


def test_workers_that_stay(compare: Compare, tmp_path: Path) -> None:
    own = {"processes": False, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=1, threads_per_worker=1, **own) as cluster:
        found = set()
        for seed, l2 in ((0, 0.001), (0, 0.1), (1, 0.001)):
            table(tmp_path / "table.npz", seed)
            options = {"model.head.l2": l2}
            found.add(compare("tabular/maxent", options, "--scheduler", cluster.scheduler_address))
    assert len(found) == 3
