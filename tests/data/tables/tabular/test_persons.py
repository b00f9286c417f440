"""Persons of public tables: the borders are those that the features show, and protocols keep to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

from ldl.data import TabularLDL
from ldl.data.row_order import nearest, standardised
from ldl.data.tables.tabular import KNOWN_TABLES
from ldl.errors import LDLError
from ldl.protocols import kfold

RNG = np.random.default_rng(0)
X, D = RNG.normal(size=(40, 3)), RNG.dirichlet(np.ones(3), 40)
G = np.repeat([f"p{number}" for number in range(8)], 5)
COUNTS = dict(KNOWN_TABLES.values())


def made(path: Path | str, **options: Any) -> TabularLDL:
    data = TabularLDL(str(path), **{"folds": 4, **options})
    data.setup()
    return data


def grouped(folder: Path, **changed: Any) -> Path:
    path = folder / "table.npz"
    np.savez(path, **{"features": X, "labels": D, "person": G, **changed})
    return path


def best_blocks(rows: np.ndarray, count: int, least: int = 5) -> list[int]:
    """Lengths of ``count`` blocks of consecutive rows (N, F) with the least squared distance to the blocks' means."""
    size = len(rows)
    sums = np.vstack([np.zeros(rows.shape[1]), rows.cumsum(0)])
    squares = np.concatenate([[0.0], (rows**2).sum(1).cumsum()])
    cost = np.full((size + 1, size + 1), np.inf)
    for start in range(size):
        ends = np.arange(start + least, size + 1)
        between = ((sums[ends] - sums[start]) ** 2).sum(1) / (ends - start)
        cost[start, ends] = squares[ends] - squares[start] - between
    best, before = np.where(np.arange(size + 1) == 0, 0.0, np.inf), []
    for _ in range(count):
        total = best[:, None] + cost
        before.append(total.argmin(0))
        best = total.min(0)
    borders = [size]
    for step in reversed(before):
        borders.append(int(step[borders[-1]]))
    return np.diff(borders[::-1]).tolist()


def evidence(data: TabularLDL) -> dict[str, float]:
    """The share of rows whose nearest other row belongs to the same person, and that share by chance."""
    assert data.groups is not None
    size, groups = data.size, data.groups
    rng = np.random.default_rng(0)
    same = groups[nearest(np.asarray(data.features), np.arange(size), rng.permutation(size))] == groups
    counts = np.bincount(groups)
    return {"same person": float(same.mean()), "chance": float((counts * (counts - 1)).sum() / (size * (size - 1)))}


def test_features_show_the_borders_of_sjaffe(ldl_data: Path) -> None:
    data = made(ldl_data / "ldl" / "SJAFFE.mat", folds=10)
    for rows in (standardised(data.features), np.sqrt(data.features)):
        assert tuple(best_blocks(rows, 10)) == COUNTS["SJAFFE.mat"]
    # What JAFFE's file names give: the same counts, in another order.
    assert sorted(COUNTS["SJAFFE.mat"]) == sorted((23, 22, 22, 20, 21, 21, 20, 21, 21, 22))
    found = evidence(data)
    assert found["same person"] > 0.94 and found["chance"] < 0.1


@pytest.mark.parametrize("name", COUNTS)
def test_persons_are_kept_apart_by_default_and_shuffled_on_demand(ldl_data: Path, name: str) -> None:
    path = ldl_data / "ldl" / name
    data = made(path, folds=10, val_fraction=0.1)
    assert (data.protocol, data.leaky, data.num_folds) == ("persons", False, 10)
    assert data.groups is not None and tuple(np.bincount(data.groups)) == COUNTS[name]
    tested = []
    for fold in range(10):
        data.select_fold(fold)
        assert data.leak == 0 and not set(data.groups[data.split.val]) & set(data.groups[data.split.train])
        assert len(set(data.groups[data.split.test])) == len(COUNTS[name]) // 10
        tested += data.split.test.tolist()
    assert sorted(tested) == list(range(data.size))
    loose = made(path, folds=10, fold=3, protocol="shuffled", val_fraction=0.1)
    assert loose.leaky is True and loose.leak == 1
    for mine, usual in zip(vars(loose.split).values(), vars(kfold(data.size, 10, 3, 0, 0.1)).values(), strict=True):
        assert np.array_equal(mine, usual)
    assert made(path, protocol="leave_one_group_out").num_folds == len(COUNTS[name])


def test_a_table_is_known_by_its_content(ldl_data: Path, tmp_path: Path) -> None:
    content = scipy.io.loadmat(ldl_data / "ldl" / "SJAFFE.mat")
    np.savez(tmp_path / "mine.npz", features=content["features"], labels=content["labels"])
    assert made(tmp_path / "mine.npz").protocol == "persons"
    for features in (content["features"][::-1], content["features"][:-1], content["features"] + 1e-9):
        labels = content["labels"][: len(features)]
        scipy.io.savemat(tmp_path / "SJAFFE.mat", {"features": features, "labels": labels})
        data = made(tmp_path / "SJAFFE.mat")
        assert (data.protocol, data.leaky, data.leak) == ("random_kfold", None, None)
        assert data.order_audit is not None and data.order_audit.warning is not None


def test_a_file_may_name_its_groups(tmp_path: Path) -> None:
    path = grouped(tmp_path)
    assert (made(path).protocol, made(path).leaky, made(path).order_audit) == ("group_exclusive", False, None)
    for options in ({}, {"protocol": "persons"}, {"protocol": "leave_one_group_out"}):
        data = made(path, val_fraction=0.3, **options)
        assert data.num_folds == (8 if "leave_one" in options.get("protocol", "") else 4)
        for fold in range(data.num_folds):
            data.select_fold(fold)
            parts = [set(G[part]) for part in (data.split.train, data.split.val, data.split.test)]
            assert all(parts) and sum(map(len, parts)) == 8 and data.leak == 0
    assert made(path, protocol="random_kfold").leaky is True
    again = made(grouped(tmp_path, person=X[:, 0], who=G), group_key="who")
    assert again.groups is not None and again.groups.tolist() == np.repeat(range(8), 5).tolist()
    lines = [f"{x[0]},{g},0.25,0.75" for x, g in zip(X.tolist(), G)]
    (tmp_path / "a.csv").write_text("\n".join(["f,who,label:a,label:b", *lines]))
    data = made(tmp_path / "a.csv", group_key="who")
    assert (
        data.features.shape == (40, 1) and data.leaky is False and data.columns["group"].tolist()[:6] == [0] * 5 + [1]
    )


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({"person": G[:-1]}, {}, "40 rows of features but 39 groups"),
        ({"person": np.where(G == "p3", " ", G)}, {}, r"the group of row 15 is missing or no name, .* \(5 such rows\)"),
        ({"person": np.where(G == "p3", np.nan, 1.0)}, {}, "the group of row 15 is missing or no name"),
        ({}, {"group_key": "persn"}, "no key 'persn'; did you mean 'person'"),
        ({}, {"folds": 9}, "folds 9 must be in 2..8, the number of groups"),
        ({}, {"val_fraction": 0.01}, "val_fraction 0.01 of 6 training groups leaves an empty part"),
    ],
)
def test_bad_groups_are_named(tmp_path: Path, changed: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        made(grouped(tmp_path, **changed), **options)
