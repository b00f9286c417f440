"""A fitted head that knows what a mirror does to its features."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import FittedHead, Head, ImageHead, wanted_of
from ldl.heads.max_ent import MaxEnt
from ldl.labels import LabelSpace
from ldl.methods.lbp import mirrored_bins
from ldl.methods.opinion_pool import pool
from ldl.methods.rows import check_rows
from ldl.options import buffer, check_options, option, options


@options
class Mirrored(FittedHead):
    """A head that is fitted on rows and on their mirror images, and asked about both: what flips do for pictures.

    Features of a picture change in a known way when it is mirrored, and the distribution does not, as long as no label
    means a side: faces show the same emotion. Every training row is joined by its mirror image; a prediction is the
    geometric mean, normalised, of those for a row and its image. A row and its image stay together wherever the head
    holds rows out.

    Args:
        head: The head, by class name; None is ``MaxEnt``. One that learns by gradient goes into ``Trained``. What
            scales features goes inside, since features change places first.
        mirror: For every feature the number of the one whose place it takes, a permutation that is its own inverse; or
            ``lbp``, where features are a histogram of uniform local binary patterns in the order of their codes
            (``ldl.methods.lbp``), as those of SJAFFE and SBU_3DFE are. None is no mirror, and the head alone.

    Attributes:
        places: (F,) that permutation.
    """

    uses_value: ClassVar[bool] = True
    uses_group: ClassVar[bool] = True
    places: Tensor = buffer()

    head: Head = option(default=None)
    mirror: list[int] | Literal["lbp"] | None = option(default=None, least=0, null="no mirror")

    def __post_init__(self) -> None:
        if self.head is None:
            self.head = MaxEnt()

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Build the head. Raises LDLError for a head of another kind, or a mirror that these features do not have."""
        check_options(self)
        head = self.head
        if not isinstance(head, FittedHead) or isinstance(head, ImageHead) or head.takes_bags:
            way = "mirror its pictures" if isinstance(head, FittedHead) else "put it into Trained"
            raise LDLError(f"Mirrored.head {type(head).__name__} is not fitted on rows; {way}")
        super().build(in_features, labels)
        head.build(in_features, labels)
        self.register_buffer("places", torch.from_numpy(self._find_places(in_features)), persistent=False)

    def fit(
        self,
        features: Tensor,
        target: Tensor,
        collective: Collective,
        value: Tensor | None = None,
        group: Tensor | None = None,
    ) -> None:
        """Fit on (N, F), (N, C), and maybe values (N, ...) and groups (N,). Raises LDLError: what the head refuses."""
        check_rows(type(self).__name__, features, target)
        if self.mirror is not None:
            group = torch.arange(len(features), device=features.device) if group is None else group
            features = torch.cat([features, features[:, self.places]])
            target, group = target.repeat(2, 1), group.repeat(2)
            value = None if value is None else torch.cat([value, value])
        wanted = wanted_of(self.head, {"value": value, "group": group})
        self._fitted.shows_progress = self.shows_progress
        self._fitted.fit(features, target, collective, **wanted)

    def forward(self, features: Tensor) -> Tensor:
        """What the head says of features and of their mirror images: (..., F) to (..., C)."""
        if self.mirror is None:
            prediction: Tensor = self.head(features)
            return prediction
        both = torch.stack([self.head(features), self.head(features[..., self.places])])
        return pool(both, both.new_full((2,), 0.5), "geometric")

    def point_estimate(self, features: Tensor) -> Tensor | None:
        """The mean of the head's better values for both, where it gives such."""
        value = self.head.point_estimate(features)
        if value is None or self.mirror is None:
            return value
        other = self.head.point_estimate(features[..., self.places])
        return None if other is None else (value + other) / 2

    def summary(self) -> dict[str, float]:
        """The head's figures."""
        return self._fitted.summary()

    def _find_places(self, count: int) -> np.ndarray:
        if self.mirror is None:
            return np.arange(count)
        if self.mirror == "lbp":
            try:
                return mirrored_bins(count)
            except LDLError as error:
                raise LDLError(f"Mirrored.mirror lbp: {error}") from None
        places = np.array(self.mirror, dtype=np.int64)
        if len(places) != count or not np.array_equal(np.sort(places), np.arange(count)):
            raise LDLError(f"Mirrored.mirror has {len(places)} numbers; it takes each of 0 to {count - 1} once")
        if len(wrong := np.flatnonzero(places[places] != np.arange(count))):
            first = int(wrong[0])
            raise LDLError(
                f"Mirrored.mirror puts feature {first} in the place of {places[first]}, but that in the place of "
                f"{places[places[first]]}; mirrored twice every feature must be where it was"
            )
        return places

    @property
    def _fitted(self) -> FittedHead:
        assert isinstance(self.head, FittedHead)  # by build
        return self.head
