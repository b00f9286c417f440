"""Reading tables: round trips, and one clear line for every kind of bad file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from ldl.data.tables.reading import read_table
from ldl.errors import LDLError

RNG = np.random.default_rng(0)
X, D = RNG.normal(size=(12, 4)), RNG.dirichlet(np.ones(3), 12)


def write_csv(path: Path, features: np.ndarray = X, distributions: np.ndarray = D) -> None:
    header = [f"f{k}" for k in range(features.shape[1])] + [f"label:l{k}" for k in range(distributions.shape[1])]
    rows = [",".join(map(repr, row)) for row in np.hstack([features, distributions]).tolist()]
    path.write_text("\n".join([",".join(header), *rows]) + "\n")


@pytest.mark.parametrize("suffix", [".npz", ".MAT"])
@pytest.mark.parametrize(("feature", "target"), [("features", "labels"), ("data", "Y")])
def test_arrays_come_back_under_the_usual_keys(tmp_path: Path, suffix: str, feature: str, target: str) -> None:
    path = tmp_path / f"table{suffix}"
    arrays = {feature: X, target: D, "note": np.arange(3)}
    with path.open("wb") as file:
        np.savez(file, **arrays) if suffix == ".npz" else scipy.io.savemat(file, arrays)  # type: ignore[arg-type]
    table = read_table(path)
    np.testing.assert_array_equal(table.features, X)
    np.testing.assert_allclose(table.target, D, rtol=1e-12)
    assert table.names is None


def test_csv_takes_label_columns_anywhere_and_names_them(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("\ufefflabel:sad,age,label:happy\n0.25,3,0.75\n\n1,4e0,0\n", encoding="utf-8")
    table = read_table(path)
    assert table.features.tolist() == [[3.0], [4.0]]
    assert table.target.tolist() == [[0.25, 0.75], [1.0, 0.0]]
    assert table.names == ["sad", "happy"]
    write_csv(path)
    np.testing.assert_array_equal(read_table(path).features, X)


def test_small_numbers_and_sparse_matrices_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "table.mat"
    onehot = np.eye(3, dtype=np.uint8)[np.arange(12) % 3]
    scipy.io.savemat(path, {"features": scipy.sparse.csc_matrix(X), "labels": onehot})
    table = read_table(path)
    np.testing.assert_array_equal(table.features, X)
    assert table.target.dtype == np.float64
    np.testing.assert_array_equal(table.target, onehot)


def test_sums_are_freed_of_rounding_and_normalised_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    np.savez(path, features=X, labels=D.astype(np.float16))
    np.testing.assert_allclose(read_table(path).target.sum(1), 1, rtol=1e-14)
    votes = np.array([[3, 1, 0]] * 12)
    np.savez(path, features=X, labels=votes)
    np.testing.assert_allclose(read_table(path, normalize=True).target, votes / 4)


def _npz(**arrays: Any) -> Callable[[Path], None]:
    return lambda path: np.savez(path, **{"features": X, "labels": D, **arrays})


def _text(text: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(text) and None


def _changed(array: np.ndarray, row: int, column: int, value: float) -> np.ndarray:
    copy = array.copy()
    copy[row, column] = value
    return copy


BAD: list[tuple[str, Callable[[Path], None], dict[str, Any], str]] = [
    ("gone.mat", lambda path: None, {}, r"no data file at .*gone.mat; give --data.path.*LDL_DATA"),
    ("t.xlsx", _text("x"), {}, r"unknown kind of file '.xlsx'; save a table as .csv with commas between fields"),
    ("t.csv", _text("a|label:b\n1|1\n"), {}, r"bars stand between its fields; write it with commas"),
    ("t.csv", _text("a,Group,patient,label:b\n1,1,1,1\n"), {}, r"each of 'Group', 'patient' may be the group; choose"),
    ("t.npz", lambda path: np.savez(path, X=X, D=D, Persons=X), {}, "12 rows of features but 48 groups"),
    ("t.csv", _text("a,Label:b,label:c\n1,0,1\n"), {}, r"column 'Label:b' is no label, whose name begins with 'label"),
    (
        "t.csv",
        _text("a,b,c,d,e,f,g,h,i,j\n"),
        {},
        r"its columns are 'a', .*, 'h' and 2 more; one value [^;]* COLUMN$",
    ),
    ("t.mat", _text("no matrix"), {}, r"t.mat cannot be read as .mat"),
    ("t.npz", _text("no zip"), {}, r"t.npz cannot be read as .npz"),
    ("t.npz", _npz(), {"feature_key": "featurs"}, r"no key 'featurs'; did you mean 'features'\?"),
    ("t.npz", _npz(features=_changed(X, 3, 1, np.nan)), {}, r"features row 3, column 1 is nan; .*finite"),
    ("t.csv", _text("a,label:b\n1,1\n1e300,1\n"), {}, r"line 3, column 'a' is '1e300', more than 1e100"),
    ("t.npz", _npz(labels=_changed(D, 4, 0, -0.25)), {}, r"distribution row 4, label 0 is -0.25; .*not be negative"),
    ("t.npz", _npz(labels=D * 1.5), {}, r"distribution row 0 sums to 1.5, not 1 \(12 such rows\); .*--data.normalize"),
    ("t.npz", _npz(labels=D * (np.arange(12) != 7)[:, None]), {"normalize": True}, r"row 7 is all zero"),
    ("t.npz", _npz(labels=D[:-1]), {}, r"12 rows of features but 11 distributions"),
    ("t.npz", _npz(features=X.T), {}, r"\d rows of features but 12 distributions; .* \(12, \d\), so save features\.T$"),
    ("t.npz", _npz(labels=D.T), {}, r"but \d distributions; features have shape \(12, .*, so save distributions\.T$"),
    ("t.npz", _npz(features=X.T, labels=D.T), {}, r"so save features\.T and distributions\.T$"),
    ("t.npz", _npz(features=X[:, 0]), {}, r"features have shape \(12,\); a matrix"),
    ("t.npz", _npz(features=X.astype(str)), {}, r"features are <U32, not numbers"),
    (
        "t.npz",
        _npz(features=X.astype(object)),
        {},
        r"t.npz: 'features' is an array of Python objects, .* with .astype",
    ),
    ("t.csv", _text(""), {}, r"t.csv: needs rows, feature columns, and label columns named label:NAME"),
    ("t.csv", _text("a,label:b,label:b\n1,0,1\n"), {}, r"t.csv: .*'label:b'.* twice"),
    ("t.csv", _text("a,label:b\n1,1\n"), {"target_key": "b"}, r"the names of matrices are for .mat and .npz"),
]


@pytest.mark.parametrize(("name", "write", "options", "message"), BAD, ids=[case[3][:30] for case in BAD])
def test_bad_files_are_refused_in_one_line(
    tmp_path: Path, name: str, write: Callable[[Path], None], options: dict[str, Any], message: str
) -> None:
    path = tmp_path / name
    write(path)
    with pytest.raises(LDLError, match=message) as caught:
        read_table(path, **options)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


SIZES = {
    "Natural_Scene": (2000, 294, 9),
    "SJAFFE": (213, 243, 6),
    "Yeast_alpha": (2465, 24, 18),
}


@pytest.mark.parametrize("name", SIZES)
def test_the_public_sets_load(ldl_data: Path, name: str) -> None:
    table = read_table(ldl_data / "ldl" / f"{name}.mat")
    assert (*table.features.shape, table.target.shape[1]) == SIZES[name]
    np.testing.assert_allclose(table.target.sum(1), 1, rtol=1e-12)


def test_fgnet_needs_to_be_normalised(ldl_data: Path) -> None:
    path = ldl_data / "ldl" / "FG-NET_AAM.mat"
    with pytest.raises(LDLError, match="row 0 sums to 0.967.*--data.normalize true"):
        read_table(path)
    table = read_table(path, normalize=True)
    assert table.target.shape == (1002, 70)
    np.testing.assert_allclose(table.target.sum(1), 1, rtol=1e-12)
