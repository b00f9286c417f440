"""The tabular benchmark: it goes on where it stopped, records failures, and its statistics are those of the books."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from places import BENCHMARKS

from benchmarks.tables import peers, tabular
from benchmarks.tables.cells import read_cells
from benchmarks.tables.report import folds_of
from ldl.cli import main
from ldl.errors import LDLError

Run = Callable[..., list[dict]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the benchmark on a small set; returns its cells."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 5))
    target = np.exp(features @ rng.normal(size=(5, 4)))
    np.savez(tmp_path / "small.npz", features=features, labels=target / target.sum(1, keepdims=True))
    config = {
        "sets": {"small": str(tmp_path / "small.npz")},
        "methods": {
            "constant": {"class_path": "MeanPredictor"},
            "AA-kNN": {"class_path": "AAKNN", "grid": {"neighbours": [1, 4, 54]}},
            "DLDL": {"class_path": "Softmax", "training": {"epochs": 3, "batch_size": 16, "lr": 0.1}},
            "tree": {"class_path": "sklearn.tree.DecisionTreeRegressor", "seeded": "random_state"},
            "broken": {"class_path": "sklearn.tree.NoSuchTree"},
        },
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    threads = torch.get_num_threads()

    def go(*options: str) -> list[dict]:
        arguments = ["--config", str(tmp_path / "config.yaml"), "--out", str(tmp_path / "out"), "--silent"]
        monkeypatch.setattr(sys, "argv", ["tabular.py", *arguments, "--threads", str(threads), *options])
        tabular.main()
        files = sorted((tmp_path / "out" / "cells").glob("*/results.json"), key=lambda path: path.stat().st_mtime_ns)
        return [json.loads(path.read_text()) for path in files]

    return go


def test_all_methods_on_the_same_folds(run: Run, tmp_path: Path) -> None:
    cells = run()
    assert len(cells) == 50
    assert len({(cell["method"], cell["fold"]) for cell in cells}) == 50
    assert all(("error" in cell) == (cell["method"] == "broken") for cell in cells)
    means = {name: folds_of(cells, "small", name, "kl").mean() for name in ("constant", "AA-kNN", "DLDL", "tree")}
    assert all(mean < means["constant"] for name, mean in means.items() if name not in ("constant", "tree"))
    # Chosen on validation rows: one neighbour is noisy, all of them are the constant.
    chosen = [cell["setting"]["neighbours"] for cell in cells if cell["method"] == "AA-kNN"]
    assert chosen.count(54) <= 1
    text = (tmp_path / "out" / "table.md").read_text()
    assert "broken: AttributeError" in text and "| AA-kNN | " in text
    assert (tmp_path / "out" / "ranks.png").stat().st_size > 1000
    assert len((tmp_path / "out" / "cells.csv").read_text().splitlines()) == 51


def test_a_stopped_run_goes_on(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run("--methods", "constant", "AA-kNN")
    next((tmp_path / "out" / "cells").glob("*/results.json")).unlink()
    measured = []
    measure = tabular.measure
    monkeypatch.setattr(tabular, "measure", lambda *arguments: measured.append(1) or measure(*arguments))
    after = run("--methods", "constant", "AA-kNN")
    assert len(measured) == 1
    assert sorted(cell["measures"]["kl"] for cell in before) == sorted(cell["measures"]["kl"] for cell in after)


def test_another_setting_is_measured_anew(run: Run, tmp_path: Path) -> None:
    run("--methods", "AA-kNN")
    path = tmp_path / "config.yaml"
    path.write_text(path.read_text().replace("54", "53"))
    assert len(run("--methods", "AA-kNN")) == 20


def test_a_report_measures_nothing_and_leaves_out_what_is_not_complete(run: Run, tmp_path: Path) -> None:
    run("--methods", "constant", "AA-kNN")
    files = (tmp_path / "out" / "cells").glob("*/results.json")
    next(path for path in files if '"constant"' in path.read_text()).unlink()
    assert len(run("--report")) == 19
    text = (tmp_path / "out" / "table.md").read_text()
    assert "| AA-kNN | 0." in text and "**" not in text and "| constant | " not in text


def test_what_was_measured_elsewhere_is_not_measured_again(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, store = tmp_path / "known.csv", tmp_path / "out"
    run("--methods", "constant", "broken", "--cells", str(file))
    first = file.read_text().splitlines()
    assert len(first) == 11 and not any("broken" in line for line in first)
    table = (store / "table.md").read_text()
    shutil.rmtree(store)
    cells = run("--methods", "AA-kNN", "--cells", str(file))
    assert Counter(cell["method"] for cell in cells) == {"constant": 10, "AA-kNN": 10}
    assert set(first) < set(file.read_text().splitlines())
    shutil.rmtree(store)
    monkeypatch.setattr(tabular, "measure", lambda *arguments: pytest.fail("measured again"))
    run("--methods", "constant", "AA-kNN", "--cells", str(file))
    both = (store / "table.md").read_text()
    line = next(line for line in table.splitlines() if line.startswith("| constant | 0."))
    assert line.replace("**", "") in both.replace("**", "") and "| AA-kNN | 0." in both.replace("**", "")


def test_cells_come_back_from_their_file_but_for_failures(run: Run, tmp_path: Path) -> None:
    cells = [cell for cell in run() if "error" not in cell]
    found = read_cells(tmp_path / "out" / "cells.csv")
    assert len(found) == 40 and read_cells(tmp_path / "none.csv") == []
    for key, measured in found:
        (cell,) = [cell for cell in cells if all(cell[name] == value for name, value in key.items())]
        assert measured["setting"] == cell["setting"] and measured["seconds"] == pytest.approx(cell["seconds"])
        assert measured["measures"] == pytest.approx(cell["measures"], rel=1e-6)


def test_cells_of_other_settings_leave_the_file(run: Run, tmp_path: Path) -> None:
    file, config = tmp_path / "known.csv", tmp_path / "config.yaml"
    run("--methods", "constant", "AA-kNN", "--cells", str(file))
    config.write_text(config.read_text().replace("54", "53"))
    run("--methods", "constant", "--cells", str(file))
    assert "constant" in file.read_text() and "AA-kNN" not in file.read_text()


def test_a_quick_run_leaves_the_file_of_cells_alone(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        run("--quick", "--cells", str(tmp_path / "known.csv"))
    assert "--cells takes no cells of --quick" in capsys.readouterr().err


def test_failures_are_tried_again(run: Run, tmp_path: Path) -> None:
    assert all("error" in cell for cell in run("--methods", "broken"))
    path = tmp_path / "config.yaml"
    path.write_text(path.read_text().replace("sklearn.tree.NoSuchTree", "MeanPredictor"))
    cells = run("--methods", "broken")
    assert sum("measures" in cell for cell in cells) == 10


def test_a_missing_file_is_no_failure_of_a_method(run: Run, tmp_path: Path) -> None:
    (tmp_path / "small.npz").unlink()
    with pytest.raises(LDLError, match="no data file"):
        run()


@pytest.mark.usefixtures("blank")
def test_runs_of_the_command_line_are_compared(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "crossval"
    arguments = ["-c", "configs/runs/tabular/meanpredictor.yaml", "--stage", "crossval", "--run_dir", str(path)]
    own = ["--data.path", str(tmp_path / "small.npz"), "--data.val_fraction", "0"]
    main(arguments + own + ["--wandb.mode", "disabled"])
    same = run("--methods", "constant", "--runs", str(path / "results.json"))
    own_cells = tabular.read_run(path / "results.json", {"small": "small.npz"}, 10)
    for cell, mine in zip(same, own_cells, strict=True):
        assert mine["fold"] == cell["fold"] and mine["measures"] == pytest.approx(cell["measures"], rel=1e-4)
    assert "; `tuned`: as in the run's configuration. " in (tmp_path / "out" / "table.md").read_text()
    assert "| MeanPredictor, tuned | " in (tmp_path / "out" / "table.md").read_text()
    with pytest.raises(LDLError, match="no cross-validation over ten folds"):
        tabular.read_run(path / "results.json", {"other": "other.mat"}, 10)


def test_settings_are_chosen_in_inner_folds(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(config.read_text() + "inner_folds: 4\n")
    chosen = [cell["setting"]["neighbours"] for cell in run("--methods", "AA-kNN")]
    assert chosen == [4] * 10


def test_a_page_gets_its_table(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "tables.md"
    path.write_text("before\n<!-- begin config -->\nstale\n<!-- end config -->\nafter\n")
    run("--methods", "constant", "AA-kNN", "--page", str(path))
    text = path.read_text()
    assert text.startswith("before\n<!-- begin config -->\nFolds 0 to 9 of KFold(10") and text.endswith("after\n")
    assert "stale" not in text and "| AA-kNN | **" in text and "Settings chosen on 10% of the training part" in text
    path.write_text("<!-- begin config -->\nkept\n<!-- end config -->\n<!-- begin mine -->\n<!-- end mine -->\n")
    run("--methods", "constant", "--page", str(path), "--block", "mine")
    assert "kept\n" in path.read_text() and "<!-- begin mine -->\nFolds 0 to 9" in path.read_text()
    assert "One setting of each for all sets. In bold" in path.read_text()
    path.write_text("no place")
    with pytest.raises(LDLError, match="needs one line <!-- begin config -->"):
        run("--methods", "constant", "--page", str(path))


def test_quick_on_real_data(run: Run, ldl_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = run("--quick", "--config", str(BENCHMARKS / "tables" / "tabular.yaml"))
    missing = {cell["method"] for cell in cells if "error" in cell}
    assert all("python-ldl" in name or (hasattr(peers, name) and not find_spec(name.lower())) for name in missing)
    assert len(cells) == 2 * len(yaml.safe_load((BENCHMARKS / "tables" / "tabular.yaml").read_text())["methods"])


def test_a_method_has_a_dash_where_it_is_not_meant_for_a_set(run: Run, tmp_path: Path) -> None:
    config, page = tmp_path / "config.yaml", tmp_path / "page.md"
    page.write_text("<!-- begin config -->\n<!-- end config -->\n")
    entries = yaml.safe_load(config.read_text())
    entries["sets"]["other"] = entries["sets"]["small"]
    entries["methods"]["AA-kNN"]["sets"] = ["other"]
    config.write_text(yaml.safe_dump(entries))
    assert run("--methods", "AA-kNN", "--sets", "small", "--page", str(page)) == []
    cells = run("--methods", "AA-kNN", "constant", "--page", str(page))
    assert {cell["set"] for cell in cells if cell["method"] == "AA-kNN"} == {"other"}
    lines = page.read_text().splitlines()
    assert re.search(r"^\| AA-kNN \| \S+ ± \S+ \| – \|$", next(line for line in lines if "| AA-kNN" in line))
    assert "–" not in next(line for line in lines if "| constant" in line)
    run("--methods", "AA-kNN", "constant", "--sets", "small", "--page", str(page))
    assert "\n| constant | 0." in page.read_text() and "AA-kNN" not in page.read_text()


def test_seeds_count_where_they_have_all_folds(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- begin config -->\n<!-- end config -->\n")
    run("--methods", "constant", "tree", "--page", str(page))
    assert "; 1 seed; " in page.read_text()
    first = next(line for line in page.read_text().splitlines() if line.startswith("| tree"))
    cells = run("--methods", "tree", "--seeds", "3")
    assert Counter(cell["seed"] for cell in cells if cell["method"] == "tree") == {0: 10, 1: 10, 2: 10}
    run("--methods", "constant", "tree", "--seeds", "3", "--report", "--page", str(page))
    text = page.read_text()
    assert "; 1 seed, or the mean of as many as stand in brackets; " in text
    (constant,) = [line for line in text.splitlines() if line.startswith("| constant")]
    (tree,) = [line for line in text.splitlines() if line.startswith("| tree")]
    assert tree.endswith(" (3) |") and "(" not in constant and tree[:20] != first[:20]
    last = [path for path in (tmp_path / "out" / "cells").glob("*/results.json") if '"seed": 2' in path.read_text()]
    shutil.rmtree(last[0].parent)
    run("--methods", "constant", "tree", "--seeds", "3", "--report", "--page", str(page))
    assert " (2) |" in page.read_text()
