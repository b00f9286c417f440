"""Heads with a scaling of their own, as members of pools need, which share the features of their data."""

from __future__ import annotations

import torch
from torch import Tensor

from ldl.data.tables.scaling import FeatureScaler, Scaling
from ldl.data.tables.scaling_graph import scale
from ldl.head import FittedHead
from ldl.methods.traced import traced
from ldl.trust.learned import check_shapes

PREFIX = "scaling_"
"""Of the buffers that hold what the scaling has learned."""
SHAPES = {"quantiles": "Q F", "references": "Q"}
"""Those that are not (F,)."""


class ScalingHead(FittedHead):
    """Base of heads that scale features first; their ``build`` and ``fit`` call :meth:`learn_scaling`.

    Attributes:
        scaling: How, an option of the head, as that of tables.
        clip: Scaled features are cut off at plus and minus this, an option too; None leaves them.
    """

    scaling: Scaling
    clip: float | None

    def learn_scaling(self, features: Tensor) -> None:
        """Learn from features (N, F), and register what was learned as buffers."""
        scaler = FeatureScaler(self.scaling, self.clip)
        scaler.fit(features.double().cpu().numpy())
        learned = {PREFIX + name: torch.from_numpy(array) for name, array in scaler.learned.items()}
        self.register_buffers(**{name: tensor.to(features.device) for name, tensor in learned.items()})
        self.exact = tuple(learned)  # type: ignore[misc]  # which there are depends on the kind

    def scaled(self, features: Tensor) -> Tensor:
        """Features (..., F), scaled, in their dtype."""
        if (self.scaling == "none" and self.clip is None) or not (traced() or features.numel()):
            return features
        if traced():
            learned = {name.removeprefix(PREFIX): getattr(self, name) for name in self.exact}
            flat = features.reshape(-1, features.shape[-1]).double()
            return scale(flat, self.scaling, self.clip, learned).to(features.dtype).reshape(features.shape)
        rows = features.detach().reshape(-1, features.shape[-1]).double().cpu().numpy()
        return torch.from_numpy(self._scaler.transform(rows)).to(features).reshape(features.shape)

    def check_state(self) -> None:
        """Raise LDLError where parameters or the scaling are not what is learned."""
        super().check_state()
        shapes = {name: SHAPES.get(name.removeprefix(PREFIX), "F") for name in self.exact}
        check_shapes(self, {"F": self.in_features}, **shapes)
        learned = {name: torch.from_numpy(array) for name, array in self._scaler.learned.items()}
        self._scaler.load_state_dict({"kind": self.scaling, "clip": self.clip, **learned})

    @property
    def _scaler(self) -> FeatureScaler:
        scaler = FeatureScaler(self.scaling, self.clip)
        scaler.learned = {name.removeprefix(PREFIX): getattr(self, name).cpu().numpy() for name in self.exact}
        return scaler
