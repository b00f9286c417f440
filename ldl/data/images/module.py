"""Base class of the data modules of image files: cached crops, augmentation, copies, and protocols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from torch import Tensor
from typing_extensions import override

from ldl.collective import process_rank
from ldl.data.base import LDLDataModule
from ldl.data.cache import cache_root
from ldl.data.images.crops import Crops, cached_crops, readable
from ldl.data.images.records import ImageRecords, SplitProtocol, SplitRequest
from ldl.data.pictures import describe, units
from ldl.errors import LDLError, check_one_of
from ldl.options import buffer, option, options
from ldl.protocols import Fold, keep_together, with_validation

if TYPE_CHECKING:
    from albumentations import BaseCompose, BasicTransform


PROBES = 4
"""Transforms of one image at the start of a run, which show whether they give several sizes."""


@options
class Images(LDLDataModule):
    """Image files. A subclass lists them and makes their targets in ``load``, and names its protocols.

    Squares of one size are cut from the images once and cached in ``cache_dir``. Batches hold them as uint8; the
    backbone normalises them.

    Args:
        path: Place of the data, as given or below the data folder; None takes the usual place.
        protocol: Evaluation protocol; None takes the usual one of the data set.
        augmentation: Augmentation of training images: ``light`` mirrors them and varies place and light a little;
            ``strong`` does more and adds noise, blur and erasing, for long training; ``none`` keeps them.
        train_transforms: albumentations transforms in place of ``augmentation``.
        eval_transforms: albumentations transforms for evaluation; None takes none.
        split_copies: Leave copies of an image where the protocol has them, which marks the protocol ``leaky``.
        skip_unreadable: Leave out missing and damaged images, and report them.
        cache_dir: Folder of the cache; None takes ``LDL_CACHE``, or ``~/.cache/ldl``.

    Attributes:
        mirrored: Whether a mirror image has the same value, so that training may mirror by default.
        channels: 3, or 1 for grey images.
    """

    protocols: ClassVar[dict[str, SplitProtocol]]
    mirrored: ClassVar[bool] = True
    channels = 3  # type: int
    crops: Crops = buffer()
    records: ImageRecords = buffer()
    unserved = (*LDLDataModule.unserved, "records", "values", "groups", "copies", "names")

    path: str | None = option(default=None, role="path")
    protocol: str | None = option(default=None, role="fold")  # type: ignore[assignment]
    augmentation: Literal["light", "strong", "none"] = option(default="light", role="training")
    train_transforms: Sequence[BasicTransform | BaseCompose] | None = option(default=None, role="training")
    eval_transforms: Sequence[BasicTransform | BaseCompose] | None = None
    split_copies: bool = option(default=False, role="fold")
    skip_unreadable: bool = option(default=False, role="fold")
    cache_dir: str | None = option(default=None, role="place", is_path=True)

    @property
    def _protocol(self) -> SplitProtocol:
        # Looked up by name each time, since protocols hold functions that cannot be sent to loader processes.
        name, protocols = str(self.protocol), self.protocols
        check_one_of(f"{type(self).__name__}.protocol", name, protocols)
        return protocols[name]

    def cut_out(self, records: ImageRecords, size: int, margin: float | None) -> np.ndarray:
        """Make or find the crops, and report unreadable images and copies.

        Sets ``crops``, ``rows`` (the readable rows of ``records``) and ``records`` (their records).

        Args:
            records: The images.
            size: Side of the crops in pixels.
            margin: See :func:`ldl.data.images.crops.placement`.

        Returns:
            (n,) equal for copies; see :func:`ldl.data.pictures.same_bytes`.

        Raises:
            LDLError: There is no image, an image cannot be read, or a transform fails.
        """
        from ldl.data.images.transforms import AUGMENTATIONS, Pipeline

        if not len(records):
            raise LDLError(f"{records.folder} holds no images of {type(self).__name__}")
        usual = AUGMENTATIONS[self.augmentation](self.mirrored)
        train = usual if self.train_transforms is None else self.train_transforms
        evaluation = self.eval_transforms or []
        self.pipelines = {True: Pipeline(train, self.channels), False: Pipeline(evaluation, self.channels)}
        self.crops, self._cut_as = cached_crops(records, size, margin, cache_root(self.cache_dir)), (size, margin)
        if (failed := self.crops.failed) and not self.skip_unreadable:
            raise LDLError(
                f"{len(failed)} of {len(records)} images cannot be read, the first: {next(iter(failed.values()))}; "
                "mend them, or leave them out with --data.skip_unreadable true"
            )
        self.rows = readable(self.crops.failed, len(records))
        # Find transforms that fail, or give several sizes, before training begins.
        for pipeline in self.pipelines.values():
            pipeline.batch([self.crops[self.rows[0]]] * PROBES, np.arange(PROBES))
        copies = self.crops.copies(records.paths())[self.rows]
        self.records = records.take(self.rows)
        if self.records.groups is None:
            self.leaky = None
        self._report_copies(copies)
        return copies

    @property
    def _keeps_together(self) -> bool:
        return not (self.split_copies or self._protocol.published)

    def _report_copies(self, copies: np.ndarray) -> None:
        """Print how many images are copies, and mark a protocol that may split them."""
        groups = self.records.groups
        if not (report := describe(copies, self.records.files, self.records.values)):
            return
        joined = units(copies, groups)
        if not self._keeps_together and (groups is None or len(np.unique(joined)) < len(np.unique(groups))):
            self.leaky = True
        if process_rank() == 0:
            together, apart = "are kept in one part of a split", f"stay where {self.protocol} puts them"
            print(f"{report}; they {together if self._keeps_together else apart}", flush=True)

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """Return the images ``rows``, transformed: (B, channels, H, W) uint8, RGB or grey."""
        return self.pipelines[train].batch([self.crops[row] for row in self.rows[rows]], seeds)

    def cut(self) -> Fold:
        """Return the rows of one fold; the validation set takes whole groups if they are known. Raises LDLError."""
        request = self._request
        if not 0 <= self.fold < self.num_folds:
            raise LDLError(f"fold {self.fold} must be in 0..{self.num_folds - 1}, the folds of {self.protocol}")
        rows, groups = self._protocol.rows(request), request.records.groups
        if not isinstance(rows, Fold):
            rows = with_validation(*rows, self.val_fraction, self.fold_seed, self.fold, groups)
        split_rows = self._split_rows
        copies = np.arange(self.size) if self.copies is None or self.split_copies else self.copies
        if self._keeps_together:
            rows = keep_together(rows, self._protocol.units(copies[split_rows], groups))
        train, val, test = (split_rows[numbers] for numbers in (rows.train, rows.val, rows.test))
        extra = np.setdiff1d(np.arange(self.size), split_rows)
        extra = extra[~np.isin(copies[extra], copies[np.concatenate([val, test])])]
        fold = Fold(np.sort(np.concatenate([train, extra])), val, test)
        unused = self.size - len(fold.train) - len(val) - len(test)
        if unused and process_rank() == 0:
            print(f"{unused} of {self.size} images are in no part of {self.protocol}, fold {self.fold}", flush=True)
        return fold

    @property
    @override
    def num_folds(self) -> int:
        return self._protocol.count(self._request)

    @property
    def _split_rows(self) -> np.ndarray:
        """Rows without extra images."""
        extra = self.records.extra
        return np.arange(len(self.records)) if extra is None else np.flatnonzero(~extra)

    @property
    def _request(self) -> SplitRequest:
        records = self.records if self.records.extra is None else self.records.take(self._split_rows)
        return SplitRequest(records, self.folds, self.fold, self.fold_seed, None, self.skip_unreadable)

    @property
    @override
    def content_key(self) -> str:
        grey = "" if self.channels == 3 else "-grey"
        return f"{self.crops.key}-{self.pipelines[False].to_dict()}-{self.rows.tobytes().hex()}{grey}"

    @property
    @override
    def augmentation_key(self) -> str:
        return f"{self.pipelines[True].to_dict()}"

    @property
    @override
    def preprocessing(self) -> dict[str, Any]:
        size, margin = self._cut_as
        crop = {"crop_size": size, "margin": margin, "alignment": self.records.alignment}
        grey = {} if self.channels == 3 else {"channels": self.channels}
        return {**crop, "transforms": self.pipelines[False].to_dict(), **grey}
