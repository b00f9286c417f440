"""The base of data modules of faces."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from ldl.batch import Batch
from ldl.collective import process_rank
from ldl.data.base import LDLDataModule
from ldl.data.cache import cache_root
from ldl.data.faces.crops import Crops, cached_crops
from ldl.data.faces.protocols import Cut, FaceProtocol, choose
from ldl.data.faces.records import FaceRecords
from ldl.data.sampler import Draw
from ldl.errors import LDLError
from ldl.labels import Encoder, LabelSpace
from ldl.protocols import Fold, with_validation

if TYPE_CHECKING:
    from albumentations import BaseCompose, BasicTransform

    from ldl.data.faces.transforms import Pipeline


Alignment = Literal["landmarks", "box", "none"]


class FaceInstances(Dataset[Batch]):
    """Pictures from a crop cache, transformed as they are drawn: ``input`` (B, 3, H, W) uint8, RGB.

    Args:
        crops: All crops.
        rows: (N,) rows of the crops that are served.
        columns: The other entries of a batch, (N, ...) each.
        pipeline: What is done to each picture.
    """

    def __init__(self, crops: Crops, rows: np.ndarray, columns: Batch, pipeline: Pipeline) -> None:
        self.crops = crops
        self.rows = rows
        self.columns = columns
        self.pipeline = pipeline

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, draw: Draw) -> dict[str, Any]:
        return {name: column[0] for name, column in self.__getitems__([draw]).items()}

    def __getitems__(self, draws: list[Draw]) -> Batch:
        rows = torch.tensor([draw.row for draw in draws])
        pictures = [self.pipeline(self.crops[self.rows[draw.row]], draw.seed) for draw in draws]
        # Strides stay those of pictures, channels last, which is what convolutions on pictures like best.
        batch = {"input": torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2)}
        batch.update({name: column[rows] for name, column in self.columns.items()})
        batch["weight"] = torch.tensor([draw.weight for draw in draws])
        return batch


class Faces(LDLDataModule):
    """Pictures of faces with values. A subclass lists its files, makes its label space and names its protocols.

    Crops are made once and kept in ``cache_dir``. Batches hold pictures as uint8; the backbone normalises them.

    Args:
        path: Where the data set lies: as it stands, or below the data folder; None takes its usual place there.
        protocol: How training and test pictures are told apart; None takes the data set's first.
        split_list: A published list for protocols that follow one: a file, or the folder of several.
        alignment: What places the face: ``landmarks``, ``box``, or ``none`` for the whole picture; None takes the
            best that the data set has.
        boxes: A JSON file of face boxes, as the Facial Age Estimation Benchmark publishes them.
        crop_size: Side of the crops in pixels.
        margin: What is added around the face on every side, as a share of the face's square; None adds 0.2 around
            landmarks and nothing around boxes.
        sigma: Standard deviation of the label distributions in the labels' unit, where the data give none of a picture.
        encoder: Shape of the label distributions, ``gaussian`` or ``triangle``.
        train_transforms: albumentations transforms of training; None takes mirror, small turns and shifts, light.
        eval_transforms: Those of validation, test and prediction; None takes none.
        skip_unreadable: Leave out missing and damaged pictures, and say so, instead of stopping at them.
        cache_dir: Folder for crops and features; None takes the environment's ``LDL_CACHE``, or ``~/.cache/ldl``.
        batch_size: Rows of a global batch, over all processes.
        num_workers: Loader processes, per training process.
        root: Folder of the data; None takes the environment's ``LDL_DATA``, or ``data``.
        folds: Number of folds, for protocols that leave it open.
        fold: The fold that is tested, from 0.
        fold_seed: Seed of the folds.
        val_fraction: Share of the training persons, or pictures, that is kept for validation; 0 trains on all.

    Attributes:
        mirrored: Whether a mirror image has the value of its picture, so that training may mirror by default.
    """

    protocols: ClassVar[dict[str, FaceProtocol]]
    mirrored: ClassVar[bool] = True
    crops: Crops
    records: FaceRecords

    def __init__(
        self,
        path: str | None = None,
        protocol: str | None = None,
        split_list: str | None = None,
        alignment: Alignment | None = None,
        boxes: str | None = None,
        crop_size: int = 112,
        margin: float | None = None,
        sigma: float = 2.0,
        encoder: Encoder = "gaussian",
        train_transforms: Sequence[BasicTransform | BaseCompose] | None = None,
        eval_transforms: Sequence[BasicTransform | BaseCompose] | None = None,
        skip_unreadable: bool = False,
        cache_dir: str | None = None,
        batch_size: int = 64,
        num_workers: int = 0,
        root: str | None = None,
        folds: int = 5,
        fold: int = 0,
        fold_seed: int = 0,
        val_fraction: float = 0.1,
    ) -> None:
        super().__init__(batch_size, num_workers, root, folds, fold, fold_seed, val_fraction)
        self.path = path
        self.split_list = split_list
        self.alignment: Alignment | None = alignment
        self.boxes = boxes
        self.crop_size = crop_size
        self.margin = margin
        self.sigma = sigma
        self.encoder: Encoder = encoder
        self.train_transforms = train_transforms
        self.eval_transforms = eval_transforms
        self.skip_unreadable = skip_unreadable
        self.cache_dir = cache_dir
        self.protocol, self._protocol = choose(protocol, self.protocols, type(self).__name__)
        self.leaky = self._protocol.leaky

    @abstractmethod
    def read(self) -> FaceRecords:
        """List the pictures with what is known of them, without opening any. Raises LDLError."""

    @abstractmethod
    def label_space(self, records: FaceRecords) -> LabelSpace:
        """The labels of the pictures. Raises LDLError for a value that they do not cover."""

    def locate(self, usual: str) -> Path:
        """The place of the data set: ``path``, or ``usual`` below the data folder, or that folder itself."""
        if self.path:
            return self.find(self.path)
        return below if (below := self.data_root / usual).exists() else self.data_root

    def find(self, given: str) -> Path:
        """A place that an option names: as it stands, or below the data folder."""
        return place if (place := Path(given)).exists() else self.data_root / given

    def load(self) -> None:
        """List the pictures, check their values, and make or find their crops. Raises LDLError."""
        from ldl.data.faces.transforms import Pipeline, default_train_transforms

        if self.crop_size < 8:
            raise LDLError(f"data.crop_size {self.crop_size} must be at least 8 pixels")
        if self.margin is not None and not 0 <= self.margin <= 2:
            raise LDLError(f"data.margin {self.margin:g} must be in 0..2, a share of the face's square")
        train = default_train_transforms(self.mirrored) if self.train_transforms is None else self.train_transforms
        self.pipelines = {True: Pipeline(train), False: Pipeline(self.eval_transforms or [])}
        records = self.read()
        if not len(records):
            raise LDLError(f"{records.folder} holds no pictures of {type(self).__name__}")
        self.labels = self.label_space(records)
        self.crops = cached_crops(records, self.crop_size, self.margin, cache_root(self.cache_dir))
        self.rows = self._readable(records)
        self.records = records.take(self.rows)
        self.size = len(self.records)
        self.groups = self.records.persons
        if self.groups is None:
            self.leaky = None
        self.values = self.records.values
        self.names = self.records.files
        sample = self.pipelines[False](self.crops[self.rows[0]], 0)
        if sample.ndim != 3:
            raise LDLError(f"data.eval_transforms give shape {sample.shape}; they must give (height, width, channels)")
        self.input_shape = (sample.shape[2], *sample.shape[:2])
        value = torch.tensor(self.values, dtype=torch.float32)
        sigma = self.sigma if self.records.sigmas is None else torch.tensor(self.records.sigmas, dtype=torch.float32)
        self._columns = {"target": self.labels.encode(value, sigma, self.encoder), "value": value}
        if self.groups is not None:
            self._columns["group"] = torch.from_numpy(np.unique(self.groups, return_inverse=True)[1])

    def cut(self) -> Fold:
        """The pictures of one fold; validation takes whole persons where they are known. Raises LDLError."""
        cut = self._cut
        if cut.split_list is not None and not self._protocol.listed:
            listed = [name for name, protocol in self.protocols.items() if protocol.listed]
            raise LDLError(
                f"protocol {self.protocol} follows no list: leave data.split_list out"
                + (f", or choose one of {', '.join(listed)}" if listed else "")
            )
        if not 0 <= self.fold < self.num_folds:
            raise LDLError(f"fold {self.fold} must be in 0..{self.num_folds - 1}, the folds of {self.protocol}")
        parts = self._protocol.rows(cut)
        unused = self.size - sum(len(part) for part in parts)
        if unused and process_rank() == 0:
            print(f"{unused} of {self.size} pictures are in no part of {self.protocol}, fold {self.fold}", flush=True)
        return with_validation(*parts, self.val_fraction, self.fold_seed, self.fold, self.groups)

    @property
    def num_folds(self) -> int:
        """Number of folds of the protocol, after ``setup``."""
        return self._protocol.count(self._cut)

    @property
    def _cut(self) -> Cut:
        split_list = self.find(self.split_list) if self.split_list else None
        return Cut(self.records, self.folds, self.fold, self.fold_seed, split_list, self.skip_unreadable)

    def columns(self) -> dict[str, Tensor]:
        """Target, value and, where persons are known, group of all pictures."""
        return self._columns

    def dataset(self, rows: np.ndarray, train: bool) -> Dataset[Any]:
        """The pictures ``rows``."""
        index = torch.from_numpy(rows)
        columns = {name: column[index] for name, column in self._columns.items()}
        return FaceInstances(self.crops, self.rows[rows], {**columns, "index": index}, self.pipelines[train])

    @property
    def content_key(self) -> str:
        """What the pictures of evaluation are made of, in one word."""
        return f"{self.crops.key}-{self.pipelines[False].to_dict()}-{self.rows.tobytes().hex()}"

    @property
    def preprocessing(self) -> dict[str, Any]:
        """What a picture goes through before the backbone, as plain values, for checkpoints."""
        return {"crop_size": self.crop_size, "margin": self.margin, "transforms": self.pipelines[False].to_dict()}

    def _readable(self, records: FaceRecords) -> np.ndarray:
        failed = self.crops.failed
        if failed:
            first = next(iter(failed.values()))
            if not self.skip_unreadable:
                raise LDLError(
                    f"{len(failed)} of {len(records)} pictures cannot be read, the first: {first}; "
                    "mend them, or leave them out with --data.skip_unreadable true"
                )
            if len(failed) == len(records):
                raise LDLError(f"not one of {len(records)} pictures can be read, the first: {first}")
            if process_rank() == 0:
                print(f"left out {len(failed)} of {len(records)} unreadable pictures:")
                print("\n".join(f"  {reason}" for reason in failed.values()), flush=True)
        return np.setdiff1d(np.arange(len(records)), list(failed))
