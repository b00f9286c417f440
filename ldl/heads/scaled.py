"""A fitted head on features that are scaled for it alone."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.data.tables.scaling import Scaling
from ldl.errors import LDLError
from ldl.head import FittedHead, Head, ImageHead, wanted_of
from ldl.heads.max_ent import MaxEnt
from ldl.heads.scaling import ScalingHead
from ldl.labels import LabelSpace
from ldl.methods.evidence import Evidence
from ldl.methods.rows import check_rows
from ldl.options import check_options, option, options


@options
class Scaled(ScalingHead):
    """A head that is fitted on rows, behind a scaling of the features for it alone, as scikit-learn's pipelines do it.

    The features of data are scaled once for a whole model. Members of ``Pool`` want different ones: linear models
    and neighbours gain from ``quantile_normal`` where features have long tails, forests lose.

    Args:
        head: The head, by class name; None is ``MaxEnt``. One that learns by gradient goes into ``Trained``, which
            scales by itself.
        scaling: How features are scaled, learnt from the rows it is fitted on: as the option of tables.
        clip: Scaled features are cut off at plus and minus this; None leaves them.
    """

    uses_value: ClassVar[bool] = True
    uses_group: ClassVar[bool] = True

    head: Head = option(default=None)
    scaling: Scaling = "quantile_normal"
    clip: float | None = option(default=None, above=0, null="no clipping")

    def __post_init__(self) -> None:
        if self.head is None:
            self.head = MaxEnt()

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Build the head and the buffers of the scaling. Raises LDLError for a head of another kind."""
        check_options(self)
        head = self.head
        if not isinstance(head, FittedHead) or isinstance(head, ImageHead) or head.takes_bags:
            way = "take it alone" if isinstance(head, FittedHead) else "put it into Trained, which scales by itself"
            raise LDLError(f"Scaled.head {type(head).__name__} is not fitted on rows; {way}")
        super().build(in_features, labels)
        head.build(in_features, labels)
        self.learn_scaling(torch.zeros(2, in_features, device="cpu"))

    def fit(
        self,
        features: Tensor,
        target: Tensor,
        collective: Collective,
        value: Tensor | None = None,
        group: Tensor | None = None,
    ) -> None:
        """Fit on (N, F), (N, C), and maybe values (N, ...) and groups (N,). Raises LDLError: a bad row."""
        check_rows(type(self).__name__, features, target)
        self.learn_scaling(features)
        wanted = wanted_of(self.head, {"value": value, "group": group})
        self._fitted.shows_progress = self.shows_progress
        self._fitted.fit(self.scaled(features), target, collective, **wanted)

    def forward(self, features: Tensor) -> Tensor:
        """What the head says of the scaled features: (..., F) to (..., C)."""
        prediction: Tensor = self.head(self.scaled(features))
        return prediction

    def point_estimate(self, features: Tensor) -> Tensor | None:
        """The head's better value, where it gives one."""
        return self.head.point_estimate(self.scaled(features))

    def predict(self, features: Tensor) -> tuple[Tensor, Tensor | None]:
        """Both, by the work of one where the head can."""
        return self.head.predict(self.scaled(features))

    def evidence(self, features: Tensor) -> Evidence | None:
        """What the head's prediction of one instance (F,) rests on."""
        return self.head.evidence(self.scaled(features))

    def summary(self) -> dict[str, float]:
        """The head's figures."""
        return self._fitted.summary()

    @property
    def _fitted(self) -> FittedHead:
        assert isinstance(self.head, FittedHead)  # by build
        return self.head
