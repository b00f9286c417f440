"""One object for inference, from a checkpoint alone."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ldl.collective import current_collective
from ldl.data.faces.detection.choice import find_detector
from ldl.data.faces.detection.face import Detector
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.inference import pictures
from ldl.inference.found_faces import found_faces
from ldl.inference.inputs import Inputs, prepared
from ldl.inference.predictions import Predictions
from ldl.inference.rows import read_instances
from ldl.labels import LabelSpace
from ldl.methods.evidence import Evidence
from ldl.task import Task


class Predictor:
    """Predicts what a user has, as it is: scaling, crop, decoder and temperature are those of training.

    It takes no gradients, and computes in float32, whatever precision the training had; only a head that was fitted in
    one go in float64 goes on in it. The columns of tables are found by the names that they had in training, in any
    order, and others are left alone. ``Task(inputs)``, in contrast, is the bare network.

    Args:
        task: A trained task; it is put into evaluation mode, moved to ``device``, and its weights become float32, but
            for those of float64 in a head that is fitted in one go.
        device: Where to compute, such as ``cpu`` or ``cuda``.
        batch_size: Instances at a time.

    Raises:
        LDLError: the task is not built, there is no such device, or ``batch_size`` is below 1.
    """

    def __init__(self, task: Task, device: str | torch.device = "cpu", batch_size: int = 256) -> None:
        if task.input_shape is None:
            raise LDLError("Predictor needs a trained task; train it first, or use Predictor.from_checkpoint")
        if type(batch_size) is not int or batch_size < 1:
            raise LDLError(f"batch_size {batch_size!r} of Predictor must be at least 1")
        try:
            self.device = torch.device(device)
            self.task = task.eval().to(self.device)
        except (RuntimeError, AssertionError) as error:  # torch's for unknown names, and for those not compiled in
            reason = " ".join(str(error).split())[:160]
            raise LDLError(f"device {str(device)!r} cannot be used: {reason}; take cpu") from error
        task.backbone.to(torch.float32)
        if isinstance(task.head, FittedHead):  # as precise as its problem wants
            task.head._apply(_at_least_float32)
        else:
            task.head.to(torch.float32)
        self.batch_size = batch_size
        self._preprocessing = task.preprocessing or {}
        if len(task.input_shape) == 1 and not self._preprocessing:
            warnings.warn("nothing is known of the scaling of features: rows are taken as scaled", stacklevel=2)

    @classmethod
    def from_checkpoint(cls, path: str | Path, device: str | torch.device = "cpu", batch_size: int = 256) -> Predictor:
        """The predictor of a checkpoint; nothing is unpickled. Raises LDLError: see ``Task.load_from_checkpoint``."""
        return cls(Task.load_from_checkpoint(path), device, batch_size)

    @property
    def labels(self) -> LabelSpace:
        """What the labels of the distributions mean."""
        return self.task.labels

    @torch.no_grad()
    def predict(
        self, given: Any, faces: pictures.Faces = None, detector: str | Path | Detector | None = None
    ) -> Predictions:
        """Predict instances.

        Args:
            given: Of a model of rows, as they are in the table, not scaled: an array or tensor (N, F), a data frame of
                pandas, or a .csv, .parquet, .npz or .mat file, with labels or without. Of a model of bags: a list of
                arrays (J, F), an array (N, J, F) with NaN where a bag has fewer instances, or a frame or file with a
                column ``bag``. Of a model of pictures: a file, a picture of PIL or an array (H, W, 3) uint8, or a
                list of these, a folder, an array (N, H, W, 3) or a tensor (N, 3, H, W) uint8. Of any other model: an
                array (N, ...) of the inputs of training.
            faces: Where the face is in each picture, (4, 2) corners of a box or (5, 2) landmarks, in pixels, or None;
                without, pictures are taken whole.
            detector: What finds the faces in each picture: ``mtcnn``, an ONNX file, or what ``find_detector`` made of
                either. Then every face is a row, and pictures without a face have none: see ``Predictions.facts``.

        Returns:
            A row an instance, in the order given.

        Raises:
            LDLError: another shape or kind of input, a column that is missing, or NaN that the head does not take; no
                picture shows a face.
        """
        inputs = self._inputs(given, faces, detector)
        starts = range(0, inputs.size, self.batch_size)
        parts = [self._batch(inputs, np.arange(k, min(k + self.batch_size, inputs.size))) for k in starts]
        self.task.watch.settle(self.device, current_collective())
        if self.task.gives_maps:
            pictures.check_one_size([part["prediction"][0] for part in parts])
        distribution, value = (
            np.concatenate([part[name] for part in parts]) if name in parts[0] else None
            for name in ("prediction", "predicted_value")
        )
        assert distribution is not None
        return Predictions(distribution, value, self.labels, inputs.names, self.task.calibration, inputs.facts)

    __call__ = predict

    @torch.no_grad()
    def evidence(
        self, given: Any, row: int = 0, faces: pictures.Faces = None, detector: str | Path | Detector | None = None
    ) -> Evidence | None:
        """What the prediction of one instance rests on: training rows or leaves; None where the head cannot tell.

        Args:
            given: As for :meth:`predict`, and so are the others.
            row: Which row of the predictions.

        Raises:
            LDLError: as :meth:`predict`, or there is no such row.
        """
        inputs = self._inputs(given, faces, detector)
        if not 0 <= row < inputs.size:
            raise LDLError(f"row {row} must be in 0..{inputs.size - 1}, the rows of the predictions")
        features = self.task.eval().features({"input": inputs.make(np.array([row])).to(self.device)})
        return self.task.head.evidence(features[0])

    def _batch(self, inputs: Inputs, index: np.ndarray) -> dict[str, np.ndarray]:
        batch = {"input": inputs.make(index), "index": torch.from_numpy(index), "weight": torch.ones(len(index))}
        batch = {name: column.to(self.device) for name, column in batch.items()}
        found = self.task.eval().predict_step(batch, 0)
        return {name: column.float().cpu().numpy() for name, column in found.items() if name != "index"}

    def _inputs(self, given: Any, faces: pictures.Faces, detector: str | Path | Detector | None) -> Inputs:
        shape, known = self.task.input_shape, self._preprocessing
        assert shape is not None
        if "crop_size" in known:
            if detector is None:
                return pictures.faces(given, known, faces)
            if faces is not None:
                raise LDLError("faces says where the faces are; leave it out, or detector")
            return found_faces(given, known, find_detector(detector) if isinstance(detector, str | Path) else detector)
        for name, said in (("faces", faces), ("detector", detector)):
            if said is not None:
                raise LDLError(
                    f"the model was not trained on crops of pictures, so that {name} has no meaning; leave it out"
                )
        if self.task.gives_maps:
            return pictures.whole(given)
        if len(shape) == 1 or "scaling" in known:
            return read_instances(given, shape, known, self.task.head.takes_missing)
        return prepared(given, shape, known.get("dtype"), self.task.head.takes_bags)


def _at_least_float32(weights: Tensor) -> Tensor:
    return weights.float() if weights.dtype in (torch.float16, torch.bfloat16) else weights
