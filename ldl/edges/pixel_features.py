"""Features at every pixel, from all scales of a timm network."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from safetensors import safe_open
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

from ldl.backbones.timm_network import TimmNetwork, local_weights
from ldl.errors import LDLError
from ldl.methods.torch_utils import traced
from ldl.options import option, options


@options
class PixelFeatures(TimmNetwork):
    """Join the feature maps of a timm network, from coarse to fine, to one map with features at every pixel.

    Side outputs as in HED (Xie & Tu 2015), joined as in feature pyramids (Lin et al. 2017). The output is (B, H, W, F),
    so any head predicts a distribution at each pixel.

    Args:
        width: Number of features F at every pixel.
        scales: Sizes of an image, as factors, whose features are averaged in evaluation.
        mirror: In evaluation, average the features of each image and of its mirror image.
        margin: In evaluation, pad images with this number of reflected pixels. Convolutions would otherwise detect
            false edges at the zeros outside the frame.
        joint: Convolution that joins the maps at each stride: 3x3, ``full`` or the cheaper ``separable`` (each
            feature by itself, then 1x1).
        side_outputs: Number of maps before the finest with a loss by the same head: deep supervision.
        freeze_statistics: Keep the normalisation statistics of the pretrained weights, because batches of crops are
            small.
        fold: Fold the frozen normalisation into the convolutions before it: equal up to rounding, and faster.
        lr: Learning rate of the pretrained network; None uses that of the head, as do the layers that join the maps.

    Examples:
        >>> import torch
        >>> from ldl.edges import PixelFeatures
        >>> backbone = PixelFeatures("test_resnet", pretrained=False, width=4)
        >>> backbone.build((3, 32, 32))
        4
        >>> backbone(torch.zeros(1, 3, 32, 32)).shape
        torch.Size([1, 32, 32, 4])
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
    lr: float | None = option(default=None, least=0, may_change=True, role="start")

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Create the network for images (channels, any height, any width) and return F. Raises LDLError."""
        self.check_images(input_shape)
        if self.fold and not self.freeze_statistics:
            raise LDLError("PixelFeatures.fold folds frozen statistics; set freeze_statistics true, or fold false")
        options: dict[str, Any] = {"features_only": True, "in_chans": input_shape[0]}
        wanted = bool(self.pretrained) and load_weights
        if file := wanted and local_weights(self.model):
            options |= {"pretrained": True, "pretrained_cfg_overlay": {"file": str(file)}}
        self.network = self._create(f"the feature maps of {self.name}", wanted and not file, load_weights, **options)
        if file:
            self.pretrained_from = str(file)
            self._check_names(file)
        channels = self.network.feature_info.channels()
        self.strides = self.network.feature_info.reduction()
        self.sides = nn.ModuleList(nn.Conv2d(count, self.width, 1) for count in channels)
        self.joints = nn.ModuleList(self._make_joint() for _ in channels)
        import timm

        config = timm.get_pretrained_cfg(self.model) or timm.models.PretrainedCfg()
        self._register_pixel_scale(config.mean, config.std, input_shape[0])
        self.to(memory_format=self.memory_format)
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
        """Raise LDLError unless the network takes images of any size and returns maps (B, F, H, W)."""
        cell = self.strides[-1]
        self.network.eval()
        try:
            self._at_scale(torch.zeros(1, channels, 3 * cell, 5 * cell), 1)
        except Exception as error:  # errors of timm's networks have no common base
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
        # timm loads the layers that it needs, even none; some networks have flattened names.
        with safe_open(file, "pt") as weights:
            names = {name.replace(".", "_") for name in weights.keys()}  # noqa: SIM118  (not a dict)
        if names.isdisjoint(name.removeprefix("model.").replace(".", "_") for name in self.network.state_dict()):
            raise LDLError(f"{file} holds no weights of {self.name}; remove it, or give another LDL_WEIGHTS")

    def tuned_parameters(self) -> list[nn.Parameter]:
        """Return those of the pretrained network; the layers that join its maps are new."""
        return list(self.network.parameters())

    def train(self, mode: bool = True) -> PixelFeatures:
        """Switch the mode; frozen statistics do not change."""
        super().train(mode)
        if self.freeze_statistics:
            for module in self.modules():
                if isinstance(module, _BatchNorm):
                    module.eval()
        return self

    def forward(self, inputs: Tensor) -> Tensor:
        """Map images (B, channels, H, W) of any size to (B, H, W, F).

        Images of 0 to 255 in uint8 are normalised as the network's weights require; others are not scaled. With S side
        outputs, the result is (B, 1 + S, H, W, F) in training, the finest map first. Raises LDLError for images in
        evaluation that are too small for ``margin``.
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
        # One at a time, because the maps of all scales of a large image may not fit into memory.
        for scale in scales:
            total = total + self._at_scale(inputs, scale)[0] / count
            if self.mirror:
                total = total + self._at_scale(inputs.flip(-1), scale)[0].flip(-2) / count
        return total[:, self.margin : self.margin + height, self.margin : self.margin + width]

    def _reflected(self, inputs: Tensor) -> Tensor:
        """Return images with ``margin`` reflected pixels on every side."""
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
        """Return the ``count`` finest joined maps (B, H, W, F) of resized images, the finest first."""
        height, width = inputs.shape[-2:]
        size = [_scaled(length, scale) for length in (height, width)]
        if scale != 1:
            inputs = _resize(inputs, size)
        # Pad to whole cells of the coarsest map, so that maps of different scales are aligned.
        down, right = (-length % self.strides[-1] for length in size)
        inputs = F.pad(inputs, (0, right, 0, down), mode="replicate").contiguous(memory_format=self.memory_format)
        maps = self._folded(self.network, inputs) if self._folded else self.network(inputs)
        joined: list[Tensor] = []
        for features, side, joint in reversed(list(zip(maps, self.sides, self.joints))):
            features = side(features)
            if joined:
                features = features + _resize(joined[0], features.shape[-2:])
            joined.insert(0, F.relu(joint(features)))
        whole = [_resize(outputs, inputs.shape[-2:])[..., : size[0], : size[1]] for outputs in joined[:count]]
        if scale != 1:
            whole = [_resize(outputs, [height, width]) for outputs in whole]
        return [outputs.permute(0, 2, 3, 1) for outputs in whole]


def _scaled(length: int, scale: float) -> int:
    """Return ``length`` times ``scale``, rounded, at least 1."""
    if scale == 1:
        return length
    if not traced():
        return max(1, round(scale * length))
    # A graph records integers of unknown size, and ONNX divides negative ones otherwise than Python. Halves are rounded
    # to even; for scales such as 0.7, which are no binary fractions, they may differ from the line above.
    fraction = Fraction(scale).limit_denominator(10_000)
    double, whole = 2 * fraction.numerator * length + fraction.denominator, 2 * fraction.denominator
    rounded, over = double // whole, double % whole
    is_half = 1 - (over + whole - 1) // whole
    return cast(int, torch.sym_max(1, rounded - is_half * (rounded % 2)))


def _resize(maps: Tensor, size: Sequence[int]) -> Tensor:
    return F.interpolate(maps, size=tuple(size), mode="bilinear", align_corners=False)


class Folded:
    """A network with frozen normalisation folded into the convolutions, which saves a pass over every map.

    A convolution ``w * x`` and the normalisation ``g (y - m) / s + b`` of its output are one convolution with weight
    ``w g / s`` and bias ``b - m g / s``. Weight and bias are computed from the network's parameters at every call, so
    the parameters, their names and their gradients remain, up to rounding.

    Args:
        network: The network, of which only the structure is stored.
        channels: Number of channels of its images.

    Raises:
        LDLError: The folded network has another output, for example if maps are also used before the normalisation.
    """

    def __init__(self, network: nn.Module, channels: int) -> None:
        example = torch.randn(1, channels, 64, 64, generator=torch.Generator().manual_seed(0))
        self.pairs, wanted = _pairs(network, example)
        self.skeleton = copy.deepcopy(network).to("meta")
        for conv, norm in self.pairs:
            layer: Any = self.skeleton.get_submodule(conv)
            layer.bias = nn.Parameter(torch.empty(layer.out_channels, device="meta"))
            rest: Any = self.skeleton.get_submodule(norm)
            parent, _, name = norm.rpartition(".")
            # timm's normalisations contain their activation.
            after = nn.Sequential(*(getattr(rest, extra) for extra in ("drop", "act") if hasattr(rest, extra)))
            setattr(self.skeleton.get_submodule(parent), name, after)
        with torch.no_grad():
            same = (torch.allclose(*maps, rtol=1e-3, atol=1e-3) for maps in zip(self(network, example), wanted))
            if not all(same):
                raise LDLError(f"PixelFeatures.fold: {type(network).__name__} cannot be folded; leave fold false")

    def __call__(self, network: nn.Module, inputs: Tensor) -> Any:
        """Return ``network(inputs)`` of evaluation mode."""
        tensors = dict(network.named_parameters()) | dict(network.named_buffers())
        for conv, norm in self.pairs:
            layer: Any = network.get_submodule(norm)
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                tensors.pop(f"{norm}.{name}", None)
            scale = layer.weight * (layer.running_var + layer.eps).rsqrt()
            weight = tensors[f"{conv}.weight"]
            tensors[f"{conv}.weight"] = weight * scale.reshape(-1, *[1] * (weight.ndim - 1))
            tensors[f"{conv}.bias"] = layer.bias - layer.running_mean * scale
        self.skeleton.train(network.training)
        return functional_call(self.skeleton, tensors, (inputs,))


@torch.no_grad()
def _pairs(network: nn.Module, example: Tensor) -> tuple[list[tuple[str, str]], Any]:
    """Return names of convolutions without bias and of the normalisations of their outputs, and all outputs."""
    made: dict[int, tuple[str, Tensor]] = {}
    pairs: list[tuple[str, str]] = []
    hooks = []
    for name, module in network.named_modules():
        if isinstance(module, nn.Conv2d) and module.bias is None:

            def note(module: Any, inputs: Any, output: Tensor, name: str = name) -> None:
                made[id(output)] = name, output  # stored, so that no other tensor gets its id

            hooks.append(module.register_forward_hook(note))
        elif isinstance(module, _BatchNorm) and module.affine and module.track_running_stats:

            def match(module: Any, inputs: tuple[Tensor], name: str = name) -> None:
                if (conv := made.get(id(inputs[0]))) is not None:
                    pairs.append((conv[0], name))

            hooks.append(module.register_forward_pre_hook(match))
    training = network.training
    output = network.eval()(example)
    network.train(training)
    for hook in hooks:
        hook.remove()
    return pairs, output
