"""The contract of a backbone, inputs to features, and the one that hands inputs on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ldl.errors import LDLError
from ldl.options import check_options, options
from ldl.trust.learned import check_parameters


def _check_loaded(backbone: Backbone, keys: Any) -> None:
    backbone.check_state()


class Backbone(nn.Module, ABC):
    """Turns an input into features (..., F).

    Like a head's, its options are fields of a class under ``@options``, or arguments that a plain ``__init__`` only
    stores; ``build`` checks them (``check_options``) and makes the parameters.

    Attributes:
        lr: Learning rate of its own, or None for that of the head.
        is_fixed: Whether it has parameters that never change, so that its features may be computed once.
        views: Of how many random views of each training picture it keeps what its fixed layers make of them; 0 keeps
            none. A backbone that can do so has :meth:`kept` and :meth:`from_kept`.
        enlarge: By what factor it enlarges images first.
        gives_maps: Whether its features are those of every pixel, (B, H, W, F).
        no_graph: Why ``ldl export`` cannot record what it computes, as a clause; empty where it can.
        gives_bags: Whether its features are bags of instances, (B, J, F); known once it is built.
        pretrained_from: Where ``build`` has found pretrained weights, in words; empty where it loaded none.
    """

    lr: float | None = None
    is_fixed: bool = False
    views: int = 0
    enlarge: float = 1.0
    gives_maps: bool = False
    gives_bags: bool = False
    pretrained_from = ""
    no_graph: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self.register_load_state_dict_post_hook(_check_loaded)

    def check_state(self) -> None:
        """As that of heads: raise LDLError where what was loaded cannot be right. Called after every loading."""
        check_parameters(self)

    def check_images(self, input_shape: tuple[int, ...]) -> None:
        """Raise LDLError for an option out of range, or inputs that are not (channels, height, width)."""
        check_options(self)
        if len(input_shape) != 3:
            raise LDLError(
                f"{type(self).__name__} needs images (channels, height, width), got inputs of shape {input_shape}; "
                "use Identity"
            )

    def tuned_parameters(self) -> list[nn.Parameter]:
        """The parameters that learn at ``lr``: all, unless some are new to a pretrained network."""
        return list(self.parameters())

    @abstractmethod
    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Create the parameters for inputs of ``input_shape`` (without the batch) and return F.

        Args:
            input_shape: Shape of one input.
            load_weights: Load pretrained weights; False where a checkpoint's replace them anyway.
        """

    def kept(self, inputs: Tensor) -> Tensor:
        """What the fixed layers make of inputs (B, ...), on which the others' outputs depend alone."""
        raise LDLError(f"{type(self).__name__} keeps no views: define kept and from_kept, or leave views 0")

    def from_kept(self, maps: Tensor) -> Tensor:
        """Features (B, F) of what :meth:`kept` made of pictures, (B, 1, ...), or of them and of their mirror images,
        (B, 2, ...)."""
        raise LDLError(f"{type(self).__name__} keeps no views: define kept and from_kept, or leave views 0")

    def boxes(self, input_shape: tuple[int, ...]) -> Tensor | None:
        """Where the instances of a bag lie in a picture of ``input_shape``: (J, 4) top, left, bottom, right in pixels.

        Windows of one size on a regular grid, row by row; None, the default, where instances have no such places.
        """
        return None


@options
class Identity(Backbone):
    """Hands the input on, for tables and for features that were computed before.

    Args:
        flatten: Flatten an input of several dimensions, such as a small image, into one vector.
    """

    flatten: bool = False

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Return the number of features. Raises LDLError for an image that is not to be flattened."""
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
        """(B, ...) to (B, F), bags (B, J, F) as they are; images of 0 to 255 in uint8 become 0 to 1."""
        if inputs.dtype == torch.uint8:
            inputs = inputs / 255
        return inputs.flatten(1) if self.flatten else inputs


class WholeImages(Backbone):
    """Hands images on as they are, for heads that look at pixels themselves (``ldl.head.ImageHead``)."""

    gives_maps = True

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Return the number of channels. Raises LDLError where inputs are no images of three channels."""
        if len(input_shape) != 3 or input_shape[0] != 3:
            shape = "x".join(map(str, input_shape))
            raise LDLError(f"WholeImages got inputs of {shape}; it takes colour images of 3 channels, as of BSDS500")
        return input_shape[0]

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, 3, H, W) as they are."""
        return inputs
