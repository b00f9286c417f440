"""Both ends of the edge benchmark on made-up images; the table of networks from runs that are there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import fake_edges
import pytest
from places import ROOT

from benchmarks.edges import baselines, crisp, deep, detect, sizes, structured_steps, votes
from ldl.reports.edges import FIGURES


def test_baselines(command: Callable[..., str], tmp_path: Path, page: Callable[[str], Path]) -> None:
    folder = fake_edges.bsds(tmp_path / "made_up", {"test": 1}, (24, 32))
    text = command(baselines, "--path", folder, "--images", 1, "--page", page("edges_baselines"))
    assert "gradient magnitude" in text and "annotators" in text
    assert "| gradient magnitude | 0." in (tmp_path / "page.md").read_text()


def test_crispness(command: Callable[..., str], tmp_path: Path, page: Callable[[str], Path]) -> None:
    folder = fake_edges.bsds(tmp_path / "made_up", {"val": 2}, (24, 32))
    model = f"network={ROOT / 'tests/checkpoints/pixel_features.ckpt'}"
    options = ("--path", folder, "--every", 2, "--levels", 9, "--models", model)
    assert "network 0." in command(crisp, *options, "--page", page("edges_crisp"))
    written = (tmp_path / "page.md").read_text()
    assert "1 images of val, 9 thresholds" in written and "| gradient magnitude | 0." in written


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


def test_votes(command: Callable[..., str], tmp_path: Path, page: Callable[[str], Path]) -> None:
    folder = fake_edges.bsds(tmp_path / "made_up", {"val": 1, "test": 1}, (24, 32))
    command(detect, "--path", folder, "--out", tmp_path / "maps" / "gradient")
    options = ("--path", folder, "--maps", tmp_path / "maps", "--detectors", "gradient", "--every", 1)
    command(votes, *options, "--page", page("edges_votes"))
    written = (tmp_path / "page.md").read_text()
    assert all(f"| {row} | 0." in written for row in ("base rate", "gradient magnitude", "annotators, one left out"))
    assert written.count("| base rate |") == 3 and "near: sigma" in written


def test_steps_of_structured_edges_are_measured_once(
    command: Callable[..., str], tmp_path: Path, page: Callable[[str], Path]
) -> None:
    folder = fake_edges.bsds(tmp_path / "made_up", {"train": 2, "val": 1}, (64, 80))
    options = ("--path", folder, "--patches", 200, "--every", 1, "--levels", 3, "--out", tmp_path / "out")
    steps = ("--only", "as before", "all 8 trees", "--page", page("structured_steps"))
    assert command(structured_steps, *options, *steps).count("grown in") == 1
    assert "grown in" not in command(structured_steps, *options, *steps)
    written = (tmp_path / "page.md").read_text()
    assert "All images of val, 3 thresholds, 200 patches a tree" in written and "| all 8 trees vote" in written


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
