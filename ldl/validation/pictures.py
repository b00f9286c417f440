"""Open image files of formats that cannot run scripts, and decode them completely."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from PIL import Image, ImageFile

from ldl.errors import LDLError, naming
from ldl.validation.files import check_file

FORMATS = ("JPEG", "PNG", "BMP", "WEBP", "AVIF", "TIFF", "GIF", "PPM")
"""Formats that are read, by Pillow's names. Of others, EPS starts Ghostscript, whatever the file is called."""
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
"""First bytes of a PNG file."""
READ_BYTES = 2**20
"""Bytes of a PNG file that are read at a time."""


def open_picture(path: Path, kind: str = "image", fix: str = "correct its path") -> Image.Image:
    """Return a decoded image file.

    Args:
        path: The file.
        kind: Kind of the file in messages.
        fix: What to do if it is absent, for messages.

    Raises:
        LDLError: The file is absent, damaged, cut, or of a format that is not read.
    """
    with opening(path, kind, fix) as picture, naming(f"{path} cannot be read as an image"):
        return decoded(picture)


@contextmanager
def opening(path: Path, kind: str = "image", fix: str = "correct its path") -> Iterator[Image.Image]:
    """Open an image file without decoding it, for its size; see :func:`open_picture`. Raises LDLError."""
    check_file(path, kind, fix)
    Image.init()  # the formats of this Pillow, which may have no AVIF
    formats = [name for name in FORMATS if name in Image.OPEN]
    try:
        picture = Image.open(path, formats=formats)
    except Image.DecompressionBombError as error:
        raise LDLError(f"{path} is too large: {_reason(error)}; make it smaller") from error
    except Exception as error:  # Pillow's readers have no common exception
        # Pillow's own message repeats the path, or the address of a buffer.
        unknown = f"unknown or damaged format; {', '.join(formats)} are read, so convert other formats"
        reason = unknown if "cannot identify" in str(error) else _reason(error)
        raise LDLError(f"{path} cannot be read as an image: {reason}") from error
    with picture:
        yield picture


def decoded(picture: Image.Image) -> Image.Image:
    """Decode an image that Pillow has opened, and return it.

    Decode before any other use, because Pillow decodes only once: after an error, a second call returns the pixels
    decoded so far. Checksums of PNG reveal a changed byte. Other formats have no checksums, so that a changed byte may
    change pixels without an error.

    Raises:
        LDLError: The image is damaged or cut.
    """
    user_setting = ImageFile.LOAD_TRUNCATED_IMAGES
    ImageFile.LOAD_TRUNCATED_IMAGES = False  # if True, Pillow fills missing pixels with grey
    try:
        if picture.format == "PNG" and (stream := getattr(picture, "fp", None)):
            _check_chunks(stream)
        picture.load()
    except Exception as error:  # Pillow's decoders have no common exception
        raise LDLError(_reason(error)) from error
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = user_setting
    return picture


def _check_chunks(stream: IO[bytes]) -> None:
    """Raise LDLError unless the checksums of a PNG hold up to its end; Pillow does not compare those of pixels."""
    start, kind = stream.tell(), b""
    stream.seek(len(PNG_SIGNATURE))
    while kind != b"IEND":
        if len(header := stream.read(8)) < 8:
            raise LDLError("it is truncated, its last part IEND is missing")
        length, kind = struct.unpack(">I4s", header)
        checksum = zlib.crc32(kind)
        unread = length
        while unread:
            size = min(READ_BYTES, unread)
            checksum = zlib.crc32(stream.read(size), checksum)
            unread -= size
        if stream.read(4) != checksum.to_bytes(4):
            raise LDLError(
                f"it is damaged or truncated, the checksum of its part {kind.decode('ascii', 'replace')} is wrong"
            )
    stream.seek(start)


def _reason(error: Exception) -> str:
    return " ".join((str(error) or type(error).__name__).split())[:160]
