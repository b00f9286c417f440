"""Items of the LDLF paper: its training as a plain loop, and what each rule makes of curves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from benchmarks.common.claims import Number, Statement
from benchmarks.common.items import Work
from benchmarks.ldlf import figure4, growth, table1, training
from ldl.heads import LDLF


@pytest.fixture
def work(small_sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    (small_sets / "ldl" / "Movie.mat").symlink_to(small_sets / "ldl" / "SJAFFE.mat")
    training.rows_of.cache_clear()
    yield Work(tmp_path / "ldlf" / "item", quick=True)
    training.rows_of.cache_clear()


def test_a_curve_is_measured_at_its_marks(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "MARKS", (5, 30, 999))
    work.quick = False
    found = training.curve(work, "SJAFFE", 0, 60, batches=10, lr=1e-2)
    assert found["marks"] == [5, 30, 60] and [*found][-len(training.MEASURES) :] == list(training.MEASURES)
    # Leaves are uniform until the first update, and learn from there.
    assert found["kl"][2] < found["kl"][1] < found["kl"][0] and found["fidelity"][2] > found["fidelity"][0]
    # Half the way is the same way.
    half = training.curve(work, "SJAFFE", 0, 30, batches=10, lr=1e-2)
    assert half["kl"] == found["kl"][:2]
    leaking = training.curve(work, "SJAFFE", 0, 60, batches=10, lr=1e-2, leaking=True)
    assert leaking["kl"][2] < found["kl"][2]


def test_validation_rows_are_no_test_rows(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(training, "scores", lambda head, features, target: seen.append(len(target)) or {})
    for validation in (False, True):
        training.curve(work, "SJAFFE", 0, 2, validation=validation)
    assert seen == [6, 5]


def test_every_row_is_drawn_once_an_epoch() -> None:
    head = LDLF(trees=1, depth=2, outputs=2, batches=2)
    head.build(3, training.numbered(2))
    drawn: list[torch.Tensor] = []
    observe = head.observe
    head.observe = lambda memory, target: (drawn.append(target[:, 0]), observe(memory, target))  # type: ignore[method-assign]
    target = torch.stack([torch.arange(24) / 24, 1 - torch.arange(24) / 24], 1)
    before = head.leaves.clone()
    optimizer = torch.optim.Adam(head.parameters())
    for _ in training.steps(head, optimizer, torch.randn(24, 3), target, 3, batch=8):
        pass
    assert sorted(torch.cat(drawn).tolist()) == target[:, 0].tolist()
    assert not torch.equal(head.leaves, before)


def test_a_table_judges_the_forest_and_shows_the_peer(work: Work) -> None:
    claims = list(table1.table_1(work, "Movie"))
    judged = [claim.name for claim in claims if claim.verdict]
    assert judged == [f"sLDLF, {m}" for m in table1.MEASURES] + ["better than BFGS-LDL on all six measures"]
    assert claims[0].published == 0.073 and claims[0].deviation == 0.005
    names = [claim.name for claim in claims if isinstance(claim, Number) and claim.attempt]
    assert sum(name.startswith("kl of validation rows") for name in names) == len(table1.WAYS)
    assert names[-1] == "kl, leaking, the best test iteration"


@pytest.mark.parametrize(
    ("joint", "alternating", "expected"),
    [
        ([0.2, 0.15, 0.12, 0.11], [0.2, 0.21, 0.21, 0.22], [True, True, True, True]),
        ([0.2, 0.21, 0.22, 0.21], [0.2, 0.15, 0.15, 0.15], [False, False, False, False]),
    ],
)
def test_figure_4_holds_where_the_curves_do(work: Work, monkeypatch, joint, alternating, expected) -> None:
    def means(work: Work, points: list[dict[str, object]]) -> list[float]:
        return alternating if points[0].get("ensemble") == "alternating" else joint

    monkeypatch.setattr(figure4, "_means", means)
    monkeypatch.setattr(figure4, "attempts", lambda work: [])
    assert [claim.holds for claim in figure4.trees(work)] == expected
    assert (work.folder / "trees.png").is_file()


def test_depth_holds_where_a_depth_between_is_best(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    for kl, expected in (([0.3, 0.1, 0.2, 0.3], True), ([0.4, 0.3, 0.2, 0.1], False), ([0.1, 0.2, 0.2, 0.3], False)):
        monkeypatch.setattr(figure4, "_means", lambda work, points, kl=kl: kl)
        claims = [claim for claim in figure4.depth(work) if isinstance(claim, Statement)]
        assert claims[0].holds is expected


def test_growth_is_a_power_of_the_sizes(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    power = 1.0
    monkeypatch.setattr(
        growth, "cost", lambda work, **sizes: {"seconds": 1e-4 * (sizes["labels"] * sizes["rows"]) ** power}
    )
    assert [claim.holds for claim in growth.growth(work)] == [True] * 4
    power = 1.3
    assert [claim.holds for claim in growth.growth(work)] == [True, True, False, False]
