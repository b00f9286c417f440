"""Items of the StructRF paper: what is printed, cells that several items share, and what each rule makes of curves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.common.claims import Number, Statement
from benchmarks.common.items import Work
from benchmarks.structrf import adaptive_forests, figure4, methods, one_search, starts, tables
from benchmarks.structrf.paper import PAPER
from benchmarks.structrf.published import LABELS, MEASURES, PRINTED, SIZES, TABLE_3, TABLE_21
from ldl.methods.forest.relabel import two_means


@pytest.fixture
def work(small_sets: Path, tmp_path: Path) -> Iterator[Work]:
    methods.rows_of.cache_clear()
    yield Work(tmp_path / "structrf" / "item", quick=True)
    methods.rows_of.cache_clear()


def test_everything_that_is_printed_was_copied() -> None:
    assert len(PRINTED) == 4 * 14 and all(len(row) == 6 for row in PRINTED.values())
    for (name, method), row in PRINTED.items():
        # Of distributions: cosine and intersection are at most 1, and the largest difference is less than their half.
        assert row["cosine"][0] < 1 and row["intersection"][0] < 1, (name, method)
        assert row["chebyshev"][0] < 1 - row["intersection"][0] + 1e-3 and row["clark"][0] < row["canberra"][0]
        assert all(0 < deviation < 0.4 * mean for mean, deviation in row.values()), (name, method)
    assert all(len(row.split()) == 12 for row in TABLE_3.values())
    assert all(len(row.split()) == len(MEASURES) for row in TABLE_21.values())
    assert LABELS["Movie"] == 5 and SIZES["SJAFFE"] == (213, 243)
    assert [f"Table {number}" for number in range(1, 22)] == sorted(
        (item.name for item in PAPER.items if item.name.startswith("Table")), key=lambda name: int(name.split()[1])
    )


def test_a_table_judges_structrf_and_shows_the_others(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = [claim for claim in tables.scores_of_a_set(work, "SJAFFE") if isinstance(claim, Number)]
    assert [claim.name for claim in claims if claim.verdict] == [f"StructRF, {measure}" for measure in MEASURES]
    assert claims[3].published == 0.0544 and claims[3].deviation == 0.0117 and claims[3].lower and not claims[4].lower
    peers = {claim.name for claim in claims if claim.peer}
    assert {"RF, kl", "SA-IIS, kl", "SA-BFGS, kl", "constant, kl"} <= peers
    # Other items of the paper measure nothing again.
    monkeypatch.setattr(methods, "METHODS", {})
    other = Work(work.folder.parent / "other", quick=True)
    assert list(tables.scores_of_a_set(other, "SJAFFE")) == claims


def test_an_order_holds_where_it_does_as_often_as_in_print(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_ahead", lambda work, name, measure, method: measure != "kl" or method != "RF")
    held = {claim.name: claim for claim in tables.orders(work) if isinstance(claim, Statement)}
    assert [claim.holds for claim in held.values()] == [True, True, False]
    assert held["StructRF is better than RF on all measures of all sets"].measured == "on 5 of 6"


def test_curves_are_judged_by_their_changes(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    falling = np.array([[0.3, 0.25, 0.22, 0.2 - 0.005 * k, 0.2 - 0.005 * k] for k in (0, 1, 2, 3, 3)])
    grown = np.array([[0.3, 0.25, 0.21, 0.2, 0.2]] + [[0.288, 0.25, 0.21, 0.192, 0.192]] * 3)
    monkeypatch.setattr(figure4, "curves", lambda work, panel: falling if panel == "sampling" else grown)
    assert [claim.holds for claim in figure4.figure_4(work)] == [True] * 8
    grown[3, 3] = 0.18
    failed = [claim.name for claim in figure4.figure_4(work) if not claim.holds]
    assert failed == ["and no further, from 50 trees to 100", "curves of 20 trees and more have the same shape"]
    assert (work.folder / "figure4.png").is_file()


def test_differences_no_larger_than_printed_are_repeated(work: Work) -> None:
    claims = list(adaptive_forests.table_21(work))
    assert claims[0].verdict and claims[-1].verdict == "" and len(claims) == 6
    assert adaptive_forests._small(np.array([0.00034, -0.00034])) and not adaptive_forests._small(np.array([-0.00036]))


def test_the_step_of_a_plain_loop_is_that_of_the_search() -> None:
    features, target = one_search.synthetic(300, 0)
    gains = one_search.gains(features, one_search.clusters(target))
    visited = np.array(one_search.walk(gains))
    root, every = (one_search.Root(features, target, way) for way in (one_search.STEP, one_search.EVERY))
    until = [root.search(first).evaluations for first in (1, 2, one_search.FEATURES)]
    assert until == [(visited[:, 0] < first).sum() for first in (1, 2, one_search.FEATURES)]
    found = every.search()
    assert found.evaluations == gains.size and found.gain == pytest.approx(gains.max(), abs=1e-12)
    assert found.feature == gains.max(1).argmax()
    assert root.search().gain == pytest.approx(gains[visited[:, 0], visited[:, 1]].max(), abs=1e-12)


def test_several_starts_find_tighter_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gain", "from_axis"):
        monkeypatch.setattr(starts, name, getattr(starts, name).py_func)
    rng, shares = np.random.default_rng(0), []
    for _ in range(40):
        count, labels = rng.integers(3, 9), rng.integers(2, 5)
        d, rows = rng.dirichlet(np.ones(labels), count).astype(np.float32), np.arange(count, dtype=np.int32)
        weights = rng.integers(1, 4, count).astype(np.int32)
        found = []
        for function in (two_means, starts.best_means.py_func):
            centred, cluster = np.empty((count, labels), np.float32), np.empty(count, np.uint8)
            ones = function(d, rows, weights, rows, 0, count, centred, cluster)
            assert ones == weights[cluster == 1].sum() and 0 < ones < weights.sum()
            found.append(starts.gain(centred, weights, rows, 0, cluster))
        parts = [np.array([mask >> i & 1 for i in range(count)], bool) for mask in range(1, 2 ** (count - 1))]
        best = max(_between(d.astype(float), weights, part) for part in parts)
        assert found[0] <= found[1] * (1 + 1e-5) and found[1] <= best * (1 + 1e-5)
        shares.append(np.array(found) / best)
    one, several = np.mean(shares, 0)
    assert one < several - 0.005 and several > 0.98


def _between(d: np.ndarray, weights: np.ndarray, part: np.ndarray) -> float:
    """How much two clusters lower the sum of squares, from their means."""

    def squares(rows: np.ndarray) -> float:
        mean = np.average(d[rows], axis=0, weights=weights[rows])
        return float((weights[rows, None] * (d[rows] - mean) ** 2).sum())

    return squares(np.ones(len(d), bool)) - squares(part) - squares(~part)
