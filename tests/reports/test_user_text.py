"""Names are text for every small language: mathtext, markup of rich, Markdown, HTML, CSV, the codec of a terminal."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.odd_names import ODD_NAMES
from matplotlib.backends.backend_agg import FigureCanvasAgg

from ldl.command import main

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("odd $_{ [b]") / "a$b_{$ [red]*.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["f0", "f1", *(f"label:{name}" for name in ODD_NAMES)])
        writer.writerows([*RNG.normal(size=2), *RNG.dirichlet(np.ones(len(ODD_NAMES)))] for _ in range(30))
    return path


def options(table: Path, folder: Path) -> list[str]:
    return [
        "--data=TabularLDL", f"--data.path={table}", "--model.backbone=null", "--model.head=MeanPredictor",
        "--trainer.enable_progress_bar=false", "--wandb.mode=disabled", "--run_dir", str(folder),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii"])
def test_a_run_whose_names_no_small_language_may_read(encoding: str, table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run $_{ [b]* %s {x}"
    plain = {"PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "ldl", *options(table, folder)]
    done = subprocess.run(command, env=os.environ | plain, capture_output=True, check=False)
    output = (done.stdout + done.stderr).decode(encoding)
    assert done.returncode == 0 and "is left out" not in output and "Traceback" not in output, output
    assert "a$b_{$ [red]*" in output
    assert json.loads((folder / "results.json").read_text())["title"] == "a$b_{$ [red]*"
    with (folder / "predictions.csv").open(newline="", encoding="utf-8") as file:
        header = next(csv.reader(file))
    assert [name.removeprefix("target:") for name in header if name.startswith("target:")] == ODD_NAMES
    assert (folder / "charts" / "distributions.png").is_file()


@pytest.mark.parametrize("stage", ["fit", "crossval"])
def test_a_run_quotes_names_in_its_predictions(stage: str, tmp_path: Path) -> None:
    """The option decides no result, and no other option is needed."""
    rows = ["id,a,label:x,label:y", *(f"=1+{row},{row},0.25,0.75" for row in range(20))]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    chosen = ["--data.item_column=id", "--data.folds=2", f"--stage={stage}", "--quote_formulas=true"]
    main([*options(tmp_path / "t.csv", tmp_path / "run"), *chosen])
    (path, *_) = sorted((tmp_path / "run").rglob("predictions.csv"))
    with path.open(newline="", encoding="utf-8") as file:
        names = [row["name"] for row in csv.DictReader(file)]
    assert len(names) > 3 and all(name.startswith("'=1+") for name in names)


class _Broken(Exception):
    pass


@pytest.mark.parametrize("stage", ["fit", pytest.param("crossval", marks=pytest.mark.slow)])
def test_a_chart_that_fails_costs_a_line(
    stage: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    folder, present = tmp_path / "run", []

    def broken(canvas: FigureCanvasAgg, path: Path, **_: Any) -> None:
        run = path.parent.parent
        present.append(all((run / name).is_file() for name in ("results.json", "predictions.csv")) or run == folder)
        raise _Broken("no ink\nleft")

    monkeypatch.setattr(FigureCanvasAgg, "print_png", broken)
    main([*options(table, folder), f"--stage={stage}", *(["--data.folds=2"] if stage == "crossval" else [])])
    lines = [str(warning.message) for warning in recwarn]
    assert "charts/distributions.png is left out: _Broken: no ink left" in lines
    assert (folder / "results.json").is_file() and present and all(present)
    if stage == "fit":
        with (folder / "predictions.csv").open(newline="", encoding="utf-8") as file:
            header = next(csv.reader(file))
        assert [name.removeprefix("target:") for name in header if name.startswith("target:")] == ODD_NAMES
