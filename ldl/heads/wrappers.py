"""Wrappers of a fitted head: ``Scaled`` gives it its own feature scaling, ``Mirrored`` adds mirror images."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from ldl.collective import Collective
from ldl.data.tables.scaling import FeatureScaler, Scaling, scale
from ldl.errors import LDLError, naming
from ldl.head import FittedHead, Head, ImageHead
from ldl.heads.max_ent import MaxEnt
from ldl.labels import LabelSpace
from ldl.methods.evidence import Evidence
from ldl.methods.lbp import mirrored_bins
from ldl.methods.opinion_pool import pool
from ldl.methods.rows import Rows
from ldl.methods.torch_utils import traced
from ldl.methods.training_rows import check_rows
from ldl.options import buffer, option, options

PREFIX = "scaling_"
"""Prefix of the buffers of a scaling."""
SHAPES = {"quantiles": "Q F", "references": "Q"}
"""Shapes of these buffers; the others have the shape (F,)."""


class ScalingHead(FittedHead):
    """Base of heads that scale their features first. Their ``build`` and ``fit`` call :meth:`learn_scaling`.

    Attributes:
        scaling: Kind of scaling, an option of the head.
        clip: Largest absolute value of a scaled feature, an option of the head; None does not clip.
    """

    scaling: Scaling
    clip: float | None

    def build_scaling(self, in_features: int) -> None:
        """Register the buffers of a scaling of ``in_features`` features before it is fitted."""
        self.learn_scaling(torch.zeros(2, 1, device="cpu"))
        for name in self.exact:  # in torch, so that a model without numbers takes no memory for them
            column = getattr(self, name)
            sides = zip(SHAPES.get(name.removeprefix(PREFIX), "F").split(), column.shape)
            shape = [in_features if letter == "F" else side for letter, side in sides]
            self.register_buffer(name, torch.empty(shape, dtype=column.dtype).copy_(column))

    def learn_scaling(self, features: Tensor, weight: Tensor | None = None) -> None:
        """Fit the scaling to features (N, F) with weights (N,), and register its buffers; quantiles count rows."""
        scaler = FeatureScaler(self.scaling, self.clip)
        scaler.fit(features.double().cpu().numpy(), None if weight is None else weight.double().cpu().numpy())
        learned = {PREFIX + name: torch.from_numpy(array) for name, array in scaler.learned.items()}
        self.register_buffers(**{name: tensor.to(features.device) for name, tensor in learned.items()})
        self.exact = tuple(learned)  # type: ignore[misc]  # their names depend on the kind

    def scaled(self, features: Tensor) -> Tensor:
        """Scale features (..., F), in their dtype."""
        if (self.scaling == "none" and self.clip is None) or not (traced() or features.numel()):
            return features
        rows = features.reshape(-1, features.shape[-1]).double()
        if traced():
            learned = {name.removeprefix(PREFIX): getattr(self, name) for name in self.exact}
            return scale(rows, self.scaling, self.clip, learned).to(features.dtype).reshape(features.shape)
        scaled = self._scaler.transform(rows.detach().cpu().numpy())
        return torch.from_numpy(scaled).to(features).reshape(features.shape)

    @override
    def describe_buffers(self) -> dict[str, str]:
        return {name: SHAPES.get(name.removeprefix(PREFIX), "F") for name in self.exact}

    def check_state(self) -> None:
        """Raise LDLError if a parameter is not finite or the buffers are no scaling of this kind."""
        super().check_state()
        learned = {name: torch.from_numpy(array) for name, array in self._scaler.learned.items()}
        self._scaler.load_state_dict({"kind": self.scaling, "clip": self.clip, **learned})

    @property
    def _scaler(self) -> FeatureScaler:
        scaler = FeatureScaler(self.scaling, self.clip)
        scaler.learned = {name.removeprefix(PREFIX): getattr(self, name).cpu().numpy() for name in self.exact}
        return scaler


class _Wrapper(FittedHead):
    """Base of heads around one head that is fitted on rows; None is ``MaxEnt``."""

    uses_weight: ClassVar[bool] = True
    head: Head
    fix_images: ClassVar[str]
    fix_gradient: ClassVar[str]

    def __post_init__(self) -> None:
        if self.head is None:
            self.head = MaxEnt()

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Build the head. Raises LDLError for a head that is not fitted on rows."""
        super().build(in_features, labels)
        head = self.head
        if not isinstance(head, FittedHead) or isinstance(head, ImageHead) or head.takes_bags:
            fix = self.fix_images if isinstance(head, FittedHead) else self.fix_gradient
            raise LDLError(f"{type(self).__name__}.head {type(head).__name__} is not fitted on rows; {fix}")
        head.build(in_features, labels)

    def summary(self) -> dict[str, float]:
        """Return the summary of the head."""
        return self._fitted.summary()

    def fit(self, rows: Rows, collective: Collective) -> None:
        """Fit the head. Raises LDLError for a bad row, or weights for a head that takes none."""
        check_rows(type(self).__name__, rows)
        self._fitted.shows_progress = self.shows_progress
        self._fitted.fit(self._prepare(rows), collective)

    @abstractmethod
    def _prepare(self, rows: Rows) -> Rows:
        """Return the rows to which the head is fitted."""

    @property
    def _fitted(self) -> FittedHead:
        assert isinstance(self.head, FittedHead)  # by build
        return self.head


@options
class Scaled(_Wrapper, ScalingHead):
    """A head that is fitted on rows, behind its own scaling of the features, like a pipeline of scikit-learn.

    Data modules scale features once for a whole model. Members of ``Pool`` may need different scalings: linear models
    and neighbours gain from ``quantile_normal`` if features have long tails; forests lose.

    Args:
        head: The head, by class name; None is ``MaxEnt``. Put a head that learns by gradient into ``Trained``, which
            scales by itself.
        scaling: Kind of scaling, fitted to the training rows; the same kinds as the option of tables.
        clip: Largest absolute value of a scaled feature; None does not clip.

    Examples:
        >>> import numpy as np
        >>> from ldl import LDLRegressor
        >>> from ldl.heads import MaxEnt, Scaled
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> y = np.hstack([X, 1 - X])
        >>> LDLRegressor(Scaled(MaxEnt(), scaling="ranks")).fit(X, y).predict([[0.4]]).round(1)
        array([[0.4, 0.6]], dtype=float32)
    """

    fix_images: ClassVar[str] = "use it alone"
    fix_gradient: ClassVar[str] = "put it into Trained, which scales by itself"

    head: Head = option(default=None)
    scaling: Scaling = "quantile_normal"
    clip: float | None = option(default=None, above=0, null="no clipping")

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Build the head and the buffers of the scaling. Raises LDLError for a head that is not fitted on rows."""
        super().build(in_features, labels)
        self.build_scaling(in_features)

    def _prepare(self, rows: Rows) -> Rows:
        self.learn_scaling(rows.features, rows.weight)
        return replace(rows, features=self.scaled(rows.features))

    def forward(self, features: Tensor) -> Tensor:
        """Apply the head to the scaled features: (..., F) to (..., C)."""
        prediction: Tensor = self.head(self.scaled(features))
        return prediction

    def point_estimate(self, features: Tensor) -> Tensor | None:
        """Return the point estimate of the head, or None."""
        return self.head.point_estimate(self.scaled(features))

    def predict(self, features: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the distributions and point estimates of the head."""
        return self.head.predict(self.scaled(features))

    def evidence(self, features: Tensor) -> Evidence | None:
        """Return the evidence of the head for one instance (F,)."""
        return self.head.evidence(self.scaled(features))


@options
class Mirrored(_Wrapper):
    """A head that is fitted on rows and their mirror images, and averages its predictions for both.

    Mirroring an image changes its features in a known way and keeps its distribution, unless a label means a side. The
    training set is extended by the mirror image of every row. A prediction is the normalised geometric mean of the
    predictions for a row and for its image. A row and its image stay together wherever the head holds out rows.

    Args:
        head: The head, by class name; None is ``MaxEnt``. Put a head that learns by gradient into ``Trained``. Put a
            scaling of features inside, since ``mirror`` reorders the unscaled features.
        mirror: For every feature the number of the feature whose place it takes: a permutation that is its own inverse.
            ``lbp`` is the permutation of a histogram of uniform local binary patterns in the order of their codes
            (``ldl.methods.lbp``), such as the features of SJAFFE and SBU_3DFE. None uses the head alone.

    Attributes:
        places: (F,) the permutation.

    Examples:
        >>> import numpy as np
        >>> from ldl import LDLRegressor
        >>> from ldl.heads import MaxEnt, Mirrored
        >>> X = np.array([[0.0, 1.0], [0.2, 0.5]])  # columns: left, right
        >>> y = np.array([[0.9, 0.1], [0.5, 0.5]])
        >>> regressor = LDLRegressor(Mirrored(MaxEnt(), mirror=[1, 0]), scaling="none").fit(X, y)
        >>> bool(np.allclose(regressor.predict(X), regressor.predict(X[:, ::-1])))
        True
    """

    fix_images: ClassVar[str] = "mirror its images"
    fix_gradient: ClassVar[str] = "put it into Trained"
    places: Tensor = buffer()

    head: Head = option(default=None)
    mirror: list[int] | Literal["lbp"] | None = option(default=None, least=0, null="no mirror")

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Build the head. Raises LDLError for a head that is not fitted on rows, or a mirror of other features."""
        super().build(in_features, labels)
        self.register_buffer("places", torch.from_numpy(self._find_places(in_features)), persistent=False)

    def _prepare(self, rows: Rows) -> Rows:
        if self.mirror is None:
            return rows
        if rows.group is None:
            rows = replace(rows, group=torch.arange(len(rows), device=rows.target.device))
        mirrored = replace(rows, features=rows.features[:, self.places]).columns
        return Rows(**{name: torch.cat([column, mirrored[name]]) for name, column in rows.columns.items()})

    def forward(self, features: Tensor) -> Tensor:
        """Average the predictions for features (..., F) and for their mirror images: (..., C)."""
        if self.mirror is None:
            prediction: Tensor = self.head(features)
            return prediction
        both = torch.stack([self.head(features), self.head(features[..., self.places])])
        return pool(both, both.new_full((2,), 0.5), "geometric")

    def point_estimate(self, features: Tensor) -> Tensor | None:
        """Return the mean point estimate of the head for both, or None."""
        value = self.head.point_estimate(features)
        if value is None or self.mirror is None:
            return value
        other = self.head.point_estimate(features[..., self.places])
        return None if other is None else (value + other) / 2

    def _find_places(self, count: int) -> np.ndarray:
        if self.mirror is None:
            return np.arange(count)
        if self.mirror == "lbp":
            with naming("Mirrored.mirror lbp"):
                return mirrored_bins(count)
        mirror = np.array(self.mirror, dtype=np.int64)
        if len(mirror) != count or not np.array_equal(np.sort(mirror), np.arange(count)):
            raise LDLError(f"Mirrored.mirror has {len(mirror)} numbers; it takes each of 0 to {count - 1} once")
        if len(wrong := np.flatnonzero(mirror[mirror] != np.arange(count))):
            first = int(wrong[0])
            raise LDLError(
                f"Mirrored.mirror puts feature {first} in the place of {mirror[first]}, but that in the place of "
                f"{mirror[mirror[first]]}; mirrored twice every feature must be where it was"
            )
        return mirror
