"""Features at every pixel, from all scales of a timm network."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ldl.backbones.folded import Folded
from ldl.backbones.timm_network import TimmNetwork, local_weights
from ldl.errors import LDLError
from ldl.methods.traced import traced
from ldl.options import option, options


@options
class PixelFeatures(TimmNetwork):
    """The feature maps of a timm network, from coarse to fine added up to one map with features at every pixel.

    Side outputs as in HED (Xie & Tu 2015), joined as in feature pyramids (Lin et al. 2017). It hands on (B, H, W, F),
    so that any head gives a distribution at each pixel.

    Args:
        width: Features F at every pixel.
        scales: Sizes, as factors, at which an image is looked at in evaluation; the features are averaged.
        mirror: In evaluation, average the features of each image and of its mirror image.
        margin: In evaluation, go on beyond the frame with so many pixels of the image's own reflection; at the zeros
            that convolutions see there otherwise, edges are seen that are none.
        joint: How maps are joined at each stride: by a convolution of 3x3, ``full`` or ``separable`` (each feature by
            itself, then 1x1), which is cheaper.
        side_outputs: So many maps before the finest are learned from too, by the same head: deep supervision.
        freeze_statistics: Keep the normalisation statistics of the pretrained weights; batches of crops are small.
        fold: Fold the frozen normalisation into the convolutions before it: the same up to rounding, and faster.
        lr: Learning rate of the pretrained network; None takes that of the head, as the layers that join the maps do.
    """

    gives_maps = True

    name: str = "mobilenetv2_100"
    pretrained: bool | Literal["auto"] = "auto"
    width: int = option(default=32, least=1, most=4096)
    scales: Sequence[float] = option(default=(1.0,), least=0.05, most=20, may_change=True)
    mirror: bool = option(default=False, may_change=True)
    margin: int = option(default=0, least=0, most=1024, what="pixels", may_change=True)
    joint: Literal["full", "separable"] = "full"
    side_outputs: int = option(default=0, least=0, most=8, may_change=True)
    freeze_statistics: bool = True
    fold: bool = option(default=False, may_change=True)
    lr: float | None = option(default=None, least=0, may_change=True)

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Create the network for images (channels, any height, any width) and return F. Raises LDLError."""
        self.check_images(input_shape)
        if self.fold and not self.freeze_statistics:
            raise LDLError("PixelFeatures.fold folds frozen statistics; set freeze_statistics true, or fold false")
        if not self.scales:
            raise LDLError("PixelFeatures.scales [] must have one factor at least, such as 1.0")
        options: dict[str, Any] = {"features_only": True, "in_chans": input_shape[0]}
        wanted = bool(self.pretrained) and load_weights
        if file := wanted and local_weights(self.name):
            options |= {"pretrained": True, "pretrained_cfg_overlay": {"file": str(file)}}
        self.network = self._create(f"the feature maps of {self.name}", wanted and not file, **options)
        if file:
            self.pretrained_from = str(file)
            self._check_names(file)
        channels = self.network.feature_info.channels()
        self.strides = self.network.feature_info.reduction()
        self.sides = nn.ModuleList(nn.Conv2d(count, self.width, 1) for count in channels)
        self.joints = nn.ModuleList(self._make_joint() for _ in channels)
        import timm

        config = timm.get_pretrained_cfg(self.name) or timm.models.PretrainedCfg()
        self._register_pixel_scale(config.mean, config.std, input_shape[0])
        self.to(memory_format=torch.channels_last)
        self._folded: Folded | None = None
        self._check_maps(input_shape[0])
        self.train(self.training)
        if self.side_outputs >= len(channels):
            raise LDLError(
                f"PixelFeatures.side_outputs {self.side_outputs} must be in 0..{len(channels) - 1}: {self.name} has "
                f"{len(channels)} maps"
            )
        if self.fold:
            self._folded = Folded(self.network, input_shape[0])
        return self.width

    @torch.no_grad()
    def _check_maps(self, channels: int) -> None:
        """Raise LDLError where the network does not take images of any size, or gives no maps (B, F, H, W)."""
        cell = self.strides[-1]
        self.network.eval()
        try:
            self._at_scale(torch.zeros(1, channels, 3 * cell, 5 * cell), 1)
        except (RuntimeError, AssertionError, ValueError) as error:
            raise LDLError(
                f"PixelFeatures.name {self.name!r} takes no images of any size, or gives no maps of them: "
                f"{' '.join(str(error).split())[:160]}; take a convolutional network, such as mobilenetv2_100"
            ) from error

    def _make_joint(self) -> nn.Module:
        if self.joint == "full":
            return nn.Conv2d(self.width, self.width, 3, padding=1)
        each = nn.Conv2d(self.width, self.width, 3, padding=1, groups=self.width)
        return nn.Sequential(each, nn.Conv2d(self.width, self.width, 1))

    def _check_names(self, file: Path) -> None:
        # timm takes the layers that it needs, none of them too; some networks have theirs under flattened names.
        with safe_open(file, "pt") as weights:
            names = {name.replace(".", "_") for name in weights.keys()}  # noqa: SIM118  (it is no dict)
        if names.isdisjoint(name.removeprefix("model.").replace(".", "_") for name in self.network.state_dict()):
            raise LDLError(f"{file} holds no weights of {self.name}; remove it, or give another LDL_WEIGHTS")

    def tuned_parameters(self) -> list[nn.Parameter]:
        """Those of the pretrained network; the layers that join its maps are new."""
        return list(self.network.parameters())

    def train(self, mode: bool = True) -> PixelFeatures:
        """Switch the mode; frozen statistics stay as they are."""
        super().train(mode)
        if self.freeze_statistics:
            for module in self.modules():
                if isinstance(module, _BatchNorm):
                    module.eval()
        return self

    def forward(self, inputs: Tensor) -> Tensor:
        """Images (B, channels, H, W) of any size to (B, H, W, F).

        Images of 0 to 255 in uint8 are normalised as the network's weights expect; others are taken as they are.
        With S side outputs it is (B, 1 + S, H, W, F) in training, the finest map first.
        Raises LDLError for images in evaluation that are too small for ``margin``.
        """
        if inputs.dtype == torch.uint8:
            inputs = (inputs - self.mean) / self.std
        if self.training:
            finest, *coarser = self._at_scale(inputs, self.enlarge, 1 + self.side_outputs)
            return torch.stack([finest, *coarser]).transpose(0, 1) if coarser else finest
        height, width = inputs.shape[-2:]
        inputs = self._reflected(inputs)
        scales = [scale * self.enlarge for scale in self.scales]
        count = len(scales) * (1 + self.mirror)
        total = torch.zeros((), device=inputs.device)
        # One after the other: the maps of all scales of a large image would not fit into memory together.
        for scale in scales:
            total = total + self._at_scale(inputs, scale)[0] / count
            if self.mirror:
                total = total + self._at_scale(inputs.flip(-1), scale)[0].flip(-2) / count
        return total[:, self.margin : self.margin + height, self.margin : self.margin + width]

    def _reflected(self, inputs: Tensor) -> Tensor:
        """Images with ``margin`` pixels more on every side."""
        if not self.margin:
            return inputs
        height, width = inputs.shape[-2:]
        if not traced() and min(height, width) <= self.margin:
            raise LDLError(
                f"PixelFeatures.margin {self.margin} must be below the sides of every image, and one has "
                f"{width}x{height} pixels; give --model.backbone.margin {min(height, width) - 1} or less"
            )
        return F.pad(inputs, [self.margin] * 4, mode="reflect")

    def _at_scale(self, inputs: Tensor, scale: float, count: int = 1) -> list[Tensor]:
        """The ``count`` finest joined maps (B, H, W, F) of resized images, the finest first."""
        height, width = inputs.shape[-2:]
        size = [_scaled(length, scale) for length in (height, width)]
        if scale != 1:
            inputs = _resize(inputs, size)
        # Whole cells of the coarsest map, or maps of different scales would not lie on each other.
        down, right = (-length % self.strides[-1] for length in size)
        inputs = F.pad(inputs, (0, right, 0, down), mode="replicate").contiguous(memory_format=torch.channels_last)
        maps = self._folded(self.network, inputs) if self._folded else self.network(inputs)
        joined: list[Tensor] = []
        for features, side, joint in reversed(list(zip(maps, self.sides, self.joints))):
            features = side(features)
            if joined:
                features = features + _resize(joined[0], features.shape[-2:])
            joined.insert(0, F.relu(joint(features)))
        whole = [_resize(part, inputs.shape[-2:])[..., : size[0], : size[1]] for part in joined[:count]]
        if scale != 1:
            whole = [_resize(part, [height, width]) for part in whole]
        return [part.permute(0, 2, 3, 1) for part in whole]


def _scaled(length: int, scale: float) -> int:
    """``length`` times ``scale``, rounded, 1 at least."""
    if scale == 1:
        return length
    if not traced():
        return max(1, round(scale * length))
    # A graph records whole numbers of an unknown length, of which ONNX divides none below 0 as Python does. Halves go
    # to the even number; those of scales that are no binary fractions, such as 0.7, may go the other way than above.
    part = Fraction(scale).limit_denominator(10_000)
    double, whole = 2 * part.numerator * length + part.denominator, 2 * part.denominator
    rounded, over = double // whole, double % whole
    is_half = 1 - (over + whole - 1) // whole
    return cast(int, torch.sym_max(1, rounded - is_half * (rounded % 2)))


def _resize(maps: Tensor, size: Sequence[int]) -> Tensor:
    return F.interpolate(maps, size=tuple(size), mode="bilinear", align_corners=False)
