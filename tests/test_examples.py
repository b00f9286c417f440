"""The examples of the guides, each one file: they keep the contracts, and train through the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import ROOT

from ldl.cli import main
from ldl.plugins import discover
from ldl.testing import check_head

EXAMPLES = ROOT / "docs" / "examples"
SHORT = ["--trainer.max_epochs=1", "--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]


def example(file: str, name: str) -> Any:
    """A class of an example, imported as a plugin is."""
    discover(EXAMPLES)
    return getattr(sys.modules[f"ldl_plugins.{file}"], name)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 rows whose four-label distribution follows their features."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 5))
    shares = np.exp(features @ rng.normal(size=(5, 4)))
    path = tmp_path_factory.mktemp("data") / "table.npz"
    np.savez(path, features=features, labels=shares / shares.sum(1, keepdims=True))
    return path


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_at_most_40_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 40


@pytest.mark.parametrize(
    "file, head", [("proportional_odds", "ProportionalOdds"), ("partial_least_squares", "PartialLeastSquares")]
)
def test_head(file: str, head: str, table: Path, tmp_path: Path) -> None:
    check_head(example(file, head))
    options = ["--model.head", head, "--data", "TabularLDL", f"--data.path={table}", "--data.folds=3"]
    main([*options, "--data.label_values=[1, 2, 3, 4]", "--data.val_fraction=0", *SHORT, "--run_dir", str(tmp_path)])
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["head"] == head and 0 <= results["mean"]["kl"] < 2
