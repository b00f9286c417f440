"""Matrices in .npz and .mat files and in folders of .npy files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from ldl.data.storage import Storage
from ldl.data.tables.arrays import open_arrays
from ldl.errors import LDLError

X = np.arange(12.0).reshape(6, 2)


def saved_folder(path: Path) -> Path:
    np.save(path / "features.npy", X)
    return path


def saved_npz(path: Path) -> Path:
    np.savez_compressed(path / "t.npz", features=X)
    return path / "t.npz"


def saved_mat(path: Path) -> Path:
    scipy.io.savemat(path / "t.mat", {"features": X})
    return path / "t.mat"


@pytest.mark.parametrize("save", [saved_folder, saved_npz, saved_mat])
def test_matrices_are_found_by_name(save: Callable[[Path], Path], tmp_path: Path) -> None:
    arrays = open_arrays(save(tmp_path))
    assert "features" in arrays
    np.testing.assert_array_equal(arrays["features"][:], X)


def test_a_large_archive_is_unpacked_once(tmp_path: Path) -> None:
    path, storage = saved_npz(tmp_path), Storage(0.0, str(tmp_path / "cache"))
    for _ in range(2):
        np.testing.assert_array_equal(open_arrays(path, storage)["features"][np.arange(6)], X)
    assert len(list((tmp_path / "cache").rglob("features.npy"))) == 1


def test_matrices_that_the_check_refuses_do_not_stay_in_the_cache(tmp_path: Path) -> None:
    def refuse(arrays: object) -> None:
        raise LDLError("no such table")

    with pytest.raises(LDLError, match="no such table"):
        open_arrays(saved_npz(tmp_path), Storage(0.0, str(tmp_path / "cache")), refuse)
    assert not list((tmp_path / "cache").rglob("features.npy"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.npy", b"", "is one matrix of a table; give the folder"),
        ("t.xls", b"", "unknown kind of file '.xls'; save a table as .csv"),
        ("t.npz", b"PK", "t.npz cannot be read as"),
        ("t.mat", b"MATLAB", "t.mat cannot be read as .mat"),
    ],
)
def test_other_files_are_named(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LDLError, match=message):
        open_arrays(tmp_path / name)
    (tmp_path / name).unlink()
    with pytest.raises(LDLError, match="holds no table; give .npy files"):
        open_arrays(tmp_path)
