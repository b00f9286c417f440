"""Predict new instances from a checkpoint alone."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ldl.batch import EVALUATED_ROWS, without_half
from ldl.collective import current_collective
from ldl.data.images.locators import Detector, find_locator
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.inference import pictures
from ldl.inference.inputs import Inputs, prepared, read_instances
from ldl.inference.predictions import Predictions
from ldl.inference.raters import choose_raters
from ldl.labels import LabelSpace
from ldl.methods.evidence import Evidence
from ldl.methods.torch_utils import library_defaults
from ldl.plugins import HUBS, load_registered
from ldl.task import Task


class Predictor:
    """Predict raw instances with the scaling, crop, decoder and temperature of training.

    Predictions have no gradients and are computed in float32, except that a fitted head in float64 keeps its precision.
    Columns of tables are found by their names in training, in any order; other columns are ignored. In contrast,
    ``Task(inputs)`` is the bare network.

    Args:
        task: A trained task. It is put into evaluation mode, moved to ``device`` and converted to float32, except
            float64 buffers of a fitted head.
        device: Device, such as ``cpu`` or ``cuda``.
        batch_size: Instances per batch. None takes 256, and more rows of a table where this is faster
            (``Head.rows_at_once``).

    Raises:
        LDLError: The task is not built.

    Examples:
        >>> import pandas as pd
        >>> from ldl import LDLRegressor, Predictor
        >>> X = pd.DataFrame({"year": [1990.0, 2000.0, 2010.0]})
        >>> regressor = LDLRegressor("MaxEnt").fit(X, pd.DataFrame({"no": [0.9, 0.5, 0.1], "yes": [0.1, 0.5, 0.9]}))
        >>> folder = regressor.predictor_.save_pretrained("model")
        >>> predictions = Predictor.from_pretrained(folder).predict(X)
        >>> predictions.distribution.round(1)
        array([[0.9, 0.1],
               [0.5, 0.5],
               [0.1, 0.9]], dtype=float32)
    """

    def __init__(self, task: Task, device: str | torch.device = "cpu", batch_size: int | None = None) -> None:
        if task.input_shape is None:
            raise LDLError("Predictor needs a trained task; train it first, or use Predictor.from_checkpoint")
        self.device = torch.device(device)
        self.task = task.eval().to(self.device)
        task.backbone.to(torch.float32)
        if isinstance(task.head, FittedHead):  # keeps float64
            task.head._apply(without_half)
        else:
            task.head.to(torch.float32)
        if task.raters is not None:
            task.raters.to(torch.float32)
        usual = self.task.head.rows_at_once if len(task.input_shape) == 1 else EVALUATED_ROWS
        self.batch_size = batch_size or usual
        self._preprocessing = task.preprocessing or {}
        self._source: Path | None = None
        if len(task.input_shape) == 1 and not self._preprocessing:
            warnings.warn("nothing is known of the scaling of features: rows are taken as scaled", stacklevel=2)

    @classmethod
    def from_checkpoint(
        cls, path: str | Path, device: str | torch.device = "cpu", batch_size: int | None = None
    ) -> Predictor:
        """Load a checkpoint without unpickling. Raises LDLError; see ``Task.load_from_checkpoint``."""
        predictor = cls(Task.load_from_checkpoint(path), device, batch_size)
        predictor._source = Path(path)
        return predictor

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        revision: str | None = None,
        device: str | torch.device = "cpu",
        batch_size: int | None = None,
        **options: Any,
    ) -> Predictor:
        """Load a folder of :meth:`save_pretrained`, or a repository of the Hugging Face hub.

        The model is read from the checkpoint, without unpickling and with the checks of :meth:`from_checkpoint`. A
        model of a later minor or major version of ldl, by its ``config.json``, gives a warning.

        Args:
            name: Folder, or name of a repository, such as ``user/model``.
            revision: Branch, tag or commit of a repository; None is its main branch.
            device: Device, such as ``cpu`` or ``cuda``.
            batch_size: Instances per batch; see the class.
            **options: Further arguments of ``huggingface_hub.hf_hub_download``, such as ``token``, ``cache_dir`` and
                ``endpoint``.

        Raises:
            LDLError: There is no such folder or repository, it has no checkpoint, or the checkpoint is damaged.
        """
        return cls.from_checkpoint(_hub().find_checkpoint(name, revision, options), device, batch_size)

    def save_pretrained(self, folder: str | Path, license: str | None = None) -> Path:
        """Write a folder for :meth:`from_pretrained`: ``model.ckpt``, ``README.md`` and ``config.json``.

        ``README.md`` is the model card with the hub's metadata. A predictor of the tested checkpoint of a run takes the
        run's data and results into it. ``config.json`` has labels, head, backbone, input and version.

        Args:
            folder: The folder; it is made, and files of these names are replaced.
            license: Licence of the model by its name on the hub, such as ``mit``; None refers to the card.

        Returns:
            The folder.

        Raises:
            LDLError: A file cannot be written.
        """
        folder = Path(folder).expanduser()
        _hub().save(self.task, folder, ".", license, self._source)
        return folder

    def push_to_hub(
        self,
        repo_id: str,
        license: str | None = None,
        private: bool | None = None,
        token: str | bool | None = None,
        endpoint: str | None = None,
    ) -> str:
        """Commit the files of :meth:`save_pretrained` to a repository of the Hugging Face hub.

        Args:
            repo_id: Name of the repository, such as ``user/model``; it is made if it does not exist.
            license: Licence of the model by its name on the hub, such as ``mit``; None refers to the card.
            private: Whether a new repository is private; None is the default of the account.
            token: Token of the hub; None takes that of ``hf auth login``.
            endpoint: Address of the hub; None takes the environment's ``HF_ENDPOINT``, or https://huggingface.co.

        Returns:
            URL of the commit.

        Raises:
            LDLError: The hub cannot be reached, or does not accept the name or the token.
        """
        url: str = _hub().push(self.task, repo_id, license, self._source, private, token, endpoint)
        return url

    @property
    def labels(self) -> LabelSpace:
        """Label space of the predictions."""
        return self.task.labels

    @library_defaults()
    @torch.no_grad()
    def predict(
        self,
        given: Any,
        faces: pictures.Points = None,
        detector: str | Path | Detector | None = None,
        rater: Any = None,
    ) -> Predictions:
        """Predict instances.

        Args:
            given: The instances. For a model of rows: unscaled features as an array or tensor (N, F), a data frame of
                pandas or polars, a table of pyarrow, or a .csv, .parquet, .npz or .mat file, with or without labels.
                For a model of bags: a list of arrays (J, F), an array (N, J, F) with NaN for missing instances, or a
                frame or file with a column ``bag``. For a model of images: a file, a PIL image or an array (H, W, 3)
                uint8, a list of these, a folder, a .csv or Parquet file with a column ``path`` of images, an array
                (N, H, W, 3) or a tensor (N, 3, H, W) uint8. For any other model: an array (N, ...) of the inputs of
                training.
            faces: Place of the face in each image, (4, 2) corners of a box or (5, 2) landmarks, in pixels, or None;
                without it, whole images are used.
            detector: Face detector: ``mtcnn``, or an object of the protocol ``Detector``. Every detected face
                is a row; see ``Predictions.facts``.
            rater: Whose votes to predict, for a model of raters: the name of a rater, a sequence of names, one a row,
                or a dict with the features of an unknown rater, such as ``{"age": 30, "gender": "f"}``; None predicts
                the population of raters. A rater without training votes is the mean rater, with any features of
                their own.

        Returns:
            One row per instance, in the given order. Intervals and sets for single raters are those of the predicted
            distribution, and are not calibrated: calibration counts the votes of the population. Names of raters are
            in ``facts["rater"]``.

        Raises:
            LDLError: The input has another shape or kind, a column is missing, the head takes no NaN, no image shows a
                face, or a rater is unknown.
        """
        inputs = self._inputs(given, faces, detector)
        chosen = {} if rater is None else choose_raters(self.task.raters, rater, inputs.size)
        starts = range(0, inputs.size, self.batch_size)
        parts = [self._batch(inputs, np.arange(inputs.size)[k : k + self.batch_size], chosen) for k in starts]
        self.task.watch.check_finite(self.device, current_collective())
        if self.task.gives_maps:
            pictures.check_one_size([batch["prediction"][0] for batch in parts])
        columns = {name: np.concatenate([batch[name] for batch in parts]) for name in parts[0]}
        distribution, value = columns["prediction"], columns.get("predicted_value")
        calibration, facts = self.task.calibration, inputs.facts
        if rater is not None:
            assert self.task.raters is not None
            calibration, numbers = None, chosen["as_rater"].numpy()
            if "rater_features" not in chosen:
                facts = {**facts, "rater": np.array(self.task.raters.names, object)[numbers]}
        return Predictions(distribution, value, self.labels, inputs.names, calibration, facts)

    __call__ = predict

    @library_defaults()
    @torch.no_grad()
    def evidence(
        self, given: Any, row: int = 0, faces: pictures.Points = None, detector: str | Path | Detector | None = None
    ) -> Evidence | None:
        """Return the training rows or leaves behind the prediction of one instance; None if the head has none.

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

    def _batch(self, inputs: Inputs, index: np.ndarray, columns: dict[str, Tensor]) -> dict[str, np.ndarray]:
        batch = {"input": inputs.make(index), "index": torch.from_numpy(index), "weight": torch.ones(len(index))}
        batch |= {name: column[index] for name, column in columns.items()}
        batch = {name: column.to(self.device) for name, column in batch.items()}
        with warnings.catch_warnings():
            # A step computes intervals of all levels; ``Predictions`` warns about the chosen one.
            warnings.filterwarnings("ignore", message="level .* calibration rows or groups")
            if self.task.training:  # setting the mode of all modules takes longer than the prediction of a row
                self.task.eval()
            outputs = self.task.predict_step(batch, 0)
        return {name: column.float().cpu().numpy() for name, column in outputs.items() if name != "index"}

    def _inputs(self, instances: Any, faces: pictures.Points, detector: str | Path | Detector | None) -> Inputs:
        shape, preprocessing = self.task.input_shape, self._preprocessing
        assert shape is not None
        if "crop_size" in preprocessing:
            if detector is not None and faces is not None:
                raise LDLError("faces and detector both locate the faces; leave out one of them")
            if isinstance(detector, str | Path):
                detector = find_locator(preprocessing).find_detector(detector)
            return pictures.crops_of(instances, preprocessing, faces, detector)
        if faces is not None or detector is not None:
            raise LDLError("the model was not trained on crops of images; leave faces and detector out")
        if self.task.gives_maps:
            return pictures.whole(instances)
        if len(shape) == 1 or "scaling" in preprocessing:
            return read_instances(instances, shape, preprocessing, self.task.head.takes_missing)
        return prepared(instances, shape, preprocessing.get("dtype"), self.task.head.takes_bags)


def _hub() -> Any:
    """Return the module that writes, publishes and finds models, such as ``ldl.deploy.pretrained``. Raises LDLError."""
    for module in load_registered(HUBS).values():
        return module
    raise LDLError("no installed package hands models on; use Predictor.from_checkpoint, or install ldl again")
