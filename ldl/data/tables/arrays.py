"""The matrices in .mat and .npz files, and in folders of .npy files."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from ldl.data.cache import cached_folder, files_key
from ldl.data.storage import RowFile, Storage
from ldl.errors import LDLError, explaining
from ldl.validation.archive import check_archive, check_mat, check_npy
from ldl.validation.files import ABSENT, check_file, visible

IN_MEMORY = Storage(np.inf)


class Members(Mapping[str, Any]):
    """Matrices by name, each opened on access: a file may hold other content beside them."""

    def __init__(self, openers: dict[str, Callable[[], np.ndarray | RowFile]]) -> None:
        self._openers = openers

    def __getitem__(self, name: str) -> np.ndarray | RowFile:
        return self._openers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._openers)

    def __len__(self) -> int:
        return len(self._openers)


def open_arrays(
    path: Path, storage: Storage = IN_MEMORY, check: Callable[[Mapping[str, Any]], object] = lambda arrays: None
) -> Mapping[str, Any]:
    """Return the matrices in a .mat or .npz file, or in a folder of .npy files, by their names.

    Args:
        path: The file or folder.
        storage: Place of the numbers. A .npz file that is too large for memory is unpacked into its cache.
        check: Raises LDLError for matrices that are not accepted; those do not stay in the cache.

    Raises:
        LDLError: The file is absent, cannot be read, unpacks to far more than its size, or is of another kind.
    """
    if os.path.isdir(path):  # ``Path.is_dir`` raises for impossible names
        return _open_folder(path)
    check_file(path, "data file", ABSENT)
    kind = path.suffix.lower()
    if kind == ".npy":
        raise LDLError(f"{path} is one matrix of a table; give the folder, with the others as .npy files beside it")
    if kind not in (".mat", ".npz"):
        raise LDLError(
            f"{path}: unknown kind of file {path.suffix!r}; save a table as .csv with commas between fields, or as "
            ".parquet, .npz or .mat"
        )
    with explaining(f"{path} cannot be read as {path.suffix}"):
        if kind == ".mat":
            check_mat(path)
            return scipy.io.loadmat(str(path))
        check_archive(path)
        with zipfile.ZipFile(path) as archive:
            sizes = {file.filename[:-4]: file.file_size for file in archive.infolist() if _is_matrix(file)}
        if sum(sizes.values()) > storage.in_memory * 2**20:
            return _unpacked(path, storage, check)
        return Members({name: partial(_member, path, name) for name in sizes})


def _open_folder(folder: Path) -> Members:
    if not (files := visible(folder, "*.npy")):
        raise LDLError(
            f"{folder} holds no table; give .npy files, such as features.npy and labels.npy, or Parquet files"
        )
    return Members({path.stem: partial(RowFile.open, path) for path in files})


def _is_matrix(member: zipfile.ZipInfo) -> bool:
    return member.filename.endswith(".npy")


def _member(path: Path, name: str) -> np.ndarray:
    with explaining(f"{path} cannot be read as {path.suffix}"):
        with zipfile.ZipFile(path) as archive, archive.open(member := archive.getinfo(f"{name}.npy")) as stream:
            check_npy(f"{path}: {name!r}", stream, member.file_size)
        with np.load(path, allow_pickle=False) as arrays:
            return np.asarray(arrays[name])


def _unpacked(path: Path, storage: Storage, check: Callable[[Mapping[str, Any]], object]) -> Members:
    """Return the matrices of a .npz file as rows in the cache, where they are kept if they pass the ``check``."""

    def unpack(folder: Path) -> None:
        with explaining(f"{path} cannot be read as {path.suffix}"), zipfile.ZipFile(path) as archive:
            for member in filter(_is_matrix, archive.infolist()):
                with archive.open(member) as packed, (folder / Path(member.filename).name).open("wb") as file:
                    shutil.copyfileobj(packed, file, 2**22)
        check(_members_in(folder, path))

    folder = storage.tables / files_key([path], "npz")
    return _members_in(cached_folder(folder, unpack, f"unpacking {path}"), path)


def _members_in(folder: Path, path: Path) -> Members:
    def opened(file: Path) -> RowFile:
        try:
            return RowFile.open(file)
        except LDLError as error:
            raise LDLError(str(error).replace(str(file), f"{path}: {file.stem!r}")) from None

    return Members({file.stem: partial(opened, file) for file in visible(folder, "*.npy")})
