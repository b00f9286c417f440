"""Persons of public tables: the borders are those that the features show, and protocols keep to them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

from benchmarks.tables.persons import best_blocks, evidence
from ldl.data import TabularLDL
from ldl.data.order import standardised
from ldl.data.tables.distributions import read_table
from ldl.data.tables.persons import KNOWN
from ldl.errors import LDLError
from ldl.protocols import kfold

RNG = np.random.default_rng(0)
X, D = RNG.normal(size=(40, 3)), RNG.dirichlet(np.ones(3), 40)
G = np.repeat([f"p{number}" for number in range(8)], 5)
COUNTS = {table.name: table.rows for table in KNOWN.values()}


def made(path: Path | str, **options: Any) -> TabularLDL:
    data = TabularLDL(str(path), **{"folds": 4, **options})
    data.setup()
    return data


def grouped(folder: Path, **changed: Any) -> Path:
    path = folder / "table.npz"
    np.savez(path, **{"features": X, "labels": D, "person": G, **changed})
    return path


@pytest.mark.parametrize("least", [1, 2])
def test_the_best_blocks_are_the_best_of_all(least: int) -> None:
    rows = RNG.normal(size=(9, 2))

    def cost(lengths: tuple[int, ...]) -> float:
        parts = np.split(rows, np.cumsum(lengths)[:-1])
        return float(sum(((part - part.mean(0)) ** 2).sum() for part in parts))

    all_of_them = (c for c in itertools.product(range(least, 10), repeat=3) if sum(c) == 9)
    assert tuple(best_blocks(rows, 3, least)) == min(all_of_them, key=cost)


def test_features_show_the_borders_of_sjaffe(ldl_data: Path) -> None:
    data = made(ldl_data / "ldl" / "SJAFFE.mat", folds=10)
    for rows in (standardised(data.features), np.sqrt(data.features)):
        assert tuple(best_blocks(rows, 10)) == COUNTS["SJAFFE.mat"]
    # What JAFFE's file names give: the same counts, in another order.
    assert sorted(COUNTS["SJAFFE.mat"]) == sorted((23, 22, 22, 20, 21, 21, 20, 21, 21, 22))
    found = evidence(data)
    assert found["same person"] > 0.94 and found["chance"] < 0.1


def test_features_show_the_borders_of_sbu_3dfe(ldl_data: Path) -> None:
    data = made(ldl_data / "ldl" / "SBU_3DFE.mat", folds=10)
    found = evidence(data)
    assert found["same person"] > 0.88 and found["chance"] < 0.011
    steps = np.linalg.norm(np.diff(standardised(data.features), axis=0), axis=1)
    medians = [np.median(steps[place::25]) for place in range(25)]
    assert np.argmax(medians) == 24 and max(medians) > 1.3 * sorted(medians)[-2]


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


def test_a_table_is_known_by_its_content(ldl_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = scipy.io.loadmat(ldl_data / "ldl" / "SJAFFE.mat")
    np.savez(tmp_path / "mine.npz", features=content["features"], labels=content["labels"])
    assert made(tmp_path / "mine.npz").protocol == "persons" and not capsys.readouterr().out
    for features in (content["features"][::-1], content["features"][:-1], content["features"] + 1e-9):
        labels = content["labels"][: len(features)]
        scipy.io.savemat(tmp_path / "SJAFFE.mat", {"features": features, "labels": labels})
        data = made(tmp_path / "SJAFFE.mat")
        assert (data.protocol, data.leaky, data.leak) == ("random_kfold", None, None)
        assert "SJAFFE.mat is not the published table, whose persons are known" in capsys.readouterr().out
        assert data.order_audit is not None and data.order_audit.warning is not None
        with pytest.raises(LDLError, match=r"no groups to leave out \(SJAFFE.mat is not the published.*group_key"):
            made(tmp_path / "SJAFFE.mat", protocol="persons")


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


def test_cells_of_a_mat_file_are_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"features": X, "labels": D, "person": G.astype(object)})
    assert read_table(path).groups is not None and read_table(path).groups.tolist() == G.tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({"person": G[:-1]}, {}, "40 rows of features but 39 groups"),
        ({"person": np.where(G == "p3", " ", G)}, {}, r"the group of row 15 is missing \(5 such rows\)"),
        ({"person": np.where(G == "p3", np.nan, 1.0)}, {}, "the group of row 15 is missing"),
        ({}, {"group_key": "persn"}, "no key 'persn'; did you mean 'person'"),
        ({}, {"protocol": "person"}, "TabularLDL.protocol 'person' must be one of group_exclusive"),
        ({}, {"folds": 9}, "folds 9 must be in 2..8, the number of groups"),
        ({}, {"val_fraction": 0.01}, "val_fraction 0.01 of 6 training groups leaves an empty part"),
    ],
)
def test_bad_groups_are_named(tmp_path: Path, changed: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        made(grouped(tmp_path, **changed), **options)


@pytest.mark.parametrize("protocol", ["persons", "group_exclusive", "leave_one_group_out"])
def test_unknown_groups_are_not_kept_apart(tmp_path: Path, protocol: str) -> None:
    path = tmp_path / "plain.npz"
    np.savez(path, features=X, labels=D)
    data = made(path)
    assert (data.protocol, data.leaky, data.leak) == ("random_kfold", None, None)
    with pytest.raises(LDLError, match=f"no groups to leave out; name them with data.group_key, or .* {protocol}"):
        made(path, protocol=protocol)
