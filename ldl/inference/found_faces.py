"""Pictures as a model of faces takes them, where a detector finds the faces: a row a face."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from ldl.data.faces.detection.face import Detector
from ldl.data.faces.detection.rows import face_columns
from ldl.errors import LDLError
from ldl.inference.inputs import Inputs
from ldl.inference.pictures import list_sources, read


def found_faces(given: Any, preprocessing: dict[str, Any], detector: Detector) -> Inputs:
    """Crops of all faces of pictures, placed as those of training were.

    Args:
        given: One picture or several: see ``list_sources``.
        preprocessing: What a checkpoint says of crops: ``crop_size``, ``margin``, ``alignment`` and ``transforms``.
        detector: What finds the faces.

    Raises:
        LDLError: no pictures, none that shows a face, or crops that cannot be made.
    """
    from ldl.data.faces.align import crop
    from ldl.data.faces.transforms import Pipeline, check_crops

    sources, names = list_sources(given)
    size, margin = check_crops(preprocessing)
    pipeline, alignment = Pipeline.from_dict(preprocessing["transforms"]), preprocessing.get("alignment")
    faces, crops = [], []
    for source in sources:
        # A photograph is read once, and only its crops are kept.
        picture = read(source)
        faces.append(detector(picture))
        crops += [crop(picture, face.anchor(alignment), size, margin) for face in faces[-1]]
    if not crops:
        raise LDLError(f"{detector.name} finds no face in any of {len(sources)} pictures; leave the detector out")

    def make(rows: np.ndarray) -> Tensor:
        return pipeline.batch([crops[row] for row in rows], rows)

    picture_of = np.repeat(np.arange(len(sources)), [len(found) for found in faces])
    facts = {"picture": picture_of, **face_columns(faces)}
    return Inputs(len(crops), make, None if names is None else [names[number] for number in picture_of], facts)
