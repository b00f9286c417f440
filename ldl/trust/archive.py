"""Bounds on what an archive may unpack to, looked up in its directory before anything is read."""

from __future__ import annotations

import zipfile
from pathlib import Path

from ldl.errors import LDLError

ALWAYS = 2**30
"""Bytes to which any archive may unpack."""
RATIO = 200
"""How many times its own size it may unpack to beyond that; sparse tables shrink to a hundredth."""


def check_archive(path: Path, packed: bool = True) -> None:
    """Hold the sizes that a zip file claims against its own.

    Args:
        path: The file; what is no zip file is left to its reader.
        packed: Whether members may be compressed; those of torch never are.

    Raises:
        LDLError: it would unpack to far more than it holds.
    """
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            claimed = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise LDLError(f"{path} cannot be read as an archive: {error}") from None
    size = path.stat().st_size
    if claimed > (max(ALWAYS, RATIO * size) if packed else size):
        raise LDLError(f"{path} has {size} bytes and claims to unpack to {claimed}; it is no file to read")
