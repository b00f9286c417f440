"""Defaults that travel: the setting for a table is chosen on the others, and nothing is measured twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from fake_edges import bsds

from benchmarks.tables import collection, defaults
from ldl.cells.store import Store
from ldl.heads import Trained

CONFIG = {
    "foil": {"class_path": "StructRF", "init_args": {"trees": 5, "out_of_bag": False}},
    "heads": {
        "Softmax": {
            "class_path": "Trained",
            "init_args": {"head": {"class_path": "Softmax", "init_args": {}}, "epochs": 1},
            "grid": {"now": {}, "wide": {"head.hidden": [3], "epochs": 2}},
        }
    },
}


def test_a_setting_is_taken_by_the_other_tables() -> None:
    values = np.array([[0.5, 0.9, 1.0], [0.9, 0.8, 0.9]])
    # On the others the first is best for the last two; for the first table they are .9 * 1 against .8 * .9.
    assert defaults.leave_one_out(values).tolist() == [1, 0, 0]


def test_tables_of_one_family_count_as_one() -> None:
    tables = ["M2B", "Yeast_spo", "Yeast_cdc"]
    figures = {("extra trees", "500", table): 2.0 for table in tables}
    figures |= {("a", "now", "M2B"): 1.0, ("a", "now", "Yeast_spo"): 4.0, ("a", "now", "Yeast_cdc"): 2.0}
    families, values = defaults.ratios(figures, "a", ["now"], tables)
    assert families == ["M2B", "Yeast"] and values.tolist() == [[0.5, 1.5]]


def test_a_single_setting_is_not_called_a_choice() -> None:
    figures = {("extra trees", "500", "M2B"): 1.0, ("a", "now", "M2B"): 1.0}
    _, lines = defaults.tabulate(figures, {"a": ["now"]}, ["M2B"])
    assert [line[0] for line in lines] == ["a, now (default)"]


def test_settings_change_what_they_name() -> None:
    settings = defaults.settings_of(CONFIG["heads"]["Softmax"])
    head = defaults.make_head(settings["wide"])
    assert isinstance(head, Trained) and (head.head.hidden, head.epochs) == ([3], 2)
    assert defaults.make_head(settings["now"]).head.hidden == ()


def test_cells_are_kept(command: Callable[..., str], page: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    place = page("defaults")
    options = "--config", tmp_path / "config.yaml", "--sets", "diabetes", "--folds", 2, "--page", place
    command(defaults, *options)
    cells = Store(tmp_path / "runs/defaults/cells").rows
    assert len(cells) == 6 and all(0 < cell["kl"] < 10 for cell in cells)
    command(defaults, *options, "--report")
    assert Store(tmp_path / "runs/defaults/cells").rows == cells
    assert "| Softmax, left one out |" in place.read_text() and "stale" not in place.read_text()


def test_large_tables_are_drawn_from() -> None:
    rows = collection.read_rows("diabetes")
    few = rows.at_most(10)
    assert len(few.features) == len(few.target) == 10 and rows.at_most(442) is rows
    assert abs(float(few.target.sum(1).max()) - 1) < 1e-5


def test_pixels_of_a_picture_stay_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bsds(tmp_path / "BSDS500/data", {"train": 1, "val": 3})
    monkeypatch.setenv("LDL_DATA", str(tmp_path))
    rows = collection.read_rows("BSDS500, votes")
    assert rows.groups is not None and np.bincount(rows.groups).tolist() == [collection.PIXELS] * 3
    assert rows.features.shape == (90, 26) and rows.features.isfinite().all()
    assert rows.target[:, 1].min() == 0 < rows.target[:, 1].max() <= 1 and (rows.target.sum(1) == 1).all()
