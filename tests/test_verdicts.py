"""The verdicts on the pages of papers: chance and the mean baseline do not reproduce a result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks.common.items import (
    EXCEEDED,
    MISSED,
    REPRODUCED,
    UNDECIDED,
    Item,
    Number,
    Paper,
    Work,
    ahead,
    judge,
    measure,
    read_results,
    write_results,
)
from benchmarks.common.pages import details, index
from benchmarks.ldlf import training


def test_methods_of_equal_quality_are_rarely_told_apart() -> None:
    draws = np.random.default_rng(0).normal(size=(2000, 2, 10))
    holds = [ahead("better", ours.tolist(), other.tolist(), "").holds for ours, other in draws]
    assert np.mean(holds) < 0.06


def test_a_tie_is_no_gain() -> None:
    assert not ahead("better", [0.1, 0.2, 0.3], [0.1, 0.2, 0.3], "").holds
    assert ahead("better", [0.1, 0.2, 0.3], [0.21, 0.3, 0.41], "").holds
    assert ahead("better", [0.9, 0.8, 0.9], [0.7, 0.6, 0.65], "", lower=False).holds


def test_what_the_mean_baseline_reproduces_too_is_not_decisive() -> None:
    ours = Number("StructRF, kl", (0.0055,), 0.0054, 0.0007)
    assert judge([ours, Number("mean baseline, kl", (0.0056,))]) == UNDECIDED
    assert judge([ours, Number("mean baseline, kl", (0.0070,))]) == REPRODUCED
    assert judge([ours]) == REPRODUCED


def test_one_missed_claim_decides() -> None:
    near, far = Number("one", (1.0,), 1.0, 0.1), Number("two", (2.0,), 1.0, 0.1)
    assert judge([near, far]) == MISSED
    assert judge([Number("one", (0.5,), 1.0, 0.1)]) == EXCEEDED


def kl_claim(work: Work, leaking: bool = False) -> Iterator[Number]:
    yield Number("kl", (0.06 if leaking else 0.12,), 0.073, 0.005, digits=3)


def test_results_of_a_leaking_protocol_have_columns_and_do_not_count(tmp_path: Path) -> None:
    item = Item("Table 1", "KL", measure=kl_claim, leaks="rows are drawn with replacement.")
    paper = Paper("ldlf", "Forests", (item,))
    write_results(tmp_path / "ldlf.json", {"Table 1": measure(item, Work(tmp_path, quick=False))})
    results = read_results(tmp_path / "ldlf.json")
    page = details(paper, results)
    assert "*Leaks*: rows are drawn with replacement." in page
    assert "|  | published | ours | verdict | ours, *leaks* | verdict, *leaks* |" in page
    assert "| kl | 0.073 ± 0.005 | 0.120 | not reproduced | 0.060 | exceeded |" in page
    assert "| 0 | 0 | 0 | 1 | 0 | 0 | 0 | 0 of 1, 0% |" in index([(paper, results)])


def test_rows_of_the_leaking_protocol_are_drawn_with_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = torch.arange(4000.0)[:, None]
    monkeypatch.setattr(training, "read_set", lambda name: (drawn, drawn))
    features, _ = training.rows_of("numbered rows", leaking=True)
    test = training.kfold(len(features), 10, 0, 0)
    share = torch.isin(features[test.test], features[test.train]).double().mean()
    assert len(features) == len(drawn) and float(share) == pytest.approx(1 - np.exp(-0.9), abs=0.05)
    assert torch.equal(training.rows_of("numbered rows")[0], drawn)


def test_the_leaking_protocol_keeps_the_best_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    features, target = rng.normal(size=(60, 4)), rng.dirichlet(np.ones(3), 60)
    rows: tuple[Tensor, Tensor] = (torch.tensor(features).float(), torch.tensor(target).float())
    monkeypatch.setattr(training, "rows_of", lambda name, leaking=False: rows)
    work, options = Work(tmp_path, quick=False), {"trees": 2, "depth": 3, "batches": 10}
    after = [training.trained(work, "noise", 0, iterations, **options) for iterations in (100, 200, 250)]
    best = training.trained(work, "noise", 0, 250, leaking=True, **options)
    lowest = min(after, key=lambda metrics: metrics["kl"])
    assert [best[name] for name in training.METRICS] == [lowest[name] for name in training.METRICS]
    assert best["kl"] < after[-1]["kl"]  # the forest overfits
