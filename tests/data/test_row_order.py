"""The order audit: silent on random orders, found where rows stand by person, and right to the pair."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ldl.data import TabularLDL, TabularValues
from ldl.data.row_order import audit_order, nearest, row_ids, standardised


def persons(seed: int, count: int = 40, each: int = 5, spread: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Rows that stand person by person, and labels that know nothing of it."""
    rng = np.random.default_rng(seed)
    centres = np.repeat(rng.normal(size=(count, 6)), each, axis=0)
    return centres + spread * rng.normal(size=centres.shape), rng.dirichlet(np.ones(4), count * each)


def plain(features: np.ndarray, width: int) -> tuple[float, float]:
    """The share of pairs within ``width`` and that of all pairs of rows, by loops."""
    kept = [column for column in features.T if len(set(column)) > 1]
    rows = np.array([(column - column.mean()) / column.std() for column in kept]).T
    size, pairs = len(rows), set()
    for i in range(size):
        others = [j for j in range(size) if any(features[j] != features[i])]
        pairs.add(frozenset((i, min(others, key=lambda j: float(((rows[i] - rows[j]) ** 2).sum())))))
    near = sum(max(pair) - min(pair) <= width for pair in pairs)
    every = [abs(i - j) <= width for i in range(size) for j in range(size) if i != j]
    return near / len(pairs), sum(every) / len(every)


def test_shares_are_those_of_all_pairs() -> None:
    features, labels = persons(0, 20, 3)
    features = np.concatenate([features, np.full((2, 6), 9.0)])  # two rows that are equal, and far from all others
    features = np.hstack([features * [1, 100, 1e-3, 1, 1, 1], np.full((62, 1), 0.1)])
    audit = audit_order(features, np.concatenate([labels, labels[:2]]))
    assert [near.width for near in audit.found] == [1, 5]
    for near in audit.found:
        assert (near.features, near.chance) == pytest.approx(plain(features, near.width))
        pairs = len({frozenset(pair) for pair in enumerate(nearest(features, np.arange(62), np.arange(62)).tolist())})
        count = round(near.features * pairs)
        tail = sum(
            math.comb(pairs, k) * near.chance**k * (1 - near.chance) ** (pairs - k) for k in range(count, pairs + 1)
        )
        assert near.p == pytest.approx(tail, rel=1e-6)


def test_random_orders_are_left_alone() -> None:
    spoken = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(30, 250))
        # Half of them coarse: equal rows, and many that are equally near.
        features = rng.normal(size=(size, 5)) if seed % 2 else rng.integers(0, 3, (size, 4)).astype(float)
        audit = audit_order(features, rng.dirichlet(np.ones(3), size))
        spoken.append((audit.ordered, audit.best is not None and audit.best.p < 0.05 / 3))
    ordered, often = np.mean(spoken, axis=0)
    assert ordered == 0 and often < 0.12  # the bound is near: three widths at 5% together


@pytest.mark.parametrize("seed", range(3))
def test_grouped_rows_are_found_and_their_mixture_is_not(seed: int) -> None:
    features, labels = persons(seed)
    audit = audit_order(features, labels)
    assert audit.grouped and audit.verdict.startswith("rows look grouped: the nearest row")
    assert audit.warning is not None and audit.warning.endswith("such as persons") and "\n" not in audit.warning
    order = np.random.default_rng(seed).permutation(len(features))
    mixed = audit_order(features[order], labels[order])
    assert not mixed.ordered and mixed.warning is None and "random order" in mixed.verdict


def test_a_file_sorted_by_label_is_not_grouped() -> None:
    rng = np.random.default_rng(0)
    values = np.sort(rng.normal(size=(600, 1)), 0)
    features = np.hstack([values + 0.1 * rng.normal(size=(600, 1)), 0.1 * rng.normal(size=(600, 1))])
    audit = audit_order(features, values)
    assert audit.ordered and not audit.grouped and "sorted by label" in audit.verdict and audit.warning is None


def test_equal_rows_and_constants_tell_nothing() -> None:
    assert audit_order(np.ones((50, 3)), np.eye(50)[:, :3]).verdict.startswith("50 rows are too few, or too alike, to")
    assert not audit_order(np.ones((50, 3)), np.ones((50, 2))).ordered
    assert audit_order(np.ones((50, 3)), np.ones((50, 2))).best is None
    doubled = np.repeat(np.random.default_rng(0).normal(size=(100, 4)), 2, axis=0)
    assert not audit_order(doubled, doubled).grouped
    assert "too few" in audit_order(np.eye(3), np.eye(3)).evidence
    assert row_ids(np.array([[0.0, 1], [-0.0, 1], [1, 0]])).tolist() == [0, 0, 1]
    assert bool(np.isfinite(standardised(np.array([[1e-200, 1e99], [3e-200, -1e99], [2e-200, 0]]))).all())


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("Natural_Scene", "rows look to be in random order"),
        ("Yeast_alpha", "rows look to be in random order"),
        ("SCUT_FBP", "rows look sorted by label"),
        ("M2B", "a few rows look grouped"),
        ("FG-NET_AAM", "rows look grouped"),
    ],
)
def test_real_tables(ldl_data: Path, name: str, word: str) -> None:
    path = str(ldl_data / "ldl" / f"{name}.mat")
    data = TabularValues(path, value_key="age") if name == "FG-NET_AAM" else TabularLDL(path)
    data.setup()
    assert data.order_audit is not None and data.order_audit.verdict.startswith(word)
    assert (data.order_audit.warning is not None) == ("grouped" in word)


@pytest.mark.parametrize("name", ["SJAFFE", "SBU_3DFE"])
def test_it_finds_the_persons_that_are_known(ldl_data: Path, name: str) -> None:
    data = TabularLDL(str(ldl_data / "ldl" / f"{name}.mat"))
    data.setup()
    assert data.order_audit is None
    audit = audit_order(data.features, data.columns["target"].numpy())
    assert audit.grouped and audit.found[-1].features > 0.85 and audit.found[-1].chance < 0.23
