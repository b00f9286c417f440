"""A backbone for every instance of a bag."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ldl.backbones.base import Backbone, Identity
from ldl.bags.layout import present
from ldl.errors import LDLError
from ldl.methods.torch_utils import traced
from ldl.options import option, options


@options
class EachInstance(Backbone):
    """Apply a backbone to every instance of a bag, such as a network to every image.

    Inputs (B, J, ...) become features (B, J, F), for heads that take bags. A missing instance is NaN throughout;
    instances of uint8 images cannot be missing. The backbone processes existing instances only.

    Args:
        backbone: The backbone, by class name; None is ``Identity``.

    Examples:
        >>> import torch
        >>> from ldl.backbones import Identity
        >>> from ldl.bags import EachInstance
        >>> backbone = EachInstance(Identity(flatten=True))
        >>> backbone.build((5, 1, 4, 4))  # bags of 5 images
        16
        >>> backbone(torch.zeros(2, 5, 1, 4, 4)).shape
        torch.Size([2, 5, 16])
    """

    backbone: Backbone = option(default=None)

    def __post_init__(self) -> None:
        if self.backbone is None:
            self.backbone = Identity()
        self.is_frozen = self.backbone.is_frozen

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Create the backbone for inputs (J, ...) with J of any size.

        Raises LDLError for inputs that are not bags, or a backbone that returns bags or maps.
        """
        if len(input_shape) < 2:
            raise LDLError(
                f"EachInstance needs bags (instances, ...), got inputs of shape {input_shape}; leave EachInstance out"
            )
        width = self.backbone.build(input_shape[1:], load_weights)
        if self.backbone.gives_maps or self.backbone.gives_bags or self.backbone.gives_members:
            raise LDLError(
                f"EachInstance.backbone {type(self.backbone).__name__} must give one row of features per instance, as "
                "Timm, HOG and Haar without window do"
            )
        self.lr = self.backbone.lr
        self.gives_bags = True
        return width

    def tuned_parameters(self) -> list[nn.Parameter]:
        """Return the tuned parameters of the wrapped backbone."""
        return self.backbone.tuned_parameters()

    def forward(self, inputs: Tensor) -> Tensor:
        """Map bags (B, J, ...) to (B, J, F), NaN for missing instances."""
        exists = present(inputs.flatten(2))
        if traced():
            filled = torch.where(exists.reshape(*exists.shape, *[1] * (inputs.ndim - 2)), inputs, 0)
            features = self.backbone(filled.flatten(0, 1)).unflatten(0, exists.shape)
            return torch.where(exists.unsqueeze(-1), features, torch.nan)
        features = self.backbone(inputs[exists])
        padded = features.new_full((*exists.shape, features.shape[-1]), torch.nan)
        return padded.index_put((exists,), features)
