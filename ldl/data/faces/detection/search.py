"""The faces of a list of pictures, found once and kept on disk under a key of what they were found in."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock

from ldl.checkpoint import replacing
from ldl.data.cache import of_earlier_run
from ldl.data.faces.detection.face import Detector, Face
from ldl.data.pictures import read_picture
from ldl.errors import LDLError
from ldl.progress import track

_VERSION = 1
"""Part of the key: raise it when the same pictures give other faces."""
FEW = 5
"""Pictures that are named in a line."""


@dataclass(frozen=True)
class Found:
    """What a detector found.

    Attributes:
        faces: Of every picture, from left to right.
        failed: Why each unreadable picture could not be read, by its number.
    """

    faces: list[list[Face]]
    failed: dict[int, str]

    @property
    def without(self) -> list[int]:
        """Numbers of the pictures that could be read and show no face."""
        return [number for number, faces in enumerate(self.faces) if not faces and number not in self.failed]


def find_faces(paths: Sequence[Path], detector: Detector, cache: Path) -> Found:
    """The faces of all pictures, from the cache where it has them.

    The key is made of the detector and every picture's path, length and time of change. Pictures that an earlier run
    could not read are tried again. Raises LDLError.
    """
    file = cache / "detected" / f"{_key(paths, detector)}.json"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(file.with_suffix(".lock")):
            if not file.is_file():
                print(f"{detector.name} looks for faces in {len(paths):,} pictures", flush=True)
                _write(file, _search(paths, detector, range(len(paths)), [[] for _ in paths]))
            elif of_earlier_run(file) and (found := _read(file)).failed:
                _write(file, _search(paths, detector, list(found.failed), found.faces))
    except OSError as error:
        raise LDLError(f"the cache {file.parent} cannot be written: {error.strerror}; set LDL_CACHE") from error
    return _read(file)


def some_names(names: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    more = len(names) - FEW
    return ", ".join(names[:FEW]) + (f" and {more:,} more" if more > 0 else "")


def _search(paths: Sequence[Path], detector: Detector, numbers: Sequence[int], faces: list[list[Face]]) -> Found:
    """The faces of all pictures, where those of the pictures ``numbers`` are not known."""
    failed: dict[int, str] = {}
    for number in track(numbers, len(numbers), "finding faces", sys.stdout.isatty()):
        path = paths[number]
        try:
            faces[number] = detector(read_picture(path))
        except LDLError as error:
            failed[number] = str(error) if str(path) in str(error) else f"{path}: {error}"
    return Found(faces, failed)


def _write(file: Path, found: Found) -> None:
    faces = [[_pack(face) for face in picture] for picture in found.faces]
    with replacing(file) as stream:
        stream.write(json.dumps({"faces": faces, "failed": found.failed}).encode())


def _read(file: Path) -> Found:
    said = json.loads(file.read_text(encoding="utf-8"))
    faces = [[_unpack(numbers) for numbers in picture] for picture in said["faces"]]
    return Found(faces, {int(number): reason for number, reason in said["failed"].items()})


def _pack(face: Face) -> list[float]:
    points = [] if face.points is None else face.points.ravel().tolist()
    return [*face.box.tolist(), face.confidence, *points]


def _unpack(numbers: list[float]) -> Face:
    points = np.array(numbers[5:]).reshape(5, 2) if len(numbers) > 5 else None
    return Face(np.array(numbers[:4]), numbers[4], points)


def _key(paths: Sequence[Path], detector: Detector) -> str:
    digest = hashlib.sha256(f"{_VERSION} {detector.key}".encode())
    for path in paths:
        try:
            status = path.stat()
            seen = (status.st_size, status.st_mtime_ns)
        except OSError:
            seen = (-1, -1)
        digest.update(f"|{path.resolve()} {seen}".encode())
    return digest.hexdigest()[:20]
