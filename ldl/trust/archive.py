"""Bounds on what a file may unpack to, found before anything is read into memory."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path

from ldl.errors import LDLError
from ldl.trust.mat import HEADER, check_elements, order_of

ALWAYS = 2**30
"""Bytes to which any archive may unpack."""
RATIO = 200
"""How many times its own size it may unpack to beyond that; sparse tables shrink to a hundredth."""
DEFLATED = 1032
"""The most by which zlib makes anything smaller."""
PART = 2**22


def check_archive(path: Path, packed: bool = True) -> None:
    """Hold the sizes that a zip file claims against its own.

    Args:
        path: The file; what is no zip file is left to its reader.
        packed: Whether members may be compressed; those of torch never are.

    Raises:
        LDLError: it would unpack to far more than it holds.
    """
    try:
        if not zipfile.is_zipfile(path):
            return
        with zipfile.ZipFile(path) as archive:
            claimed = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise LDLError(f"{path} cannot be read as an archive: {error}") from None
    size = path.stat().st_size
    _check(path, claimed, max(ALWAYS, RATIO * size) if packed else size)


def check_mat(path: Path) -> None:
    """Raise LDLError for a .mat file of version 5 that unpacks to far more than it holds, or is damaged."""
    _check_unpacked(path)
    check_elements(path)


def _check_unpacked(path: Path) -> None:
    size = path.stat().st_size
    if DEFLATED * size <= ALWAYS:
        return
    most, total = max(ALWAYS, RATIO * size), 0
    with path.open("rb") as file:
        if not (order := order_of(file.read(HEADER))):
            return  # nothing in it is packed, or scipy does not read it
        while len(tag := file.read(8)) == 8 and total <= most:
            kind, length = struct.unpack(f"{order}II", tag)
            end = file.tell() + length
            total += _unpacked(file.read(min(length, size)), most - total) if kind == 15 else length
            file.seek(end)
    _check(path, total, most)


def _unpacked(data: bytes, most: int) -> int:
    """How many bytes ``data`` unpack to, as soon as they are more than ``most``."""
    total, inflate = 0, zlib.decompressobj()
    try:
        while data and total <= most:
            total += len(inflate.decompress(data, PART))
            data = inflate.unconsumed_tail
    except zlib.error:  # the reader says what is wrong with it
        pass
    return total


def _check(path: Path, claimed: int, most: int) -> None:
    if claimed > most:
        size = path.stat().st_size
        raise LDLError(f"{path} has {size} bytes and unpacks to {claimed} or more; it is no file to read")
