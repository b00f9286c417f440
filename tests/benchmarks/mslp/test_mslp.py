"""Tables and figures of MSLP in their small form, on made-up sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from benchmarks.common.claims import Number, Statement
from benchmarks.common.items import Work
from benchmarks.mslp import attempts, choice, figure7, scale, tables
from benchmarks.mslp.published import FIGURES, SETS


@pytest.fixture
def scut(small_sets: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    content = scipy.io.loadmat(small_sets / "ldl" / "SJAFFE.mat")
    scipy.io.savemat(small_sets / "ldl" / "M2B.mat", {name: content[name] for name in ("features", "labels")})
    choice.open_set.cache_clear()
    return small_sets


def test_figure_7(scut: Path) -> None:
    work = Work(scut / "out", quick=True)
    claims = list(figure7.measure(work))
    assert (work.folder / "figure7.png").stat().st_size > 10_000
    share = next(claim for claim in claims if claim.name == "MSLP, share beside their like")
    other = next(claim for claim in claims if claim.name == "LPP, share beside their like")
    assert isinstance(share, Number) and isinstance(other, Number) and 0 < share.ours[0] < 1
    judged = claims[0]
    assert isinstance(judged, Statement) and judged.holds == (share.ours > other.ours)


def test_settings_are_chosen_inside_the_training_part(scut: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All the rows that choose are of the training part; the test rows are seen once, by what was chosen."""
    seen: list[tuple[set[int], int]] = []
    scores = choice.scores

    def watched(candidate, fit, data, ratios, neighbours):  # type: ignore[no-untyped-def]
        seen.append(({*data.split.train, *data.split.test}, len(ratios) * len(neighbours)))
        return scores(candidate, fit, data, ratios, neighbours)

    monkeypatch.setattr(choice, "scores", watched)
    candidate = replace(tables.PRINTED, neighbours=(1, 5), ratios=(0.5, 1.0))
    row = choice.test("M2B", candidate, 0)
    test = set(choice.open_set("M2B", "none", 0).split.test)
    *choosing, last = seen
    assert len(choosing) == 2 * choice.INNER_FOLDS and not any(rows & test for rows, _ in choosing)
    assert last == (set(range(60)), 1) and row["setting"]["neighbours"] in (1, 5)
    assert set(row["measures"]) == set(choice.MEASURES)


def test_tables_and_attempts(scut: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "SET", "M2B")
    claims = list(attempts.scut_fbp(Work(scut / "out", quick=True)))
    judged = [claim for claim in claims if claim.verdict]
    assert [claim.name for claim in judged] == [f"MSLP, {measure}" for measure in choice.MEASURES]
    assert [claim.published for claim in judged if isinstance(claim, Number)] == list(FIGURES["M2B"]["MSLP"])
    assert claims[-1].attempt and np.isfinite(claims[-1].ours[0])  # type: ignore[union-attr]


def test_ranks_count_cases(scut: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "SETS", {"M2B": SETS["M2B"]})
    for firsts, name in ((6, "MSLP"), (0, "LPP")):

        def measured(work, data, candidate, best=name):  # type: ignore[no-untyped-def]
            sign = tables.direction
            return [{"measures": {m: sign(m) * (1 - (candidate.name == best)) for m in choice.MEASURES}}]

        monkeypatch.setattr(tables, "measured", measured)
        claims = list(tables.ranks(Work(scut / "out", quick=False)))
        counts = [claim.measured for claim in claims if isinstance(claim, Statement)]
        assert counts[0] == counts[4] == f"in {firsts} of 6 cases" and claims[0].holds == (firsts == 6)  # type: ignore[union-attr]
        # Clark and Canberra are left out.
        assert counts[2] == f"in {firsts and 4} of 4 cases"
        assert [claim.attempt for claim in claims] == [False, False, True, True, True]  # type: ignore[union-attr]


def test_first_and_level() -> None:
    mine, theirs = np.array([1.0, 2.0, 3.0]), [np.array([1.1, 1.9, 3.3]), np.array([2.0, 2.0, 2.0])]
    assert not tables.first(mine, theirs) and tables.level(mine, theirs)
    assert tables.first(mine - 0.1, theirs) and tables.level(mine + 0.1, theirs)
    # A mean difference of 0.5, of which the standard error is 0.58; then one of 0.7.
    assert tables.level(mine + 0.5, theirs[1:]) and not tables.level(mine + 0.7, theirs[1:])


def test_scale() -> None:
    seconds, memory = scale.measure(120, "linear", 1)
    assert seconds > 0 and memory >= 0
