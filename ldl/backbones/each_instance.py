"""A network on every instance of a bag."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ldl.backbones.base import Backbone, Identity
from ldl.errors import LDLError
from ldl.methods.boosting.packing import present
from ldl.methods.traced import traced
from ldl.options import option, options


@options
class EachInstance(Backbone):
    """Applies a backbone to every instance of a bag, such as a network to every picture.

    Inputs (B, J, ...) become features (B, J, F), for heads that take bags. A missing instance is NaN throughout, as
    pictures of floats can be; those of uint8 all exist. The backbone sees only what exists.

    Args:
        backbone: The backbone, by class name; None is ``Identity``.
    """

    backbone: Backbone = option(default=None)

    def __post_init__(self) -> None:
        if self.backbone is None:
            self.backbone = Identity()
        self.is_fixed = self.backbone.is_fixed

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Create the backbone for inputs (J, ...), J of any size.

        Raises LDLError for inputs that are no bags, or a backbone that gives bags or maps.
        """
        if len(input_shape) < 2:
            raise LDLError(f"EachInstance needs bags (instances, ...), got inputs of shape {input_shape}; leave it out")
        if self.backbone.gives_maps:
            name = type(self.backbone).__name__
            raise LDLError(
                f"EachInstance.backbone {name} gives features at every pixel, where each instance has one row of them; "
                "take Timm, HOG or Haar"
            )
        width = self.backbone.build(input_shape[1:], load_weights)
        if self.backbone.gives_bags:
            raise LDLError("EachInstance.backbone must make one instance of one input, not a bag; set window: null")
        self.lr = self.backbone.lr
        self.gives_bags = True
        return width

    def tuned_parameters(self) -> list[nn.Parameter]:
        """As the backbone's."""
        return self.backbone.tuned_parameters()

    def forward(self, inputs: Tensor) -> Tensor:
        """Bags (B, J, ...) to (B, J, F), NaN where there is no instance."""
        exists = present(inputs.flatten(2))
        if traced():
            pictures = torch.where(exists.reshape(*exists.shape, *[1] * (inputs.ndim - 2)), inputs, 0)
            found = self.backbone(pictures.flatten(0, 1)).unflatten(0, exists.shape)
            return torch.where(exists.unsqueeze(-1), found, torch.nan)
        found = self.backbone(inputs[exists])
        features = found.new_full((*exists.shape, found.shape[-1]), torch.nan)
        return features.index_put((exists,), found)
