"""The examples of the gallery: each runs as a plain script in an empty folder, and shows what its page claims."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

EXAMPLES = ROOT / "docs" / "examples"
CLAIMS = {
    "table": 'boosted["mean"]["kl"] < 0.8 * baseline["mean"]["kl"]',
    "votes": "2 < found.worth < 9 and low < found.worth < high",
    "faces": 'forest["mean"]["mae"] < 0.3 * baseline["mean"]["mae"]',
    "edges": "model_nll < 0.6 * baseline_nll",
    "bags": "accuracy > 0.75 and found > 0.9",
    "own_head": 'kl["Normal"] < kl["Softmax"] + 0.02',
    "sklearn_pipeline": "r2 > 0.3 and 0.83 < covered[-1] < 0.97",
    "export_onnx": 'difference < 1e-5 and "torch or ldl loaded: False" in served.stdout',
}
"""What the variables of an example must fulfil at its end."""


def test_every_example_has_a_claim_and_a_place() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    page, site = (ROOT / "docs" / "gallery.md").read_text(), (ROOT / "mkdocs.yml").read_text()
    assert names == CLAIMS.keys()
    assert [
        name for name in sorted(names) if f"examples/{name}.md" not in page or f"examples/{name}.md" not in site
    ] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_example(name: str, tmp_path: Path) -> None:
    before = sorted(EXAMPLES.rglob("*"))
    for table in EXAMPLES.glob("*.csv"):
        shutil.copy(table, tmp_path)
    script = tmp_path / f"{name}.py"
    script.write_text((EXAMPLES / f"{name}.py").read_text() + f"\nassert {CLAIMS[name]}\n")
    known = {"MPLBACKEND": "Agg", "LDL_CACHE": "cache", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=os.environ | known, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert sorted(EXAMPLES.rglob("*")) == before
