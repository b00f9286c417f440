"""Loose pictures: a row a face, or a face a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ldl.collective import process_rank
from ldl.data.faces.crops import readable
from ldl.data.faces.detection.face import Detector, Face
from ldl.data.faces.detection.search import find_faces, some_names
from ldl.data.faces.records import FaceRecords
from ldl.errors import LDLError

MEND = "take them out of the list, or leave them out with --data.skip_unreadable true"

BOX = ("x0", "y0", "x1", "y1")


def face_rows(
    folder: Path, files: list[str], detector: Detector, alignment: str | None, cache: Path
) -> tuple[FaceRecords, dict[str, np.ndarray]]:
    """A record of every face in some pictures, and what is known of it.

    Pictures that cannot be read, and those in which no face is found, are named and have no row.

    Args:
        folder: What the files are relative to.
        files: The pictures.
        detector: What finds the faces.
        alignment: What placed the faces of training, see ``Face.anchor``.
        cache: Where what was found is kept.

    Returns:
        The records, and the columns ``face`` (from 1, from left to right in each picture), ``x0, y0, x1, y1`` (its
        box, in pixels of the picture turned upright) and ``confidence``.

    Raises:
        LDLError: no picture can be read, or none shows a face.
    """
    found = find_faces([folder / file for file in files], detector, cache)
    there = readable(found.failed, len(files))
    faces = [found.faces[file] for file in there]
    count = sum(map(len, faces))
    if not count:
        raise LDLError(f"{detector.name} finds no face in any of {len(there)} pictures; leave the detector out")
    if process_rank() == 0:
        without = [files[number] for number in found.without]
        more = f"; none in {len(without)}, which have no row: {some_names(without)}" if without else ""
        print(f"{detector.name}: {count:,} faces in {len(there) - len(without):,} pictures{more}", flush=True)
    anchors = [face.anchor(alignment) for picture in faces for face in picture]
    names = [files[file] for file, picture in zip(there, faces) for _ in picture]
    return FaceRecords(folder, names, np.full(count, np.nan), anchors=anchors), face_columns(faces)


def face_columns(faces: Sequence[Sequence[Face]]) -> dict[str, np.ndarray]:
    """What is known of the faces of several pictures: see :func:`face_rows`."""
    boxes = np.array([face.box for picture in faces for face in picture]).reshape(-1, 4)
    numbers = [number for picture in faces for number in range(1, len(picture) + 1)]
    confidence = np.array([face.confidence for picture in faces for face in picture])
    return {"face": np.array(numbers), **dict(zip(BOX, boxes.T)), "confidence": confidence}


def one_face_each(
    records: FaceRecords, detector: Detector, alignment: str | None, cache: Path, skip: bool
) -> FaceRecords:
    """The records with what places the largest face of each picture; pictures with several faces are named.

    Raises LDLError for pictures without a face, unless they are to be left out: then they are named. What cannot be
    read keeps its row, for whoever reads it.
    """
    found = find_faces(records.paths(), detector, cache)
    without = [records.files[number] for number in found.without]
    several = [records.files[number] for number, faces in enumerate(found.faces) if len(faces) > 1]
    if without and (not skip or len(without) == len(records)):
        raise LDLError(
            f"{detector.name} finds no face in {len(without)} of {len(records)} pictures: {some_names(without)}; {MEND}"
        )
    if process_rank() == 0:
        if several:
            print(f"{len(several):,} pictures show several faces, the largest is taken: {some_names(several)}")
        if without:
            print(f"left out {len(without):,} pictures without a face: {some_names(without)}", flush=True)
    largest = [max(faces, key=lambda face: face.area) if faces else None for faces in found.faces]
    placed = replace(records, anchors=[None if face is None else face.anchor(alignment) for face in largest])
    return placed.take(np.setdiff1d(np.arange(len(records)), found.without))
