"""Scaling of tabular features, learnt from the training rows and stored with the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from sklearn.preprocessing import QuantileTransformer
from torch import Tensor

from ldl.errors import LDLError

Scaling = Literal["standard", "hellinger", "quantile_normal", "quantile_uniform", "none"]
LARGEST = float(np.finfo(np.float32).max)
CONSTANT = 1e-12
"""A deviation of so small a share of the largest feature is rounding noise, not a scale."""


@dataclass
class FeatureScaler:
    """Brings features to comparable ranges, which soft splits need: sigmoids of raw features saturate.

    Attributes:
        kind: ``standard``: mean 0 and deviation 1; a feature that is constant in training is only centred.
            ``hellinger``: square roots, centred, all divided by one number, so that Euclidean distances are
            Hellinger distances; for histograms and other features that are not negative.
            ``quantile_normal``, ``quantile_uniform``: ranks mapped to a normal or a uniform distribution of
            deviation 1, for skewed features. ``none``: as they are.
        clip: Scaled features are cut off at plus and minus this, or None.
    """

    kind: Scaling
    clip: float | None
    learned: dict[str, np.ndarray] = field(default_factory=dict, init=False)

    @property
    def _distribution(self) -> str:
        return self.kind.removeprefix("quantile_") if self.kind.startswith("quantile_") else ""

    def fit(self, train: np.ndarray) -> None:
        """Learn from the training rows (N, F), of each feature from those where it is known; NaN stays NaN."""
        known = ~np.isnan(train)
        if not known.all():
            # What no row knows teaches nothing: it is scaled as if it were 0 throughout.
            train = np.where(known.any(0), train, 0.0)
        if self._distribution:
            transformer = QuantileTransformer(n_quantiles=min(1000, len(train)), subsample=None).fit(train)
            self.learned = {"quantiles": transformer.quantiles_, "references": transformer.references_}
        elif self.kind == "hellinger":
            train = roots(train)
            mean = _mean(train)
            scale = np.sqrt(_mean(np.square(train - mean), None))
            self.learned = {"mean": mean, "scale": np.full_like(mean, scale if scale > 0 else 1.0)}
        elif self.kind == "standard":
            mean = _mean(train)
            deviation = train.std(0) if known.all() else np.sqrt(_mean(np.square(train - mean)))
            constant = deviation <= CONSTANT * np.fmax.reduce(np.abs(train))
            self.learned = {"mean": mean, "scale": np.where(constant, 1.0, deviation)}

    def transform(self, features: np.ndarray) -> np.ndarray:
        """Scale (N, F) features by what was learnt. Raises LDLError where their number is another."""
        learned = self.learned.get("mean", self.learned.get("quantiles"))
        if learned is not None and learned.shape[-1] != features.shape[1]:
            raise LDLError(
                f"the data have {features.shape[1]} features, but the checkpoint was trained on {learned.shape[-1]}; "
                "give the data it was trained on"
            )
        if self._distribution:
            transformer = QuantileTransformer(output_distribution=self._distribution)
            transformer.quantiles_ = self.learned["quantiles"]
            transformer.references_ = self.learned["references"]
            transformer.n_quantiles_ = len(transformer.references_)
            transformer.n_features_in_ = features.shape[1]
            features = transformer.transform(features)
            if self._distribution == "uniform":
                features = (features - 0.5) * 12**0.5
        elif self.kind != "none":
            features = roots(features) if self.kind == "hellinger" else features
            features = (features - self.learned["mean"]) / self.learned["scale"]
        return features if self.clip is None else features.clip(-self.clip, self.clip)

    def apply(self, features: np.ndarray, source: str, numbers: np.ndarray | None = None) -> Tensor:
        """Scaled features (N, F) in float32, as models take them; NaN stays NaN.

        ``numbers`` (N,) are those of the rows in the ``source``, where they are not all of it. Raises
        LDLError, which names the ``source``, where :meth:`transform` does, or a number is too large for float32.
        """
        features = features.astype(np.float64, copy=False)
        scaled = self.transform(features)
        wrong = np.argwhere(~(np.abs(scaled) <= LARGEST) & ~np.isnan(features))
        if len(wrong):
            place, column = wrong[0]
            row = place if numbers is None else numbers[place]
            raise LDLError(
                f"{source}: row {row}, feature {column} is {features[place, column]:g}, with scaling {self.kind!r} "
                f"{scaled[place, column]:g}; float32 holds at most {LARGEST:.2g}: correct it, or choose another "
                "data.scaling"
            )
        # Row after row, as batches are taken; files of MATLAB have them column after column.
        return torch.from_numpy(scaled.astype(np.float32, order="C"))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FeatureScaler:
        """The scaler that a checkpoint describes (``ldl.trust.schema`` has held it against its form)."""
        scaler = cls(state["kind"], state["clip"])
        scaler.learned = {name: value.cpu().numpy() for name, value in state.items() if isinstance(value, Tensor)}
        return scaler

    def state_dict(self) -> dict[str, Any]:
        """Kind, clip, and what was learnt as tensors."""
        learned = {name: torch.from_numpy(array) for name, array in self.learned.items()}
        return {"kind": self.kind, "clip": self.clip, **learned}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take what another scaler learnt. Raises LDLError where that scaled in another way."""
        for option, trained, mine in (("scaling", state["kind"], self.kind), ("clip", state["clip"], self.clip)):
            if trained != mine:
                raise LDLError(f"the checkpoint was trained with data.{option} {trained!r}, not {mine!r}; set it so")
        learned = {name: value.cpu().numpy() for name, value in state.items() if isinstance(value, Tensor)}
        for name in learned.keys() | self.learned.keys():
            saved = learned.get(name, np.array(np.nan))
            if not np.isfinite(saved).all() or (name == "scale" and not (saved > 0).all()):
                raise LDLError(f"the checkpoint's {name} of the features is no scaling; take another checkpoint")
        self.learned = learned


def _mean(rows: np.ndarray, axis: int | None = 0) -> np.ndarray:
    """Mean of what is known along an axis, or of all."""
    return np.asarray(np.nanmean(rows, axis) if np.isnan(rows).any() else rows.mean(axis))


def roots(features: np.ndarray) -> np.ndarray:
    """Square roots. Raises LDLError for negative numbers."""
    if len(negative := np.argwhere(features < 0)):
        row, column = negative[0]
        raise LDLError(
            f"data.scaling 'hellinger' takes square roots, but a row's feature {column} is {features[row, column]:g}; "
            "use 'standard' for features that may be negative"
        )
    return np.sqrt(features)
