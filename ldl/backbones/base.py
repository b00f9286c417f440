"""The contract of a backbone, from inputs to features, and backbones that return their inputs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ldl.batch import run_seed
from ldl.errors import LDLError
from ldl.options import check_options, options
from ldl.validation.tensors import check_parameters

SHOWN_ROWS = 10_000
"""Number of training rows that :func:`show_inputs` shows at most."""


def _check_loaded(backbone: Backbone, keys: Any) -> None:
    backbone.check_state()


class Backbone(nn.Module, ABC):
    """Map an input to features (..., F).

    Options are fields of a class under ``@options``, or arguments that a plain ``__init__`` only stores. ``build``
    checks them (``check_options``) and creates the parameters.

    Attributes:
        lr: Learning rate of the backbone; None uses that of the head.
        is_frozen: Whether its parameters never change, so that its features can be computed once.
        views: Number of augmented copies of each training image whose frozen maps are cached; 0 caches none. Needs
            :meth:`frozen_maps` and :meth:`from_frozen_maps`.
        enlarge: Factor by which images are enlarged first.
        gives_maps: Whether it returns features of every pixel, (B, H, W, F).
        no_graph: Reason, as a clause, why ``ldl export`` cannot record the backbone; empty if it can.
        gives_members: Whether it returns features of each of k members of an ensemble, (B, k, F). The head learns from
            all of them, and the mean of its k distributions is the prediction.
        learns_inputs: Whether :meth:`learn_inputs` is called before every fit.
        gives_bags: Whether it returns bags of instances, (B, J, F); known after ``build``.
        pretrained_from: Source of the pretrained weights, in words; empty without such weights.

    Examples:
        >>> import torch
        >>> from ldl import Backbone
        >>> class Pixels(Backbone):
        ...     def build(self, input_shape, load_weights=True):
        ...         super().build(input_shape, load_weights)
        ...         return input_shape[0] * input_shape[1] * input_shape[2]
        ...     def forward(self, inputs):
        ...         return inputs.flatten(1)
        >>> Pixels().build((3, 8, 8))
        192
    """

    lr: float | None = None
    is_frozen: bool = False
    views: int = 0
    enlarge: float = 1.0
    gives_maps: bool = False
    gives_bags: bool = False
    gives_members: ClassVar[bool] = False
    learns_inputs: ClassVar[bool] = False
    pretrained_from = ""
    no_graph: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self.register_load_state_dict_post_hook(_check_loaded)

    def check_state(self) -> None:
        """Raise LDLError for an invalid loaded state. Called after every loading, as for heads."""
        check_parameters(self)

    def check_images(self, input_shape: tuple[int, ...]) -> None:
        """Raise LDLError for an option out of range, or inputs that are not (channels, height, width)."""
        check_options(self)
        channels_last = len(input_shape) == 3 and input_shape[0] > 4 >= input_shape[2] > 0
        if len(input_shape) != 3 or channels_last:
            fix = "permute them in inputs()" if channels_last else "use Identity"
            raise LDLError(
                f"{type(self).__name__} needs images (channels, height, width), got inputs of shape {input_shape}; "
                f"{fix}"
            )

    def tuned_parameters(self) -> list[nn.Parameter]:
        """Return the parameters with the learning rate ``lr``: all, unless some are new to a pretrained network."""
        return list(self.parameters())

    @abstractmethod
    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Create the parameters for inputs of ``input_shape`` (without the batch) and return F.

        Args:
            input_shape: Shape of one input.
            load_weights: Load pretrained weights; False if those of a checkpoint replace them anyway.
        """

    def learn_inputs(self, rows: Tensor) -> None:
        """Receive the inputs (N, ...) of training rows: all, or ``SHOWN_ROWS`` of them. Does nothing by default."""

    def frozen_maps(self, inputs: Tensor) -> Tensor:
        """Return the maps of the frozen layers for inputs (B, ...), on which the output depends alone."""
        raise LDLError(f"{type(self).__name__} caches no views: leave views 0, or define frozen_maps")

    def from_frozen_maps(self, maps: Tensor) -> Tensor:
        """Return features (B, F) of frozen maps of images (B, 1, ...), or with mirror images (B, 2, ...)."""
        raise NotImplementedError

    def boxes(self, input_shape: tuple[int, ...]) -> Tensor | None:
        """Return the places of a bag's instances in an image of ``input_shape``; None, the default, without places.

        Places are (J, 4) top, left, bottom, right in pixels: windows of one size on a regular grid, row by row.
        """
        return None


def show_inputs(backbone: Backbone, data: Any) -> None:
    """Show training inputs of a data module to a backbone that learns from them before a fit."""
    rows = data.split.train
    if len(rows) > SHOWN_ROWS:
        rows = np.sort(np.random.default_rng(run_seed()).choice(rows, SHOWN_ROWS, replace=False))
    backbone.learn_inputs(data.inputs(rows, rows, train=False))


@options
class Identity(Backbone):
    """Return the input unchanged, for tables and precomputed features.

    Args:
        flatten: Flatten an input of several dimensions, such as a small image, into one vector.

    Examples:
        >>> import torch
        >>> from ldl.backbones import Identity
        >>> backbone = Identity(flatten=True)
        >>> backbone.build((1, 12, 12))
        144
        >>> backbone(torch.zeros(2, 1, 12, 12)).shape
        torch.Size([2, 144])
    """

    flatten: bool = False

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Return the number of features. Raises LDLError for an image without ``flatten``."""
        if self.flatten:
            return math.prod(input_shape)
        self.gives_bags = len(input_shape) == 2
        if len(input_shape) > 2:
            shape = "x".join(map(str, input_shape))
            raise LDLError(
                f"Identity got inputs of {shape}; set model.backbone.flatten: true, or use the Timm backbone"
            )
        return input_shape[-1]

    def forward(self, inputs: Tensor) -> Tensor:
        """Map (B, ...) to (B, F), bags (B, J, F) unchanged; uint8 images of 0 to 255 become 0 to 1."""
        if inputs.dtype == torch.uint8:
            inputs = inputs / 255
        return inputs.flatten(1) if self.flatten else inputs


class WholeImages(Backbone):
    """Return images unchanged, for heads that read the pixels (``ldl.head.ImageHead``)."""

    gives_maps = True

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Return the number of channels. Raises LDLError unless inputs are images of three channels."""
        if len(input_shape) != 3 or input_shape[0] != 3:
            shape = "x".join(map(str, input_shape))
            raise LDLError(f"WholeImages got inputs of {shape}; it takes colour images of 3 channels, as of BSDS500")
        return input_shape[0]

    def forward(self, inputs: Tensor) -> Tensor:
        """Return (B, 3, H, W) unchanged."""
        return inputs
