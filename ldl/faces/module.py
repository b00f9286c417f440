"""Base class of the data modules of face images."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

import torch

from ldl.data.base import Loaded
from ldl.data.images.module import Images
from ldl.data.images.records import ImageRecords, SplitRequest
from ldl.data.sources import SOURCES, check_set
from ldl.errors import LDLError
from ldl.labels import Encoder, LabelSpace
from ldl.options import option, options
from ldl.protocols import Fold


@options
class Faces(Images):
    """Face images with values. A subclass lists its files, defines its label space and names its protocols.

    Args:
        protocol: Evaluation protocol; None takes the first one of the data set.
        split_list: Published list for the protocol: a file, or a folder of lists.
        alignment: How faces are located; ``none`` uses whole images, None the best way of the data set.
        boxes: JSON file of boxes in the format of the Facial Age Estimation Benchmark.
        crop_size: Side of the crops in pixels.
        margin: Margin on every side as a share of the face's square; None adds 0.2 around landmarks and none to boxes.
        sigma: Standard deviation of the label distributions, unless the data define it.
        encoder: Shape of the label distributions, ``gaussian`` or ``triangle``.

    Attributes:
        unused: Options that the data set cannot use; they must be None or ``none``.
    """

    unused: ClassVar[tuple[str, ...]] = ()

    protocol: str | None = option(default=None, role="fold")
    split_list: str | None = option(default=None, role="fold", is_path=True)
    alignment: Literal["landmarks", "box", "none"] | None = None
    boxes: str | None = option(default=None, is_path=True)
    crop_size: int = option(default=112, least=8, most=4096, what="in pixels")
    margin: float | None = option(
        default=None, least=0, most=2, what="a share of the face's square", null="the usual one"
    )
    sigma: float = option(default=2.0, above=0, role="label")
    encoder: Encoder = option(default="gaussian", role="label")
    folds: int = 5

    def __post_init__(self) -> None:
        self.protocol = next(iter(self.protocols)) if self.protocol is None else self.protocol
        self.leaky = self._protocol.leaky

    @abstractmethod
    def read(self) -> ImageRecords:
        """List the images without opening any. Raises LDLError."""

    @abstractmethod
    def label_space(self, records: ImageRecords) -> LabelSpace:
        """Return the labels. Raises LDLError for a value that they do not cover."""

    def gather(self) -> ImageRecords:
        """Return the images of :meth:`read` and any extra training images."""
        return self.read()

    def locate(self, usual: str) -> Path:
        """Return the place of the data set: ``path``, or ``usual`` below the data folder, or that folder itself."""
        if self.path:
            return self.find(self.path)
        return below if (below := self.data_root / usual).exists() else self.data_root

    def check_present(self, present: bool, usual: str) -> None:
        """Raise LDLError for a missing data set."""
        name = next(base.__name__ for base in type(self).__mro__ if base.__name__ in SOURCES)
        if self.path:
            check_set(present, name, self.find(self.path), None, "or a corrected --data.path")
        check_set(present, name, self.data_root / usual, self.data_root)

    def load(self) -> Loaded:
        """List the images, check their values, and make or find their crops. Raises LDLError."""
        for name in self.unused:
            if (value := getattr(self, name)) not in (None, "none"):
                raise LDLError(f"{type(self).__name__} has no use for {name} {value!r}; leave data.{name} out")
        records = self.gather()
        labels = self.label_space(records)
        copies = self.cut_out(records, self.crop_size, self.margin)
        cropped = self.records
        sigma = self.sigma if cropped.sigmas is None else torch.tensor(cropped.sigmas, dtype=torch.float32)
        target = labels.encode(torch.tensor(cropped.values, dtype=torch.float32), sigma, self.encoder)
        return Loaded(labels, {"target": target}, cropped.values, cropped.groups, cropped.files, copies=copies)

    def cut(self) -> Fold:
        """Return the rows of one fold. Raises LDLError, also for a list that the protocol does not follow."""
        if self.split_list is not None and not self._protocol.listed:
            listed = [name for name, protocol in self.protocols.items() if protocol.listed]
            raise LDLError(
                f"protocol {self.protocol} follows no list: leave data.split_list out"
                + (f", or choose one of {', '.join(listed)}" if listed else "")
            )
        return super().cut()

    @property
    def _request(self) -> SplitRequest:
        return replace(super()._request, split_list=self.find(self.split_list) if self.split_list else None)
