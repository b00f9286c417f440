"""Tables that stay on disk: the matrices in a folder of .npy files, or in an .npz file that is too large for memory."""

from __future__ import annotations

import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import TypeVar

import numpy as np

from ldl.data.cache import cache_root, cached_folder, files_key
from ldl.data.row_file import RowFile
from ldl.errors import LDLError
from ldl.trust.archive import check_archive

T = TypeVar("T")
LOCAL_HEADER = struct.Struct("<26xHH")
"""What stands before a member of a zip file, up to the lengths of its name and of an extra field."""


@dataclass(frozen=True)
class Storage:
    """Where the numbers of a table may lie.

    Attributes:
        in_memory: A matrix of at most so many MB, counted as float32, is read into memory; another stays on disk.
        cache_dir: Folder for what has to be written anew to be read in place; None takes the usual one.
    """

    in_memory: float = 256
    cache_dir: str | None = None

    def place(self, matrix: T) -> T | np.ndarray:
        """A matrix as it is, or one that is in a file and small enough, in memory."""
        return np.asarray(matrix) if isinstance(matrix, RowFile) and self.fits(matrix.shape) else matrix

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether a matrix of this shape is read into memory."""
        return 4 * prod(shape) <= self.in_memory * 2**20

    @property
    def tables(self) -> Path:
        """Folder of tables that were written anew."""
        return cache_root(self.cache_dir) / "tables"


USUAL = Storage()


class Members(Mapping[str, RowFile]):
    """Matrices by their names, opened where they are asked for: others may be anything."""

    def __init__(self, openers: dict[str, Callable[[], RowFile]]) -> None:
        self._openers = openers

    def __getitem__(self, name: str) -> RowFile:
        return self._openers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._openers)

    def __len__(self) -> int:
        return len(self._openers)


def open_folder(folder: Path) -> Members:
    """The matrices of the .npy files in a folder, by their names without ending. Raises LDLError where it has none."""
    if not (files := sorted(folder.glob("*.npy"))):
        raise LDLError(
            f"{folder} holds no table; give .npy files, such as features.npy and labels.npy, or Parquet files"
        )
    return Members({path.stem: partial(RowFile.open, path) for path in files})


def open_npz(path: Path, storage: Storage) -> Members | None:
    """The matrices of an .npz file that unpacks to more than is read into memory; None of a smaller one.

    A member that is stored as it is, as by ``np.savez``, is read in its place; one that is compressed is unpacked into
    the cache. Raises LDLError: the file unpacks to far more than it holds.
    """
    check_archive(path)
    if not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
    if sum(member.file_size for member in members) <= storage.in_memory * 2**20:
        return None
    return Members({member.filename[:-4]: partial(_open, path, member, storage) for member in members})


def _open(path: Path, member: zipfile.ZipInfo, storage: Storage) -> RowFile:
    if member.compress_type == zipfile.ZIP_STORED:
        with path.open("rb") as file:
            file.seek(member.header_offset)
            name, extra = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
        return RowFile.open(path, member.header_offset + LOCAL_HEADER.size + name + extra)

    def unpack(folder: Path) -> None:
        with zipfile.ZipFile(path) as archive, archive.open(member) as packed, (folder / "rows.npy").open("wb") as file:
            shutil.copyfileobj(packed, file, 2**22)

    key = files_key([path], f"npz {member.filename}")
    try:
        folder = cached_folder(storage.tables / key, unpack, f"unpacking {member.filename} of {path}")
    except (zipfile.BadZipFile, zlib.error) as error:
        raise LDLError(f"{path} cannot be read as .npz: {error}") from None
    return RowFile.open(folder / "rows.npy")
