"""Base class of the data modules of face images."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from ldl.collective import process_rank
from ldl.data.base import LDLDataModule, Loaded
from ldl.data.cache import cache_root
from ldl.data.faces.crops import Crops, cached_crops, readable
from ldl.data.faces.records import FaceProtocol, FaceRecords, SplitRequest
from ldl.data.pictures import describe, units
from ldl.data.sources import SOURCES, absent
from ldl.errors import LDLError, did_you_mean
from ldl.labels import Encoder, LabelSpace
from ldl.options import buffer, option, options
from ldl.protocols import Fold, keep_together, with_validation

if TYPE_CHECKING:
    from albumentations import BaseCompose, BasicTransform


PROBES = 4
"""Transforms of one image at the start of a run, which show whether they give several sizes."""


@options
class Faces(LDLDataModule):
    """Face images with values. A subclass lists its files, defines its label space and names its protocols.

    Crops are made once and cached in ``cache_dir``. Batches hold images as uint8; the backbone normalises them.

    Args:
        path: Place of the data, as given or below the data folder; None takes the usual place.
        protocol: Evaluation protocol; None takes the first one of the data set.
        split_list: Published list for the protocol: a file, or a folder of lists.
        alignment: How faces are located; ``none`` uses whole images, None the best way of the data set.
        boxes: JSON file of boxes in the format of the Facial Age Estimation Benchmark.
        crop_size: Side of the crops in pixels.
        margin: Margin on every side as a share of the face's square; None adds 0.2 around landmarks and none to boxes.
        sigma: Standard deviation of the label distributions, unless the data define it.
        encoder: Shape of the label distributions, ``gaussian`` or ``triangle``.
        augmentation: Augmentation of training images: ``light`` mirrors them and varies place and light a little;
            ``strong`` does more and adds noise, blur and erasing, for long training.
        train_transforms: albumentations transforms in place of ``augmentation``.
        eval_transforms: albumentations transforms for evaluation; None takes none.
        split_copies: Leave copies of an image where the protocol has them, which marks the protocol ``leaky``.
        skip_unreadable: Leave out missing and damaged images, and report them.
        cache_dir: Folder of the cache; None takes ``LDL_CACHE``, or ``~/.cache/ldl``.

    Attributes:
        mirrored: Whether a mirror image has the same value, so that training may mirror by default.
        unused: Options that the data set cannot use; they must be None or ``none``.
    """

    protocols: ClassVar[dict[str, FaceProtocol]]
    mirrored: ClassVar[bool] = True
    unused: ClassVar[tuple[str, ...]] = ()
    crops: Crops = buffer()
    records: FaceRecords = buffer()
    unserved = (*LDLDataModule.unserved, "records", "values", "groups", "copies", "names")

    path: str | None = None
    protocol: str | None = None  # type: ignore[assignment]
    split_list: str | None = None
    alignment: Literal["landmarks", "box", "none"] | None = None
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
    split_copies: bool = False
    skip_unreadable: bool = False
    cache_dir: str | None = None
    folds: int = 5

    def __post_init__(self) -> None:
        self.protocol = next(iter(self.protocols)) if self.protocol is None else self.protocol
        self.leaky = self._protocol.leaky

    @property
    def _protocol(self) -> FaceProtocol:
        # Looked up by name each time, since protocols hold functions that cannot be sent to loader processes.
        name, known = str(self.protocol), self.protocols
        if name not in known:
            near, owner = did_you_mean(name, known), type(self).__name__
            raise LDLError(f"{owner} has no protocol {name!r}{near}; one of {', '.join(known)}")
        return known[name]

    @abstractmethod
    def read(self) -> FaceRecords:
        """List the images without opening any. Raises LDLError."""

    @abstractmethod
    def label_space(self, records: FaceRecords) -> LabelSpace:
        """Return the labels. Raises LDLError for a value that they do not cover."""

    def gather(self) -> FaceRecords:
        """Return the images of :meth:`read` and any extra training images."""
        return self.read()

    def locate(self, usual: str) -> Path:
        """Return the place of the data set: ``path``, or ``usual`` below the data folder, or that folder itself."""
        if self.path:
            return self.find(self.path)
        return below if (below := self.data_root / usual).exists() else self.data_root

    def absent(self, usual: str) -> LDLError:
        """Return the error for a missing data set."""
        name = next(base.__name__ for base in type(self).__mro__ if base.__name__ in SOURCES)
        if self.path:
            return absent(name, self.find(self.path), None, "or a corrected --data.path")
        return absent(name, self.data_root / usual, self.data_root)

    def load(self) -> Loaded:
        """List the images, check their values, and make or find their crops. Raises LDLError."""
        from ldl.data.faces.transforms import AUGMENTATIONS, Pipeline

        for name in self.unused:
            if (value := getattr(self, name)) not in (None, "none"):
                raise LDLError(f"{type(self).__name__} has no use for {name} {value!r}; leave data.{name} out")
        usual = AUGMENTATIONS[self.augmentation](self.mirrored)
        train = usual if self.train_transforms is None else self.train_transforms
        self.pipelines = {True: Pipeline(train), False: Pipeline(self.eval_transforms or [])}
        records = self.gather()
        if not len(records):
            raise LDLError(f"{records.folder} holds no images of {type(self).__name__}")
        labels = self.label_space(records)
        self.crops = cached_crops(records, self.crop_size, self.margin, cache_root(self.cache_dir))
        if (failed := self.crops.failed) and not self.skip_unreadable:
            raise LDLError(
                f"{len(failed)} of {len(records)} images cannot be read, the first: {next(iter(failed.values()))}; "
                "mend them, or leave them out with --data.skip_unreadable true"
            )
        self.rows = readable(self.crops.failed, len(records))
        # Find transforms that fail, or give several sizes, before training begins.
        for pipeline in self.pipelines.values():
            pipeline.batch([self.crops[self.rows[0]]] * PROBES, np.arange(PROBES))
        self.records = known = records.take(self.rows)
        if known.persons is None:
            self.leaky = None
        copies = self.crops.copies(records.paths())[self.rows]
        self._report_copies(copies, known)
        sigma = self.sigma if known.sigmas is None else torch.tensor(known.sigmas, dtype=torch.float32)
        target = labels.encode(torch.tensor(known.values, dtype=torch.float32), sigma, self.encoder)
        return Loaded(labels, {"target": target}, known.values, known.persons, known.files, copies=copies)

    @property
    def _keeps_together(self) -> bool:
        return not (self.split_copies or self._protocol.published)

    def _report_copies(self, copies: np.ndarray, known: FaceRecords) -> None:
        """Print how many images are copies, and mark a protocol that may split them."""
        if not (report := describe(copies, known.files, known.values)):
            return
        persons, joined = known.persons, units(copies, known.persons)
        if not self._keeps_together and (persons is None or len(np.unique(joined)) < len(np.unique(persons))):
            self.leaky = True
        if process_rank() == 0:
            kept = (
                "are kept in one part of a split" if self._keeps_together else f"stay where {self.protocol} puts them"
            )
            print(f"{report}; they {kept}", flush=True)

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """Return the images ``rows``, transformed: (B, 3, H, W) uint8, RGB."""
        return self.pipelines[train].batch([self.crops[row] for row in self.rows[rows]], seeds)

    def cut(self) -> Fold:
        """Return the rows of one fold; the validation set takes whole persons if they are known. Raises LDLError."""
        request = self._request
        if request.split_list is not None and not self._protocol.listed:
            listed = [name for name, protocol in self.protocols.items() if protocol.listed]
            raise LDLError(
                f"protocol {self.protocol} follows no list: leave data.split_list out"
                + (f", or choose one of {', '.join(listed)}" if listed else "")
            )
        if not 0 <= self.fold < self.num_folds:
            raise LDLError(f"fold {self.fold} must be in 0..{self.num_folds - 1}, the folds of {self.protocol}")
        rows, persons = self._protocol.rows(request), request.records.persons
        if not isinstance(rows, Fold):
            rows = with_validation(*rows, self.val_fraction, self.fold_seed, self.fold, persons)
        own, copies = self._own, np.arange(self.size) if self.copies is None or self.split_copies else self.copies
        if self._keeps_together:
            rows = keep_together(rows, self._protocol.units(copies[own], persons))
        train, val, test = (own[part] for part in (rows.train, rows.val, rows.test))
        extra = np.setdiff1d(np.arange(self.size), own)
        extra = extra[~np.isin(copies[extra], copies[np.concatenate([val, test])])]
        fold = Fold(np.sort(np.concatenate([train, extra])), val, test)
        unused = self.size - len(fold.train) - len(val) - len(test)
        if unused and process_rank() == 0:
            print(f"{unused} of {self.size} images are in no part of {self.protocol}, fold {self.fold}", flush=True)
        return fold

    @property
    def num_folds(self) -> int:
        return self._protocol.count(self._request)

    @property
    def _own(self) -> np.ndarray:
        """Rows without extra images."""
        extra = self.records.extra
        return np.arange(len(self.records)) if extra is None else np.flatnonzero(~extra)

    @property
    def _request(self) -> SplitRequest:
        split_list = self.find(self.split_list) if self.split_list else None
        own = self.records if self.records.extra is None else self.records.take(self._own)
        return SplitRequest(own, self.folds, self.fold, self.fold_seed, split_list, self.skip_unreadable)

    @property
    def content_key(self) -> str:
        return f"{self.crops.key}-{self.pipelines[False].to_dict()}-{self.rows.tobytes().hex()}"

    @property
    def augmentation_key(self) -> str:
        return f"{self.pipelines[True].to_dict()}"

    @property
    def preprocessing(self) -> dict[str, Any]:
        crop = {"crop_size": self.crop_size, "margin": self.margin, "alignment": self.records.alignment}
        return {**crop, "transforms": self.pipelines[False].to_dict()}
