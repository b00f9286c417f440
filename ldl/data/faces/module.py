"""The base of data modules of faces."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from ldl.collective import process_rank
from ldl.data.base import LDLDataModule
from ldl.data.cache import cache_root
from ldl.data.faces.crops import Crops, cached_crops
from ldl.data.faces.protocols import Cut, FaceProtocol
from ldl.data.faces.records import FaceRecords
from ldl.data.loaded import Loaded
from ldl.data.sources import SOURCES, absent
from ldl.errors import LDLError, did_you_mean
from ldl.labels import Encoder, LabelSpace
from ldl.options import buffer, option, options
from ldl.protocols import Fold, with_validation

if TYPE_CHECKING:
    from albumentations import BaseCompose, BasicTransform


Alignment = Literal["landmarks", "box", "none"]

TRIED = 4
"""Draws after which transforms of random size have shown it."""


@options
class Faces(LDLDataModule):
    """Pictures of faces with values. A subclass lists its files, makes its label space and names its protocols.

    Crops are made once and kept in ``cache_dir``. Batches hold pictures as uint8; the backbone normalises them.

    Args:
        path: Where the data lie, as given or below the data folder; None: as usual.
        protocol: How training and test are told apart; None takes the data set's first.
        split_list: A published list of the protocol: a file, or the folder of several.
        alignment: What places the face; ``none`` takes pictures whole, None the best.
        boxes: A JSON file of boxes, as of the Facial Age Estimation Benchmark.
        crop_size: Side of the crops in pixels.
        margin: What is added around the face on every side, as a share of the face's square; None adds 0.2 around
            landmarks and nothing around boxes.
        sigma: Deviation of the label distributions, where the data give none.
        encoder: Shape of the label distributions, ``gaussian`` or ``triangle``.
        augmentation: What training does to pictures: ``light`` mirrors, moves and lights them a little; ``strong``
            does more, adds noise, blurs and erases, for long training.
        train_transforms: albumentations transforms in place of ``augmentation``'s.
        eval_transforms: Those of validation, test and prediction; None takes none.
        skip_unreadable: Leave out missing and damaged pictures, and say so, instead of stopping.
        cache_dir: Folder of crops and features; None takes ``LDL_CACHE``, or ``~/.cache/ldl``.

    Attributes:
        mirrored: Whether a mirror image has the value of its picture, so that training may mirror by default.
        unused: Options that this set has no use for; they must be None, or ``none``.
    """

    protocols: ClassVar[dict[str, FaceProtocol]]
    mirrored: ClassVar[bool] = True
    unused: ClassVar[tuple[str, ...]] = ()
    crops: Crops = buffer()
    records: FaceRecords = buffer()
    unserved = (*LDLDataModule.unserved, "records", "values", "groups", "names")

    path: str | None = None
    protocol: str | None = None  # type: ignore[assignment]
    split_list: str | None = None
    alignment: Alignment | None = None
    boxes: str | None = None
    crop_size: int = option(default=112, least=8, most=4096, what="in pixels")
    margin: float | None = option(
        default=None, least=0, most=2, what="a share of the face's square", null="the usual one"
    )
    sigma: float = option(default=2.0, above=0)
    encoder: Encoder = "gaussian"
    augmentation: Literal["light", "strong"] = "light"
    train_transforms: Sequence[BasicTransform | BaseCompose] | None = None
    eval_transforms: Sequence[BasicTransform | BaseCompose] | None = None
    skip_unreadable: bool = False
    cache_dir: str | None = None
    folds: int = 5

    def __post_init__(self) -> None:
        self.protocol = next(iter(self.protocols)) if self.protocol is None else self.protocol
        self.leaky = self._protocol.leaky

    @property
    def _protocol(self) -> FaceProtocol:
        # Kept by its name alone: a loader process cannot be sent functions without one.
        name, known = str(self.protocol), self.protocols
        if name not in known:
            near, owner = did_you_mean(name, known), type(self).__name__
            raise LDLError(f"{owner} has no protocol {name!r}{near}; one of {', '.join(known)}")
        return known[name]

    @abstractmethod
    def read(self) -> FaceRecords:
        """List the pictures with what is known of them, without opening any. Raises LDLError."""

    @abstractmethod
    def label_space(self, records: FaceRecords) -> LabelSpace:
        """The labels of the pictures. Raises LDLError for a value that they do not cover."""

    def gather(self) -> FaceRecords:
        """The pictures of :meth:`read`, and what else there is to learn from, as extra ones."""
        return self.read()

    def locate(self, usual: str) -> Path:
        """The place of the data set: ``path``, or ``usual`` below the data folder, or that folder itself."""
        if self.path:
            return self.find(self.path)
        return below if (below := self.data_root / usual).exists() else self.data_root

    def absent(self, usual: str) -> LDLError:
        """What to raise where there is no such set."""
        name = next(base.__name__ for base in type(self).__mro__ if base.__name__ in SOURCES)
        if self.path:
            return absent(name, self.find(self.path), None, "or a corrected --data.path")
        return absent(name, self.data_root / usual, self.data_root)

    def load(self) -> Loaded:
        """List the pictures, check their values, and make or find their crops. Raises LDLError."""
        from ldl.data.faces.transforms import AUGMENTATIONS, Pipeline

        for name in self.unused:
            if (value := getattr(self, name)) not in (None, "none"):
                raise LDLError(f"{type(self).__name__} has no use for {name} {value!r}; leave data.{name} out")
        usual = AUGMENTATIONS[self.augmentation](self.mirrored)
        train = usual if self.train_transforms is None else self.train_transforms
        self.pipelines = {True: Pipeline(train), False: Pipeline(self.eval_transforms or [])}
        records = self.gather()
        if not len(records):
            raise LDLError(f"{records.folder} holds no pictures of {type(self).__name__}")
        labels = self.label_space(records)
        self.crops = cached_crops(records, self.crop_size, self.margin, cache_root(self.cache_dir))
        if (failed := self.crops.failed) and not self.skip_unreadable:
            raise LDLError(
                f"{len(failed)} of {len(records)} pictures cannot be read, the first: {next(iter(failed.values()))}; "
                "mend them, or leave them out with --data.skip_unreadable true"
            )
        self.rows = self.crops.readable(len(records))
        # Transforms that cannot take these pictures, or give them several sizes, are found before training begins.
        for pipeline in self.pipelines.values():
            pipeline.batch([self.crops[self.rows[0]]] * TRIED, np.arange(TRIED))
        self.records = known = records.take(self.rows)
        if known.persons is None:
            self.leaky = None
        sigma = self.sigma if known.sigmas is None else torch.tensor(known.sigmas, dtype=torch.float32)
        target = labels.encode(torch.tensor(known.values, dtype=torch.float32), sigma, self.encoder)
        return Loaded(labels, {"target": target}, known.values, known.persons, known.files)

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """The pictures ``rows``, transformed: (B, 3, H, W) uint8, RGB."""
        return self.pipelines[train].batch([self.crops[row] for row in self.rows[rows]], seeds)

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
        rows = self._protocol.rows(cut)
        if not isinstance(rows, Fold):
            rows = with_validation(*rows, self.val_fraction, self.fold_seed, self.fold, cut.records.persons)
        parts = [self._own[part] for part in (rows.train, rows.val, rows.test)]
        parts[0] = np.sort(np.concatenate([parts[0], np.setdiff1d(np.arange(self.size), self._own)]))
        unused = self.size - sum(len(part) for part in parts)
        if unused and process_rank() == 0:
            print(f"{unused} of {self.size} pictures are in no part of {self.protocol}, fold {self.fold}", flush=True)
        return Fold(*parts)

    @property
    def num_folds(self) -> int:
        return self._protocol.count(self._cut)

    @property
    def _own(self) -> np.ndarray:
        """Rows of the set itself, without extra ones."""
        extra = self.records.extra
        return np.arange(len(self.records)) if extra is None else np.flatnonzero(~extra)

    @property
    def _cut(self) -> Cut:
        split_list = self.find(self.split_list) if self.split_list else None
        own = self.records if self.records.extra is None else self.records.take(self._own)
        return Cut(own, self.folds, self.fold, self.fold_seed, split_list, self.skip_unreadable)

    @property
    def content_key(self) -> str:
        """What the pictures of evaluation are made of, in one word."""
        return f"{self.crops.key}-{self.pipelines[False].to_dict()}-{self.rows.tobytes().hex()}"

    @property
    def augmentation_key(self) -> str:
        return f"{self.pipelines[True].to_dict()}"

    @property
    def preprocessing(self) -> dict[str, Any]:
        crop = {"crop_size": self.crop_size, "margin": self.margin, "alignment": self.records.alignment}
        return {**crop, "transforms": self.pipelines[False].to_dict()}
