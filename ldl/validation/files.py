"""Open files that a user names: regular files only, with text in UTF-8."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import stat
import unicodedata
import zlib
from pathlib import Path

from ldl.errors import LDLError
from ldl.validation.archive import most_unpacked

ABSENT = "give --data.path, or its folder with --data.root or LDL_DATA"
"""Fix for a data file that is absent."""
LARGEST_TEXT = 2**26
"""Unpacked size that any text may have, in bytes; text takes several times as much memory."""
BLOCK_BYTES = 2**24
"""Bytes of a text that are decoded at a time."""
EXAMPLES = Path(__file__).parents[1] / "examples"
"""Folder of the data files that come with ldl."""
POINTER, LARGEST_POINTER = b"version https://git-lfs.github.com/spec/", 1024
"""Beginning and largest size in bytes of the text that Git LFS leaves in place of a file that was not fetched."""


def check_file(path: Path, kind: str = "file", fix: str = "correct the path") -> Path:
    """Return the path of a regular file.

    Args:
        path: The file.
        kind: Kind of the file in messages, such as ``data file``.
        fix: What to do if it is absent, for messages.

    Raises:
        LDLError: The path leads to nothing, its name is impossible, it is not a regular file, such as a pipe, on which
            reading waits forever, or a device, whose content has no end; or it holds only a pointer of Git LFS.
    """
    reason = ""
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode):
            if status.st_size <= LARGEST_POINTER and path.read_bytes().startswith(POINTER):
                raise LDLError(f"{path} is a pointer of Git LFS and not the {kind} itself; fetch it with: git lfs pull")
            return path
        reason = f", which is {'a folder' if stat.S_ISDIR(status.st_mode) else 'no regular file'}"
    except LDLError:
        raise
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:
        reason = f": {getattr(error, 'strerror', error)}"
    shown = str(path).replace("\0", "\\0")
    raise LDLError(f"no {kind} at {shown if len(shown) <= 300 else f'...{shown[-100:]}'}{reason}; {fix}")


def data_folder(root: str | None = None) -> Path:
    """Return the data folder: the given one, else the environment's ``LDL_DATA``, else ``data``."""
    return Path(os.path.expanduser(root or os.environ.get("LDL_DATA") or "data"))


def find_path(name: str, root: str | None = None) -> Path:
    """Return the path that an option names: as given, below the data folder, or an example that comes with ldl.

    A name that leads to nothing is one below the data folder.
    """
    below, example = data_folder(root) / name, EXAMPLES / name
    if os.path.exists(name):  # ``Path.exists`` raises for impossible names
        return Path(name)
    return example if os.path.isfile(example) and not os.path.exists(below) else below


def check_found(path: Path, name: str) -> Path:
    """Return the ``path`` to which the option ``--data.path`` leads, as ``name`` or below the data folder.

    Raises LDLError if a relative path leads to nothing in either place.
    """
    if not os.path.isabs(name) and not os.path.exists(path):
        here = f"nor is there one in the working folder {Path.cwd()}"
        check_file(path, "data file", f"{here}: correct --data.path, or the data folder, --data.root or LDL_DATA")
    return path


def as_stored(name: str, folder: Path) -> str:
    """Return the one spelling of a path below a folder, that of the disk; a URL stays as it is.

    A list may write ``./a.jpg`` for ``a.jpg``, é as one character or two (NFC or NFD), and a backslash between folders,
    as Windows does.
    """
    if "://" in name:
        return name
    name = os.path.normpath(name)
    forms = [name, *(unicodedata.normalize(form, name) for form in ("NFC", "NFD") if not name.isascii())]
    spellings = [*forms, *(os.path.normpath(form.replace("\\", "/")) for form in forms if "\\" in form)]
    return next((spelling for spelling in spellings if os.path.exists(folder / spelling)), name)


def visible(folder: Path, pattern: str) -> list[Path]:
    """Return the paths below a folder that match a glob ``pattern``, sorted, without hidden files and folders.

    Operating systems leave hidden files beside others, such as ``._face.jpg`` of macOS.
    """
    paths = folder.glob(pattern)
    return sorted(path for path in paths if not any(name[0] == "." for name in path.relative_to(folder).parts))


def kind_of(path: Path) -> str:
    """Return the suffix of a file in lower case; the suffix of ``table.csv.gz`` is ``.csv``."""
    return Path(path.stem if path.suffix.lower() == ".gz" else path).suffix.lower()


def read_text(path: Path, kind: str = "file", fix: str = "correct the path") -> str:
    """Return the text of a UTF-8 file; see :func:`read_utf8`. Raises LDLError."""
    return read_utf8(path, kind, fix).decode()


def read_utf8(path: Path, kind: str = "file", fix: str = "correct the path") -> bytes:
    """Return the bytes of a UTF-8 file, without its byte order mark if there is one; a ``.gz`` file is unpacked.

    Args:
        path: The file.
        kind: Kind of the file in messages.
        fix: What to do if it is absent, for messages.

    Raises:
        LDLError: See :func:`check_file`. Also: the file cannot be read or unpacked, unpacks to far more than its size,
            is not UTF-8, or holds NUL bytes.
    """
    try:
        content = check_file(path, kind, fix).read_bytes()
        if path.suffix.lower() == ".gz":
            most = most_unpacked(len(content), LARGEST_TEXT)
            if len(content := _unpacked(content, most)) > most:
                raise LDLError(f"{path} unpacks to more than {most} bytes; if you trust it, unpack it first")
    except (OSError, EOFError, zlib.error) as error:
        raise LDLError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not content.isascii() and (byte := _find_foreign(content)) is not None:
        raise LDLError(f"{path} is no text in UTF-8: {_place(content, byte)}; save it as UTF-8")
    if (byte := content.find(b"\0")) >= 0:
        raise LDLError(f"{path} is no text: {_place(content, byte)}; save it as UTF-8")
    return content.removeprefix(codecs.BOM_UTF8)


def _find_foreign(content: bytes) -> int | None:
    """Return the first byte that is not of UTF-8, or None. Decoded as a whole, a text takes four times its memory."""
    decoder, view = codecs.getincrementaldecoder("utf-8")(), memoryview(content)
    for start in range(0, len(content), BLOCK_BYTES):
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(view[start : start + BLOCK_BYTES], start + BLOCK_BYTES >= len(content))
        except UnicodeDecodeError as error:
            return start - pending + error.start
    return None


def _unpacked(packed: bytes, most: int) -> bytes:
    with gzip.open(io.BytesIO(packed)) as file:
        return file.read(most + 1)


def _place(content: bytes, byte: int) -> str:
    return f"byte {byte} is {content[byte]:#04x}, in line {content.count(10, 0, byte) + 1}"
