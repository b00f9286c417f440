"""Any timm network as a backbone, with its weights."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ldl.backbones.split import Split, whole
from ldl.backbones.timm_network import TimmNetwork, local_weights
from ldl.checkpoint import CHECKPOINT_KEY, read_checkpoint
from ldl.collective import process_rank
from ldl.errors import LDLError
from ldl.options import option, options
from ldl.trust.archive import check_archive
from ldl.trust.schema import check_weights


@options
class Timm(TimmNetwork):
    """Any timm network, up to its pooled features.

    Args:
        weights: A local weights file (.safetensors, .pth), or a checkpoint of ldl (.ckpt), to load instead.
        freeze: Keep the network fixed, normalisation statistics included. Its features are then computed once. This
            and ``freeze_groups`` are refused where ``pretrained: auto`` finds no weights.
        freeze_groups: Keep the first groups of layers fixed, counted as timm does for layer-wise learning rates
            (``group_matcher``): the stem, then block after block.
        freeze_statistics: Keep the statistics by which batches are normalised as they were loaded, in training too, so
            that those of few pictures do not replace them; scales and shifts go on learning.
        views: With ``freeze_groups``, keep what the fixed layers make of so many random views of each training
            picture, computed once for all epochs and folds, and train on these, for about as many epochs as there are
            views. 0 draws new views every epoch, through all layers.
        lr: Learning rate of the network; None takes that of the head.
        drop_rate: Dropout of the network before its classifier.
        drop_path_rate: Stochastic depth, for networks that have it; 0 leaves it out.
        mirror: In evaluation, average the features of each image and of its mirror image.
        compiled: On CUDA, compile the training step with ``torch.compile``: a minute at the start, then faster. On
            other devices, where it would take many, nothing is compiled. One line says which.
        channels_last: Keep images, weights and maps with the channels last in memory, as convolutions are fastest.
    """

    weights: str | None = option(default=None, may_change=True)
    freeze: bool = option(default=False, may_change=True)
    freeze_groups: int = option(default=0, least=0, may_change=True)
    freeze_statistics: bool = option(default=False, may_change=True)
    views: int = option(default=0, least=0, most=1000, may_change=True)
    lr: float | None = option(default=None, least=0, may_change=True)
    drop_rate: float = option(default=0.0, least=0, most=1)
    drop_path_rate: float = option(default=0.0, least=0, below=1)
    mirror: bool = option(default=False, may_change=True)
    compiled: bool = option(default=False, may_change=True)
    channels_last: bool = option(default=True, may_change=True)

    def __post_init__(self) -> None:
        self.is_fixed = self.freeze
        self._fixed: list[nn.Module] = []
        self._split: Split | None = None
        self._shape: tuple[int, ...] = ()
        self._compiled: Any = None

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Create the network for images (channels, height, width). Raises LDLError."""
        self.check_images(input_shape)
        self._shape, self._split = tuple(input_shape), None
        if self.weights and self.pretrained is True:
            raise LDLError("give either Timm.weights or Timm.pretrained: true, not both")
        options: dict[str, Any] = {"in_chans": input_shape[0], "drop_rate": self.drop_rate}
        options |= {"drop_path_rate": self.drop_path_rate} if self.drop_path_rate else {}
        file = (self.weights or (self.pretrained and local_weights(self.name))) if load_weights else None
        saved = self._read_weights(Path(file)) if file else None
        self.network = self._create(self.name, bool(self.pretrained) and load_weights and not file, **options)
        self.network.reset_classifier(0)
        if saved is not None:
            self.pretrained_from = str(file)
            try:
                self._take(saved, input_shape[0])
            except Exception as error:  # those of torch and timm have no common base
                raise LDLError(f"{file} holds no weights that fit {self.name}: {error}") from error
        kept = "freeze" if self.freeze else f"freeze_groups {self.freeze_groups}" if self.freeze_groups else ""
        if kept and load_weights and self.pretrained == "auto" and not self.pretrained_from:
            raise LDLError(
                f"Timm.{kept} would keep random layers: no pretrained weights of {self.name} are at hand or on "
                f"the hub; put a file {self.name}*.safetensors into LDL_WEIGHTS, or set pretrained: false for random "
                "ones"
            )
        config = self.network.pretrained_cfg
        self._register_pixel_scale(config["mean"], config["std"], input_shape[0])
        self._freeze()
        if self.views and (not self.freeze_groups or self.freeze):
            raise LDLError(f"Timm.views {self.views} needs freeze_groups without freeze; or leave views 0")
        if self.views and load_weights:  # a network that is only loaded may never need it, or have no numbers yet
            self._cut()
        if self.freeze_statistics and not self._norms():
            raise LDLError(
                f"Timm.freeze_statistics: {self.name} normalises by no statistics of batches; leave it out, or take "
                "another network"
            )
        if self.channels_last:
            self.network.to(memory_format=torch.channels_last)
        features = self._width(input_shape)
        # Trainers do not always call train() before the first batch: a frozen network must be in evaluation already.
        self.train(self.training)
        return features

    @torch.no_grad()
    def _width(self, input_shape: tuple[int, ...]) -> int:
        """The number of features that the network makes of such images. Raises LDLError for a size it does not take."""
        try:
            return int(self.network.eval()(self._scaled(torch.zeros(1, *input_shape))).shape[-1])
        except (RuntimeError, AssertionError, ValueError) as error:
            shape = "x".join(map(str, input_shape))
            raise LDLError(
                f"{self.name} does not take images of {shape}: {' '.join(str(error).split())[:160]}; set "
                "data.crop_size to the size it was made for, or take another network"
            ) from error

    def _take(self, saved: dict[str, Tensor], channels: int) -> None:
        """Take weights; those of the first layer are for three channels: summed or repeated for another number."""
        from timm.models import adapt_input_conv

        first = self.network.pretrained_cfg["first_conv"]
        for layer in [first] if isinstance(first, str) else first:
            # Of other numbers than 1 and 3 timm takes no weights, not even where they fit.
            if f"{layer}.weight" in saved and saved[f"{layer}.weight"].shape[1] != channels:
                saved[f"{layer}.weight"] = adapt_input_conv(channels, saved[f"{layer}.weight"])
        check_weights(self.network, saved)
        self.network.load_state_dict(saved)
        self.check_state()

    def _freeze(self) -> None:
        if self.freeze:
            self._fixed = [self.network.requires_grad_(False)]
        elif self.freeze_groups:
            from timm.models import group_parameters

            groups = group_parameters(self.network, self.network.group_matcher(coarse=False))
            if not 0 < self.freeze_groups < len(groups):
                raise LDLError(
                    f"Timm.freeze_groups {self.freeze_groups} must be in 0..{len(groups) - 1}, "
                    f"the groups of layers of {self.name}"
                )
            names = [name for number in sorted(groups)[: self.freeze_groups] for name in groups[number]]
            held = {self.network.get_parameter(name) for name in names}
            self._fixed = whole(self.network, held)
            for parameter in held:
                parameter.requires_grad_(False)

    def _cut(self) -> Split:
        """The network in two parts."""
        if self._split is None:
            example = torch.randn(2, *self._shape, generator=torch.Generator().manual_seed(0))
            place = next(self.network.parameters()).device
            self._split = Split(self.network, self._fixed, self._scaled(example.to(place)))
        return self._split

    def _read_weights(self, file: Path) -> dict[str, Tensor]:
        """The weights file, as the network without classifier has it. Raises LDLError."""
        if not file.is_file():
            raise LDLError(f"no weights file at {file}; correct model.backbone.weights")
        if file.suffix == ".ckpt":
            checkpoint = read_checkpoint(file)
            saved = checkpoint[CHECKPOINT_KEY]["backbone"]["init_args"].get("name")
            if saved != self.name:
                raise LDLError(f"{file} holds a backbone {saved}, not {self.name}; correct model.backbone.name")
            prefix, state = "backbone.network.", checkpoint["state_dict"]
            return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
        import timm

        check_archive(file, packed=False)
        try:
            network = timm.create_model(self.name, checkpoint_path=str(file))
        except Exception as error:  # those of pickle, zip, safetensors and timm have no common base
            reason = " ".join(str(error).split())[:200]
            raise LDLError(f"{file} holds no weights that fit {self.name}: {type(error).__name__} {reason}") from error
        network.reset_classifier(0)  # type: ignore[operator]
        return network.state_dict()

    def train(self, mode: bool = True) -> Timm:
        """Switch the mode; what is frozen, or normalises by frozen statistics, stays in evaluation."""
        super().train(mode)
        for module in (*self._fixed, *(self._norms() if self.freeze_statistics else ())):
            module.eval()
        return self

    def _norms(self) -> list[nn.Module]:
        return [module for module in self.modules() if isinstance(module, _BatchNorm)]

    def forward(self, inputs: Tensor) -> Tensor:
        """Images (B, channels, height, width) to pooled features (B, F).

        Images of 0 to 255 in uint8 are normalised as the network's weights expect; others are taken as they are.
        """
        inputs = self._scaled(inputs)
        with torch.no_grad() if self.freeze else nullcontext():
            if self.training and self.compiled:
                self._compiled = self._compiled or self._compile(inputs.device)
                return self._compiled(inputs)
            features = self.network(inputs)
            if self.mirror and not self.training:
                features = (features + self.network(inputs.flip(-1))) / 2
            return features

    def _scaled(self, inputs: Tensor) -> Tensor:
        if inputs.dtype == torch.uint8:
            inputs = (inputs - self.mean) / self.std
        if self.enlarge != 1:
            inputs = F.interpolate(inputs, scale_factor=self.enlarge, mode="bilinear")
        return inputs.contiguous(memory_format=torch.channels_last if self.channels_last else torch.contiguous_format)

    def kept(self, inputs: Tensor) -> Tensor:
        """Maps (B, ...) of the last fixed layer, of images as ``forward`` takes them."""
        return self._cut().lower(self._scaled(inputs))

    def from_kept(self, maps: Tensor) -> Tensor:
        """Pooled features (B, F) of such maps (B, 1, ...), or (B, 2, ...) with those of mirror images."""
        sides = list(maps.unbind(1)[: 1 + self.mirror])
        if self.channels_last and sides[0].ndim == 4:
            sides = [side.contiguous(memory_format=torch.channels_last) for side in sides]
        return torch.stack([self._cut().upper(side) for side in sides]).mean(0)

    def _compile(self, device: torch.device) -> Callable[[Tensor], Tensor]:
        """The network's function, not the module, which would put all parameters into checkpoints a second time."""
        compiles = device.type == "cuda"
        said = "is compiled: a minute or so before the first step" if compiles else "is not compiled: no CUDA here"
        if process_rank() == 0:
            print(f"Timm.compiled: {self.name} {said}", flush=True)
        return torch.compile(self.network.forward) if compiles else self.network.forward

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_compiled": None}
