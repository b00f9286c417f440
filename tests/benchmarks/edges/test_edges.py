"""Both ends of the edge benchmark on made-up images; the table of networks from runs that are there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import fake_edges
import pytest
from places import ROOT

from benchmarks.edges import baselines, deep, sizes
from ldl.reports.edges import FIGURES


def test_baselines(command: Callable[..., str], tmp_path: Path, page: Callable[[str], Path]) -> None:
    folder = fake_edges.bsds(tmp_path / "made_up", {"test": 1}, (24, 32))
    text = command(baselines, "--path", folder, "--images", 1, "--page", page("edges_baselines"))
    assert "gradient magnitude" in text and "annotators" in text
    assert "| gradient magnitude | 0." in (tmp_path / "page.md").read_text()


def test_networks_that_are_there_are_read(
    command: Callable[..., str], tmp_path: Path, page: Callable[[str], Path]
) -> None:
    for seed, value in ((0, 0.7), (1, 0.8)):
        folder = tmp_path / "out" / f"votes_ldlf_{seed}"
        folder.mkdir(parents=True)
        (folder / "results.json").write_text(json.dumps({"mean": dict.fromkeys(FIGURES, value)}))
    options = ("--targets", "votes", "--heads", "ldlf", "--seeds", 0, 1, "--out", tmp_path / "out")
    assert "0.750 ± 0.071" in command(deep, *options, "--page", page("edges_deep"), "--trainer.max_epochs=6")
    written = (tmp_path / "page.md").read_text()
    assert "seeds [0, 1]: --trainer.max_epochs=6" in written and "| votes | ldlf | 0.750 ± 0.071 |" in written


def test_one_size_stands_beside_all(
    command: Callable[..., str], tmp_path: Path, page: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "SHAPE", (32, 48))
    for seed in (0, 1):
        for folder, value in ((f"softmax_{seed}", 0.8), (f"softmax_{seed}/one_size", 0.7 + 0.02 * seed)):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "results.json").write_text(json.dumps({"mean": dict.fromkeys(FIGURES, value)}))
    (tmp_path / "softmax_0/checkpoints").mkdir()
    shutil.copy(ROOT / "tests/checkpoints/pixel_features.ckpt", tmp_path / "softmax_0/checkpoints/last.ckpt")
    command(
        sizes, "--configs", "softmax", "--seeds", 0, 1, "--out", tmp_path, "--page", page("edges_sizes"), "--more=2"
    )
    written = (tmp_path / "page.md").read_text()
    assert "| softmax | 1 | 0.710 ± 0.014 |" in written and "| softmax | all | 0.800 ± 0.000 |" in written
    assert "seeds [0, 1]: --more=2" in written and "million parameters" in written
