"""``results.json`` and the printed table, from folds as a run gives them."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from ldl.data.synthetic import RotatedDigits
from ldl.heads import MeanPredictor
from ldl.labels import LabelSpace
from ldl.reports.files import write_json
from ldl.run import results
from ldl.task import Task

NAN = math.nan
AGES = LabelSpace.ordinal(range(70), "years")


def fold(number: int, n_test: int, leak: float | None = 0.0, **metrics: float) -> dict[str, Any]:
    metrics = {"kl": 0.5, "mae": 3.0, "cs4": 0.5} | metrics
    return {"fold": number, "n_train": 9, "n_val": 0, "n_test": n_test, "leak": leak, "metrics": metrics}


def summary(folds: list[dict[str, Any]], pooled: dict[str, float] | None = None) -> dict[str, Any]:
    task = Task(MeanPredictor())
    task.build(AGES, (3,))
    return results.summarize(task, RotatedDigits(), folds, 0, 1.0, pooled)


def printed(content: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=100)
    results.print_table(content, AGES, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def cells(table: str, name: str) -> list[str]:
    (line,) = [line for line in table.splitlines() if line.startswith(f" {name}  ")]
    return line.removeprefix(f" {name}").split()


def test_a_fold_without_a_group_does_not_count_for_its_mean() -> None:
    groups = [
        {"n_20_29": 2.0, "mae_20_29": 4.0},
        {"n_20_29": 0.0, "mae_20_29": NAN},
        {"n_20_29": 1.0, "mae_20_29": 7.0},
    ]
    content = summary([fold(number, 5, **group) for number, group in enumerate(groups)])
    assert content["mean"]["mae_20_29"] == 5.5 and content["mean"]["n_20_29"] == 1
    assert content["std"]["mae_20_29"] == pytest.approx(math.sqrt(4.5))


def test_a_fold_that_diverged_shows_in_the_mean() -> None:
    content = summary([fold(0, 5, mae_few=2.0, n_few=3.0), fold(1, 5, kl=NAN, mae_few=NAN, n_few=3.0)])
    assert math.isnan(content["mean"]["kl"]) and math.isnan(content["mean"]["mae_few"])
    assert math.isnan(content["std"]["kl"]) and content["std"]["mae"] == 0


def test_an_empty_group_is_null(tmp_path: Path) -> None:
    content = summary([fold(0, 5, mae_many=NAN, n_many=0.0)])
    write_json(tmp_path / "results.json", content)
    read = json.loads((tmp_path / "results.json").read_text())
    assert read["mean"]["mae_many"] is None and read["std"]["mae_many"] is None and read["std"]["kl"] == 0
    assert read["folds"][0]["metrics"]["mae_many"] is None and "pooled" not in read
    assert cells(printed(content), "mae_many [years], n = 0") == ["-"]


def test_metrics_of_a_fold_come_distributions_first() -> None:
    data = RotatedDigits(turns=1)
    data.setup()
    logged = {"test_mae": torch.tensor(2.0), "val_kl": torch.tensor(9.0), "test_kl": torch.tensor(0.25)}
    assert list(results.fold_result(data, logged)["metrics"].items()) == [("kl", 0.25), ("mae", 2.0)]


def test_table_leaves_details_out_and_names_units() -> None:
    table = printed(summary([fold(0, 5, crps=1.5, mae_few=2.5, n_few=3.0)]))
    assert cells(table, "mae [years]") == ["3.0000"] and cells(table, "kl") == ["0.5000"]
    assert cells(table, "crps [years]") == ["1.5000"] and cells(table, "mae_few [years], n = 3") == ["2.5000"]
    assert "cs4" not in table and " n_few" not in table


@pytest.mark.parametrize(
    ("sizes", "shown"), [([5, 5], False), ([5, 6], True), ([5] * 10, False), ([5] * 11, True)], ids=str
)
def test_pooled_column_where_folds_are_many_or_unequal(sizes: list[int], shown: bool) -> None:
    folds = [fold(number, size, kl=number / 10) for number, size in enumerate(sizes)]
    content = summary(folds, {"kl": 0.4321, "mae": 3.0, "cs4": 0.5})
    assert content["pooled"]["kl"] == 0.4321
    assert (cells(printed(content), "kl")[2:] == ["0.4321"]) == shown
