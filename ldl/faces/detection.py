"""Find the faces in a list of images, cache them, and make records of them."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ldl.collective import process_rank
from ldl.data.cache import retried
from ldl.data.images.crops import file_state, readable
from ldl.data.images.records import ImageRecords
from ldl.data.pictures import read_picture
from ldl.errors import LDLError, some
from ldl.faces.detectors import Detector, Face
from ldl.faces.lists import BOX
from ldl.progress import track

_DETECTION_VERSION = 1
"""Part of the cache key: raise it when the same images give other faces."""


@dataclass(frozen=True)
class Detections:
    """Faces of a list of images.

    Attributes:
        faces: The faces of every image, from left to right.
        failed: By row, why an image could not be read.
    """

    faces: list[list[Face]]
    failed: dict[int, str]

    @property
    def without(self) -> list[int]:
        """Rows of the readable images without a face."""
        return [row for row, faces in enumerate(self.faces) if not faces and row not in self.failed]


def find_faces(paths: Sequence[Path], detector: Detector, cache: Path) -> Detections:
    """Detect the faces of all images, or take them from the cache.

    The key covers the detector and every image's path, size and modification time. Images that an earlier run could not
    read are tried again. Raises LDLError if the cache cannot be written.
    """
    digest = hashlib.sha256(f"{_DETECTION_VERSION} {detector.key}".encode())
    for path in paths:
        digest.update(f"|{path.resolve()} {file_state(path)}".encode())
    file = cache / "detected" / f"{digest.hexdigest()[:20]}.json"

    def detect(rows: Sequence[int]) -> bytes:
        faces = _parsed(file.read_bytes()).faces if len(rows) < len(paths) else [[] for _ in paths]
        return _detect(paths, detector, rows, faces)

    with retried(file, len(paths), detect, lambda content: list(_parsed(content).failed)):
        return _parsed(file.read_bytes())


def face_rows(
    folder: Path, files: list[str], detector: Detector, alignment: str | None, cache: Path
) -> tuple[ImageRecords, dict[str, np.ndarray]]:
    """Make one record per face. Unreadable images and images without a face are printed and have no record.

    Args:
        folder: Folder that ``files`` are relative to.
        files: The images.
        detector: The detector.
        alignment: How the faces of the training set were located; see :meth:`Face.anchor`.
        cache: Root of the cache.

    Returns:
        The records, and their columns; see :func:`face_columns`.

    Raises:
        LDLError: No image can be read, or no image has a face.
    """
    detected = find_faces([folder / file for file in files], detector, cache)
    rows = readable(detected.failed, len(files))
    faces = [detected.faces[file] for file in rows]
    count = sum(map(len, faces))
    if not count:
        raise LDLError(f"{detector.name} finds no face in any of {len(rows)} images; leave the detector out")
    if process_rank() == 0:
        without = [files[row] for row in detected.without]
        more = f"; none in {len(without)}, which have no row: {some(without)}" if without else ""
        print(f"{detector.name}: {count:,} faces in {len(rows) - len(without):,} images{more}", flush=True)
    anchors = [face.anchor(alignment) for each in faces for face in each]
    names = [files[file] for file, each in zip(rows, faces) for _ in each]
    return ImageRecords(folder, names, np.full(count, np.nan), anchors=anchors), face_columns(faces)


def face_columns(faces: Sequence[Sequence[Face]]) -> dict[str, np.ndarray]:
    """Return the columns ``face`` (from 1, from left to right in each image), ``x0, y0, x1, y1`` and ``confidence``."""
    boxes = np.array([face.box for each in faces for face in each]).reshape(-1, 4)
    numbers = [number for each in faces for number in range(1, len(each) + 1)]
    confidence = np.array([face.confidence for each in faces for face in each])
    return {"face": np.array(numbers), **dict(zip(BOX, boxes.T)), "confidence": confidence}


def one_face_each(
    records: ImageRecords, detector: Detector, alignment: str | None, cache: Path, skip: bool
) -> ImageRecords:
    """Return the records with the largest face of each image; images with several faces are printed.

    Unreadable images keep their record, for the error of the reader.

    Args:
        records: The images.
        detector: The detector.
        alignment: See :meth:`Face.anchor`.
        cache: Root of the cache.
        skip: Leave out images without a face, and print them.

    Raises:
        LDLError: An image has no face, unless ``skip``, or no image has one.
    """
    detected = find_faces(records.paths(), detector, cache)
    without = [records.files[row] for row in detected.without]
    several = [records.files[row] for row, faces in enumerate(detected.faces) if len(faces) > 1]
    if without and (not skip or len(without) == len(records)):
        raise LDLError(
            f"{detector.name} finds no face in {len(without)} of {len(records)} images: {some(without)}; take them out "
            "of the list, or leave them out with --data.skip_unreadable true"
        )
    if process_rank() == 0:
        if several:
            print(f"{len(several):,} images show several faces, the largest is taken: {some(several)}")
        if without:
            print(f"left out {len(without):,} images without a face: {some(without)}", flush=True)
    largest = [max(faces, key=lambda face: face.area) if faces else None for faces in detected.faces]
    placed = replace(records, anchors=[None if face is None else face.anchor(alignment) for face in largest])
    return placed.take(np.setdiff1d(np.arange(len(records)), detected.without))


def _detect(paths: Sequence[Path], detector: Detector, rows: Sequence[int], faces: list[list[Face]]) -> bytes:
    """Detect the faces of the images ``rows``; ``faces`` holds the known faces of all images."""
    failed: dict[int, str] = {}
    print(f"{detector.name} looks for faces in {len(rows):,} images", flush=True)
    for row in track(rows, len(rows), "finding faces", sys.stdout.isatty()):
        path = paths[row]
        try:
            faces[row] = detector(read_picture(path))
        except LDLError as error:
            failed[row] = str(error) if str(path) in str(error) else f"{path}: {error}"
    return json.dumps({"faces": [list(map(_flat, each)) for each in faces], "failed": failed}).encode()


def _flat(face: Face) -> list[float]:
    """Return box, confidence and, if they are known, landmarks."""
    points = [] if face.points is None else face.points.ravel().tolist()
    return [*face.box, face.confidence, *points]


def _face_of(numbers: list[float]) -> Face:
    """Return the face of :func:`_flat`."""
    points = np.array(numbers[5:]).reshape(5, 2) if len(numbers) > 5 else None
    return Face(np.array(numbers[:4]), numbers[4], points)


def _parsed(content: bytes) -> Detections:
    entries = json.loads(content)
    faces = [list(map(_face_of, each)) for each in entries["faces"]]
    return Detections(faces, {int(row): reason for row, reason in entries["failed"].items()})
