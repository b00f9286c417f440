"""Check the unpacked size of archives, and the form of .mat and .npy files, before a library reads them."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from numpy.lib.format import read_array_header_1_0, read_array_header_2_0, read_magic

from ldl.errors import ANY_ERROR, LDLError, explaining

ALWAYS_ACCEPTED_BYTES = 2**30
"""Unpacked size that any archive may have, in bytes."""
MAX_UNPACKED_RATIO = 200
"""Largest ratio of unpacked to packed size above ``ALWAYS_ACCEPTED_BYTES``; sparse tables shrink to a hundredth."""

HEADER = 128
"""Bytes of the header of a .mat file of version 5."""
INT8, INT32, UINT32, MATRIX, COMPRESSED = 1, 5, 6, 14, 15
SIZES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8}
"""Bytes of a number, by the kind of its element."""
LETTERS = {*SIZES, 16, 17, 18}
"""Kinds of elements that hold text: numbers, and UTF-8, UTF-16 and UTF-32."""
CELL, STRUCTURE, OBJECT, CHARACTERS, SPARSE, FIRST_NUMBERS, LAST_NUMBERS = 1, 2, 3, 4, 5, 6, 15
DEEPEST = 20
"""Largest depth of nested variables."""
SIZES_4 = (8, 4, 4, 2, 2, 1)
"""Bytes of a number in version 4 of the format, by its kind there."""


def most_unpacked(size: int, always: int | None = None) -> int:
    """Return the largest unpacked size of a file of ``size`` bytes.

    ``always`` is the number of bytes that is accepted for a file of any size.
    """
    return max(ALWAYS_ACCEPTED_BYTES if always is None else always, MAX_UNPACKED_RATIO * size)


def check_archive(path: Path, packed: bool = True) -> None:
    """Check the unpacked sizes that a zip file claims.

    Args:
        path: The file. A file that is not a zip archive is left to its reader.
        packed: Whether members may be compressed; torch never compresses them.

    Raises:
        LDLError: The archive would unpack to far more than its size.
    """
    errors = (zipfile.BadZipFile, ValueError, NotImplementedError)
    with explaining(f"{path} cannot be read as an archive", errors=errors):
        if not zipfile.is_zipfile(path):
            return
        with zipfile.ZipFile(path) as archive:
            claimed = sum(member.file_size for member in archive.infolist())
    check_unpacked(path, claimed, None if packed else path.stat().st_size)


def check_unpacked(path: Path, claimed: int, most: int | None = None) -> None:
    """Raise LDLError for a file that claims more than ``most`` bytes, by default far more than its size."""
    if claimed > (most_unpacked(path.stat().st_size) if most is None else most):
        size = path.stat().st_size
        raise LDLError(f"{path} has {size} bytes and unpacks to {claimed} or more; give another file")


def check_npy(name: Path | str, stream: IO[bytes], size: int) -> None:
    """Check the header of a .npy file before numpy takes memory for the shape in it.

    Args:
        name: The file, and the member of an archive, for messages.
        stream: The file from its start.
        size: Its bytes.

    Raises:
        LDLError: The header is damaged, or claims objects, or more numbers than the file holds.
    """
    readers = {(1, 0): read_array_header_1_0, (2, 0): read_array_header_2_0}
    # Python's parser of the header raises errors of any type, and MemoryError if brackets nest too deeply.
    with explaining(f"{name} cannot be read as .npy", errors=ANY_ERROR):
        if (version := read_magic(stream)) not in readers:
            raise LDLError(f"{name} is .npy of version {version}; save numbers, with np.save")
        shape, _, dtype = readers[version](stream)
    if dtype.hasobject:
        raise LDLError(
            f"{name} is an array of Python objects, which only pickle reads, and pickle may run code; save numbers "
            "with .astype(float), names with .astype(str)"
        )
    claimed, held = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if min(shape, default=0) < 0 or claimed > held:
        raise LDLError(
            f"{name} cannot be read as .npy: it claims numbers of shape {shape}, {claimed} bytes, and holds {held}; "
            "take another copy"
        )


class Element(NamedTuple):
    """Kind and data of an element."""

    kind: int
    data: memoryview


class _Damaged(Exception):
    """A defect of the file."""


def check_mat(path: Path) -> None:
    """Check the elements of a .mat file of version 5 before scipy reads it: damaged tags crash scipy's reader.

    MathWorks' "MAT-File Format", level 5: an element is a tag (kind and number of bytes) and its data. A variable is an
    element that holds elements: flags, dimensions and name, then numbers or further variables. Of version 4 only the
    claimed sizes are compared with the file. Other versions are left to scipy.

    Raises:
        LDLError: Elements have a wrong kind or do not nest, or the file unpacks to far more than its size.
    """
    content = memoryview(path.read_bytes())
    if 0 in content[:4]:
        _check_version_4(path, content)
    if not (order := _byte_order(bytes(content[:HEADER]))):
        return
    at, left = HEADER, most_unpacked(len(content))
    errors = (_Damaged, struct.error, zlib.error, ValueError)
    with explaining(f"{path} cannot be read as .mat, it is damaged", "take another copy", errors):
        while at < len(content):
            kind, size = struct.unpack_from(f"{order}II", content, at)
            data, at = content[at + 8 : at + 8 + size], at + 8 + size
            if at > len(content):
                raise _Damaged(f"a variable claims {size} bytes, more than the file has")
            if kind == COMPRESSED:
                unpacked = zlib.decompressobj().decompress(data, left + 1)
                check_unpacked(path, len(unpacked), left)
                left -= len(unpacked)
                (kind, data), *_ = _elements(memoryview(unpacked), order)
            _check_variable(Element(kind, data), order, 0)


def _byte_order(header: bytes) -> str:
    """Return the byte order for struct, or an empty string for files that are not of version 5."""
    if len(header) < HEADER or 0 in header[:4]:
        return ""  # version 4, whose reader in scipy does not crash
    # The high byte of the version, 0x0100, is the second one if the order mark "IM" says little-endian.
    if header[124 + (header[126] == ord("I"))] != 1:
        return ""  # version 7.3 or unknown, which scipy reports
    return "<" if header[126:HEADER] == b"IM" else ">"


def _check_version_4(path: Path, content: memoryview) -> None:
    """Raise LDLError if a variable of version 4 claims more bytes than the file has; scipy would allocate them."""
    start = 0
    while start < len(content):
        header = bytes(content[start : start + 20]).ljust(20, b"\0")
        order = "<" if 0 <= struct.unpack("<i", header[:4])[0] <= 5000 else ">"
        kind, rows, columns, is_complex, letters = struct.unpack(f"{order}5i", header)
        # The decimal digits of ``kind`` are byte order, 0, kind of numbers, and kind of matrix (2 is sparse).
        number, sparse = kind // 10 % 10, kind % 10 == 2
        size = SIZES_4[number] * rows * columns if number < len(SIZES_4) else -1
        end = start + 20 + letters + size * (1 + (is_complex == 1 and not sparse))
        if min(rows, columns, letters, size) < 0 or end > len(content):
            raise LDLError(
                f"{path} cannot be read as .mat, it is damaged: a variable claims {rows} by {columns} numbers, more "
                "than the file has; take another copy"
            )
        start = end


def _elements(body: memoryview, order: str) -> Iterator[Element]:
    position = 0
    while position < len(body):
        (word,) = struct.unpack_from(f"{order}I", body, position)
        if word >> 16:  # at most four bytes, within the tag
            kind, size, start, after = word & 0xFFFF, word >> 16, position + 4, position + 8
            if size > 4:
                raise _Damaged(f"a short element claims {size} bytes")
        else:
            (size,) = struct.unpack_from(f"{order}I", body, position + 4)
            kind, start, after = word, position + 8, position + 8 + size + -size % 8
        if start + size > len(body):
            raise _Damaged(f"an element claims {size} bytes, more than its variable has")
        yield Element(kind, body[start : start + size])
        position = after


def _check_variable(variable: Element, order: str, depth: int) -> None:
    _checked(variable, {MATRIX}, "variable")
    if not variable.data:
        return
    if depth > DEEPEST:
        raise _Damaged(f"variables lie more than {DEEPEST} deep in each other")
    parts = _elements(variable.data, order)
    flags = _next_data(parts, {UINT32}, "flags")
    (word, _) = struct.unpack(f"{order}II", flags)
    dimensions = [number for (number,) in struct.iter_unpack(f"{order}i", _next_data(parts, {INT32}, "dimensions"))]
    if any(number < 0 for number in dimensions):
        raise _Damaged(f"dimensions {dimensions} are below 0")
    _next_data(parts, {INT8}, "name")
    # Bit 11 is set for complex numbers, which have an imaginary piece too.
    kind, pieces, count = word & 0xFF, 1 + (word >> 11 & 1), math.prod(dimensions)
    if FIRST_NUMBERS <= kind <= LAST_NUMBERS:
        for _ in range(pieces):
            element = _checked(next(parts, None), set(SIZES), "numbers")
            if len(element.data) != count * SIZES[element.kind]:
                raise _Damaged(f"{len(element.data)} bytes do not hold {count} numbers")
    elif kind == CHARACTERS:
        _next_data(parts, LETTERS, "letters")
    elif kind == SPARSE:
        for _ in range(2 + pieces):
            _next_data(parts, set(SIZES), "numbers of a sparse matrix")
    elif kind in (CELL, STRUCTURE, OBJECT):
        for _ in range(count * _fields(parts, kind, order)):
            _check_variable(_checked(next(parts, None), {MATRIX}, "variable"), order, depth + 1)
    else:
        raise _Damaged(f"a variable is of class {kind}; numbers, texts, cells and structures are read")


def _fields(parts: Iterator[Element], kind: int, order: str) -> int:
    """Read the names of the fields, and return the number of fields of each entry; 1 for a cell array."""
    if kind == CELL:
        return 1
    if kind == OBJECT:
        _next_data(parts, {INT8}, "class name")
    (longest,) = struct.unpack(f"{order}i", _next_data(parts, {INT32}, "length of names"))
    names = _next_data(parts, {INT8}, "names of fields")
    if longest <= 0 or len(names) % longest:
        raise _Damaged(f"{len(names)} bytes are not names of {longest} bytes each")
    return len(names) // longest


def _next_data(parts: Iterator[Element], kinds: set[int], content: str) -> memoryview:
    return _checked(next(parts, None), kinds, content).data


def _checked(element: Element | None, kinds: set[int], content: str) -> Element:
    if element is None or element.kind not in kinds:
        reason = f"there are no {content}" if element is None else f"{content} of an unknown kind, {element.kind}"
        raise _Damaged(reason)
    return element
