"""The parts of a .mat file of version 5, held against the format before scipy reads it: damaged tags crash its reader.

MathWorks' "MAT-File Format", level 5: an element is a tag (kind and bytes) and its data; a variable is an element of
elements: flags, dimensions and name, then numbers, or further variables.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ldl.errors import LDLError

HEADER = 128
INT8, INT32, UINT32, MATRIX, COMPRESSED = 1, 5, 6, 14, 15
SIZES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8}
"""Bytes of a number, by the kind of an element."""
LETTERS = {*SIZES, 16, 17, 18}
CELL, STRUCTURE, OBJECT, CHARACTERS, SPARSE, FIRST_NUMBERS, LAST_NUMBERS = 1, 2, 3, 4, 5, 6, 15
DEEPEST = 20


class Element(NamedTuple):
    """Kind and data of an element."""

    kind: int
    data: memoryview


class _Damaged(Exception):
    """What is wrong, in words."""


def order_of(header: bytes) -> str:
    """Byte order of a .mat file of version 5 that begins with ``header``, as struct has it; empty for all others."""
    if len(header) < HEADER or 0 in header[:4]:
        return ""  # version 4, which scipy reads in Python
    if header[124 + (header[126] == ord("I"))] != 1:
        return ""  # version 7.3, or none: scipy says so
    return "<" if header[126:HEADER] == b"IM" else ">"


def check_elements(path: Path) -> None:
    """Raise LDLError for a .mat file of version 5 whose elements are not of their kind, or not inside of each other."""
    content = memoryview(path.read_bytes())
    if not (order := order_of(bytes(content[:HEADER]))):
        return
    at = HEADER
    try:
        while at < len(content):
            kind, size = struct.unpack_from(f"{order}II", content, at)
            data, at = content[at + 8 : at + 8 + size], at + 8 + size
            if at > len(content):
                raise _Damaged(f"a variable claims {size} bytes, more than there are")
            if kind == COMPRESSED:
                (kind, data), *_ = _elements(memoryview(zlib.decompress(data)), order)
            _check_variable(Element(kind, data), order, 0)
    except (_Damaged, struct.error, zlib.error, ValueError) as error:
        raise LDLError(f"{path} cannot be read as .mat, it is damaged: {error}; take another copy") from None


def _elements(body: memoryview, order: str) -> Iterator[Element]:
    at = 0
    while at < len(body):
        (word,) = struct.unpack_from(f"{order}I", body, at)
        if word >> 16:  # of at most four bytes, which stand in the tag
            kind, size, start, after = word & 0xFFFF, word >> 16, at + 4, at + 8
            if size > 4:
                raise _Damaged(f"a short element claims {size} bytes")
        else:
            (size,) = struct.unpack_from(f"{order}I", body, at + 4)
            kind, start, after = word, at + 8, at + 8 + size + -size % 8
        if start + size > len(body):
            raise _Damaged(f"an element claims {size} bytes, more than there are")
        yield Element(kind, body[start : start + size])
        at = after


def _check_variable(variable: Element, order: str, depth: int) -> None:
    _wanted(variable, {MATRIX}, "variable")
    if not variable.data:
        return
    if depth > DEEPEST:
        raise _Damaged(f"variables lie more than {DEEPEST} deep in each other")
    parts = _elements(variable.data, order)
    flags = _next(parts, {UINT32}, "flags")
    (word, _) = struct.unpack(f"{order}II", flags)
    dimensions = [number for (number,) in struct.iter_unpack(f"{order}i", _next(parts, {INT32}, "dimensions"))]
    if any(number < 0 for number in dimensions):
        raise _Damaged(f"dimensions {dimensions} are below 0")
    _next(parts, {INT8}, "name")
    kind, pieces, count = word & 0xFF, 1 + (word >> 11 & 1), math.prod(dimensions)
    if FIRST_NUMBERS <= kind <= LAST_NUMBERS:
        for _ in range(pieces):
            part = _wanted(next(parts, None), set(SIZES), "numbers")
            if len(part.data) != count * SIZES[part.kind]:
                raise _Damaged(f"{len(part.data)} bytes do not hold {count} numbers")
    elif kind == CHARACTERS:
        _next(parts, LETTERS, "letters")
    elif kind == SPARSE:
        for _ in range(2 + pieces):
            _next(parts, set(SIZES), "numbers of a sparse matrix")
    elif kind in (CELL, STRUCTURE, OBJECT):
        for _ in range(count * _fields(parts, kind, order)):
            _check_variable(_wanted(next(parts, None), {MATRIX}, "variable"), order, depth + 1)
    else:
        raise _Damaged(f"a variable is of class {kind}; numbers, texts, cells and structures are read")


def _fields(parts: Iterator[Element], kind: int, order: str) -> int:
    """How many fields each entry has; 1 in cells."""
    if kind == CELL:
        return 1
    if kind == OBJECT:
        _next(parts, {INT8}, "class name")
    (longest,) = struct.unpack(f"{order}i", _next(parts, {INT32}, "length of names"))
    names = _next(parts, {INT8}, "names of fields")
    if longest <= 0 or len(names) % longest:
        raise _Damaged(f"{len(names)} bytes are no names of {longest}")
    return len(names) // longest


def _next(parts: Iterator[Element], kinds: set[int], what: str) -> memoryview:
    return _wanted(next(parts, None), kinds, what).data


def _wanted(element: Element | None, kinds: set[int], what: str) -> Element:
    if element is None or element.kind not in kinds:
        raise _Damaged(f"there are no {what}" if element is None else f"{what} of an unknown kind, {element.kind}")
    return element
