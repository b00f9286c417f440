"""Opening files that were given by a user: what is no file is refused before it is opened, text is UTF-8."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ldl.errors import LDLError

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def check_file(path: Path, what: str = "file", fix: str = "correct the path") -> Path:
    """The path of a file that can be opened, and read to an end.

    Args:
        path: The file.
        what: What it is, such as ``data file``, for messages.
        fix: What to do where it is not there, for messages.

    Raises:
        LDLError: nothing is there, it is no regular file (opening a pipe waits for ever, a device has no end), or its
            name is impossible.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise LDLError(f"no {what} at {path}; {fix}") from None
    except (OSError, ValueError) as error:
        raise LDLError(f"no {what} at {_short(path)}: {getattr(error, 'strerror', error)}; {fix}") from None
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in KINDS if test(mode)), "no regular file")
        raise LDLError(f"no {what} at {path}, which is {kind}; {fix}")
    return path


def check_found(path: Path, given: str) -> Path:
    """The ``path`` to which ``--data.path`` has led, as ``given`` or below the data folder.

    Raises LDLError where a relative one leads to nothing in either place.
    """
    if not os.path.isabs(given) and not os.path.exists(path):
        here = f"nor is there one in the working folder {Path.cwd()}"
        check_file(path, "data file", f"{here}: correct --data.path, or the data folder, --data.root or LDL_DATA")
    return path


def read_text(path: Path, what: str = "file", fix: str = "correct the path") -> str:
    """The text of a file in UTF-8, with or without a byte order mark.

    Raises:
        LDLError: see :func:`check_file`; it cannot be read, or a byte is not UTF-8, or NUL, which no text has.
    """
    path = check_file(path, what, fix)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LDLError(f"{path} cannot be read: {error.strerror}") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # A mark is cut off before decoding, so that places count from behind it.
        start = error.start + len(content) - len(error.object)
        raise LDLError(f"{path} is no text in UTF-8: {_place(content, start)}; save it as UTF-8") from None
    if "\0" in text:
        raise LDLError(f"{path} is no text: {_place(content, content.index(0))}; save it as UTF-8")
    return text


def _short(path: Path) -> str:
    text = str(path).replace("\0", "\\0")
    return text if len(text) <= 120 else f"{text[:60]}...{text[-50:]}"


def _place(content: bytes, byte: int) -> str:
    return f"byte {byte} is {content[byte]:#04x}, in line {content.count(10, 0, byte) + 1}"
