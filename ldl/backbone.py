"""Backbones: inputs to features."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import timm
import torch
from timm.models import adapt_input_conv
from torch import Tensor, nn

from ldl.errors import LDLError, did_you_mean


class Backbone(nn.Module, ABC):
    """Turns an input into features (..., F).

    Like a head's, its ``__init__`` only stores annotated arguments, and ``build`` makes the parameters.

    Attributes:
        lr: Learning rate of its own, or None for that of the head.
    """

    lr: float | None = None

    def __init__(self) -> None:
        super().__init__()

    @abstractmethod
    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Create the parameters for inputs of ``input_shape`` (without the batch) and return F.

        Args:
            input_shape: Shape of one input.
            load_weights: Load pretrained weights; False where a checkpoint's replace them anyway.
        """


class Identity(Backbone):
    """Hands the input on, for tables and for features that were computed before.

    Args:
        flatten: Flatten an input of several dimensions, such as a small image, into one vector.
    """

    def __init__(self, flatten: bool = False) -> None:
        super().__init__()
        self.flatten = flatten

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Return the number of features. Raises LDLError for an image that is not to be flattened."""
        if self.flatten:
            return math.prod(input_shape)
        if len(input_shape) != 1:
            shape = "x".join(map(str, input_shape))
            raise LDLError(
                f"Identity got inputs of {shape}; set model.backbone.flatten: true, or use the Timm backbone"
            )
        return input_shape[0]

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, ...) to (B, F)."""
        return inputs.flatten(1) if self.flatten else inputs


class Timm(Backbone):
    """Any timm network, up to its pooled features.

    Args:
        name: Model name, as ``timm.list_models()`` has it.
        pretrained: Load timm's pretrained weights from its hub.
        weights: A local weights file (.safetensors, .pth) to load instead.
        freeze: Keep the network fixed, normalisation statistics included.
        lr: Learning rate of the network; None takes that of the head.
        drop_rate: Dropout of the network before its classifier.
        drop_path_rate: Stochastic depth, for networks that have it; 0 leaves it out.
    """

    network: Any

    def __init__(
        self,
        name: str = "resnet18",
        pretrained: bool = False,
        weights: str | None = None,
        freeze: bool = False,
        lr: float | None = None,
        drop_rate: float = 0.0,
        drop_path_rate: float = 0.0,
    ) -> None:
        super().__init__()
        self.name = name
        self.pretrained = pretrained
        self.weights = weights
        self.freeze = freeze
        self.lr = lr
        self.drop_rate = drop_rate
        self.drop_path_rate = drop_path_rate

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Create the network for images (channels, height, width). Raises LDLError."""
        if len(input_shape) != 3:
            raise LDLError(
                f"Timm needs images (channels, height, width), got inputs of shape {input_shape}; use Identity"
            )
        if not timm.is_model(self.name):
            raise LDLError(
                f"timm has no model {self.name!r}{did_you_mean(self.name, timm.list_models())}; see timm.list_models()"
            )
        if self.weights and self.pretrained:
            raise LDLError("give either model.backbone.weights or pretrained: true, not both")
        options: dict[str, Any] = {"drop_path_rate": self.drop_path_rate} if self.drop_path_rate else {}
        saved = self._read_weights() if self.weights and load_weights else None
        try:
            self.network = timm.create_model(
                self.name,
                pretrained=self.pretrained and load_weights,
                in_chans=input_shape[0],
                drop_rate=self.drop_rate,
                **options,
            )
        except (RuntimeError, OSError, TypeError, ValueError) as error:
            raise LDLError(f"timm cannot make {self.name}: {' '.join(str(error).split())[:300]}") from error
        if saved is not None:
            self._load(saved, input_shape[0])
        self.network.reset_classifier(0)
        if self.freeze:
            self.network.requires_grad_(False)
        with torch.no_grad():
            features = self.network.eval()(torch.zeros(1, *input_shape)).shape[-1]
        # Trainers do not always call train() before the first batch: a frozen network must be in evaluation already.
        self.network.train(self.training and not self.freeze)
        return int(features)

    def _read_weights(self) -> dict[str, Tensor]:
        """The weights file, as the network with three channels has it. Raises LDLError."""
        assert self.weights is not None
        if not Path(self.weights).is_file():
            raise LDLError(f"no weights file at {self.weights}; correct model.backbone.weights")
        try:
            return timm.create_model(self.name, checkpoint_path=self.weights).state_dict()
        except Exception as error:  # those of pickle, zip, safetensors and timm have no common base
            reason = " ".join(str(error).split())[:200]
            raise LDLError(
                f"{self.weights} holds no weights that fit {self.name}: {type(error).__name__} {reason}"
            ) from error

    def _load(self, saved: dict[str, Tensor], channels: int) -> None:
        """Take weights for three channels; the first layer's are summed or repeated for another number."""
        first = self.network.pretrained_cfg["first_conv"]
        for layer in [first] if isinstance(first, str) else first:
            saved[f"{layer}.weight"] = adapt_input_conv(channels, saved[f"{layer}.weight"])
        self.network.load_state_dict(saved)

    def train(self, mode: bool = True) -> Timm:
        """Switch the mode; a frozen network stays in evaluation."""
        super().train(mode)
        if self.freeze and hasattr(self, "network"):
            self.network.eval()
        return self

    def forward(self, inputs: Tensor) -> Tensor:
        """Images (B, channels, height, width) to pooled features (B, F)."""
        if self.freeze:
            with torch.no_grad():
                return self.network(inputs)
        return self.network(inputs)
