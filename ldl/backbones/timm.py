"""Any timm network as a backbone, with its weights, and its split into frozen and trained layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

from ldl.backbones.timm_network import TimmNetwork, local_weights
from ldl.checkpoint import CHECKPOINT_KEY, read_checkpoint
from ldl.errors import LDLError, explaining
from ldl.options import option, options
from ldl.validation.archive import check_archive
from ldl.validation.checkpoint import check_weights
from ldl.validation.files import check_file

SIZE_FIX = (
    "set data.crop_size to the size it was made for, or the network to yours, with model.backbone.options img_size or "
    "dynamic_img_size, or take another one"
)
"""Advice if a network takes no images of the size of the data."""


@options
class Timm(TimmNetwork):
    """Any timm network, up to its pooled features.

    Args:
        weights: A local weights file (.safetensors, .pth) with any classifier, or a checkpoint of ldl (.ckpt), to load
            instead.
        freeze: Freeze the network including normalisation statistics. Its features are then computed once. This and
            ``freeze_groups`` raise an error if ``pretrained: auto`` finds no weights.
        freeze_groups: Freeze the first groups of layers, counted as timm does for layer-wise learning rates
            (``group_matcher``): the stem, then block after block.
        freeze_statistics: Keep the loaded normalisation statistics in training too, so that statistics of few images
            do not replace them; scales and shifts are still trained.
        views: With ``freeze_groups``, cache the maps of the frozen layers for this number of augmented copies of each
            training image, once for all epochs and folds, and train on these, for about as many epochs as there are
            copies. 0 draws new copies every epoch, through all layers.
        lr: Learning rate of the network; None uses that of the head.
        drop_rate: Dropout of the network before its classifier.
        drop_path_rate: Stochastic depth, for networks that have it; 0 omits it.
        mirror: In evaluation, average the features of each image and of its mirror image.
        compiled: On CUDA, compile the training step with ``torch.compile``: a minute at the start, then faster. Other
            devices, which would take many minutes, compile nothing.
        channels_last: Store images, weights and maps with channels last, the fastest format of convolutions. Networks
            that are re-parameterised after training, such as RepVGG, have channels first.

    Examples:
        >>> import torch
        >>> from ldl.backbones import Timm
        >>> backbone = Timm("test_resnet")
        >>> backbone.build((3, 32, 32))
        96
        >>> backbone(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 96])
    """

    weights: str | None = option(default=None, may_change=True, role="start", is_path=True)
    freeze: bool = option(default=False, may_change=True)
    freeze_groups: int = option(default=0, least=0, may_change=True)
    freeze_statistics: bool = option(default=False, may_change=True)
    views: int = option(default=0, least=0, most=1000, may_change=True)
    lr: float | None = option(default=None, least=0, may_change=True, role="start")
    drop_rate: float = option(default=0.0, least=0, most=1)
    drop_path_rate: float = option(default=0.0, least=0, below=1)
    mirror: bool = option(default=False, may_change=True)
    compiled: bool = option(default=False, may_change=True)
    channels_last: bool = option(default=True, may_change=True)

    def __post_init__(self) -> None:
        self.is_frozen = self.freeze
        self._frozen: list[nn.Module] = []
        self._split: NetworkSplit | None = None
        self._shape: tuple[int, ...] = ()
        self._compiled: Any = None
        self._format = torch.contiguous_format

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Create the network for images (channels, height, width). Raises LDLError."""
        self.check_images(input_shape)
        self._shape, self._split = tuple(input_shape), None
        if self.weights and self.pretrained is True:
            raise LDLError("give either Timm.weights or Timm.pretrained: true, not both")
        options: dict[str, Any] = {"in_chans": input_shape[0], "drop_rate": self.drop_rate}
        options |= {"drop_path_rate": self.drop_path_rate} if self.drop_path_rate else {}
        file = (self.weights or (self.pretrained and local_weights(self.model))) if load_weights else None
        from_hub = bool(self.pretrained) and load_weights and not file
        self.network = self._create(self.name, from_hub, load_weights, **options)
        self.network.reset_classifier(0)
        if file:
            self.pretrained_from = str(file)
            self._load(Path(file), input_shape[0])
        kept = "freeze" if self.freeze else f"freeze_groups {self.freeze_groups}" if self.freeze_groups else ""
        if kept and load_weights and self.pretrained == "auto" and not self.pretrained_from:
            raise LDLError(
                f"Timm.{kept} would keep random layers: no pretrained weights of {self.name} are "
                f"available; put a file {self.name}*.safetensors into LDL_WEIGHTS, or set pretrained: false for random "
                "ones"
            )
        config = self.network.pretrained_cfg
        self._register_pixel_scale(config["mean"], config["std"], input_shape[0])
        self._freeze()
        if self.views and (not self.freeze_groups or self.freeze):
            raise LDLError(f"Timm.views {self.views} needs freeze_groups without freeze; or leave views 0")
        if self.views and load_weights:  # a loaded network may not need it, or have no numbers yet
            self._cut()
        if self.freeze_statistics and not any(isinstance(module, _BatchNorm) for module in self.modules()):
            raise LDLError(
                f"Timm.freeze_statistics: {self.name} normalises by no statistics of batches; leave it out, or take "
                "another network"
            )
        self._format = self.memory_format if self.channels_last else torch.contiguous_format
        if self.channels_last:
            self.network.to(memory_format=self._format)
        features = self._width(input_shape)
        # Trainers do not always call train() before the first batch, so freeze the mode now.
        self.train(self.training)
        return features

    @torch.no_grad()
    def _width(self, input_shape: tuple[int, ...]) -> int:
        """Return the number of features of such images. Raises LDLError for an unsupported size."""
        state = {**dict(self.network.named_parameters()), **dict(self.network.named_buffers())}
        size = "x".join(map(str, input_shape))
        # Only the shape is needed, and large images would take memory.
        with explaining(f"{self.name} does not take images of {size}", SIZE_FIX), torch.device("meta"):
            state = {name: torch.empty_like(tensor, device="meta") for name, tensor in state.items()}
            inputs = self._scaled(torch.zeros(1, *input_shape))
            shape = functional_call(self.network.eval(), state, inputs).shape
        if len(shape) != 2:
            raise LDLError(
                f"{self.name} returns maps {tuple(shape[1:])} and no features; give model.backbone.options another "
                "global_pool, such as avg"
            )
        return int(shape[-1])

    def _load(self, file: Path, channels: int) -> None:
        """Load a weights file or a checkpoint of ldl into the network without classifier. Raises LDLError."""
        check_file(file, "weights file", "correct model.backbone.weights")
        try:
            saved = self._of_checkpoint(file) if file.suffix == ".ckpt" else self._of_timm(file)
            _adapt(saved, self.network.pretrained_cfg["first_conv"], channels)
            check_weights(self.network, saved)
            self.network.load_state_dict(saved)
            self.check_state()
        except Exception as error:  # errors of pickle, zip, safetensors, torch and timm have no common base
            if isinstance(error, LDLError) and str(file) in str(error):
                raise
            kind = "" if isinstance(error, LDLError) else f"{type(error).__name__} "
            reason = " ".join(str(error).split())[:200]
            raise LDLError(f"{file} holds no weights that fit {self.name}: {kind}{reason}") from error

    def _of_checkpoint(self, file: Path) -> dict[str, Tensor]:
        checkpoint = read_checkpoint(file)
        saved = checkpoint[CHECKPOINT_KEY]["backbone"]["init_args"].get("name")
        if saved != self.name:
            raise LDLError(f"{file} holds a backbone {saved}, not {self.name}; correct model.backbone.name")
        prefix, state = "backbone.network.", checkpoint["state_dict"]
        return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}

    def _of_timm(self, file: Path) -> dict[str, Tensor]:
        import timm

        check_archive(file, packed=False)
        sizes: dict[str, Any] = (
            {} if file.suffix in (".npz", ".npy") else self._sizes(timm.models.load_state_dict(str(file)))
        )
        network: Any = timm.create_model(self.model, checkpoint_path=str(file), **sizes, **(self.options or {}))
        classes = sizes.get("num_classes", 0)
        if classes not in (0, self.network.pretrained_cfg["num_classes"]):  # timm's own is never mentioned
            self.pretrained_from = f"{file}, without its classifier of {classes} classes"
        network.reset_classifier(0)
        return network.state_dict()

    def _sizes(self, saved: dict[str, Tensor]) -> dict[str, int]:
        """Return the numbers of classes and of channels of a weights file; 0 classes without a classifier."""
        config = self.network.pretrained_cfg

        def shape(layers: str | Sequence[str]) -> tuple[int, ...]:
            first = layers if isinstance(layers, str) else layers[0]
            return tuple(saved[f"{first}.weight"].shape) if f"{first}.weight" in saved else (0, 0)

        channels = shape(config["first_conv"])[1]
        return {"num_classes": shape(config["classifier"])[0], **({"in_chans": channels} if channels else {})}

    def _freeze(self) -> None:
        if self.freeze:
            self._frozen = [self.network.requires_grad_(False)]
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
            self._frozen = frozen_modules(self.network, held)
            for parameter in held:
                parameter.requires_grad_(False)

    def _cut(self) -> NetworkSplit:
        if self._split is None:
            example = torch.randn(2, *self._shape, generator=torch.Generator().manual_seed(0))
            device = next(self.network.parameters()).device
            self._split = NetworkSplit(self.network, self._frozen, self._scaled(example.to(device)))
        return self._split

    def train(self, mode: bool = True) -> Timm:
        """Switch the mode; frozen layers and frozen statistics stay in evaluation."""
        super().train(mode)
        norms = (module for module in self.modules() if isinstance(module, _BatchNorm) and self.freeze_statistics)
        for module in (*self._frozen, *norms):
            module.eval()
        return self

    def forward(self, inputs: Tensor) -> Tensor:
        """Map images (B, channels, height, width) to pooled features (B, F).

        Images of 0 to 255 in uint8 are normalised as the network's weights require; others are not scaled.
        """
        inputs = self._scaled(inputs)
        with torch.no_grad() if self.freeze else nullcontext():
            if self.training and self.compiled and inputs.is_cuda:
                # The function, because a compiled module would duplicate all parameters in checkpoints.
                self._compiled = self._compiled or torch.compile(self.network.forward)
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
        return inputs.contiguous(memory_format=self._format)

    def frozen_maps(self, inputs: Tensor) -> Tensor:
        """Return maps (B, ...) of the last frozen layer, for images as in ``forward``."""
        return self._cut().lower(self._scaled(inputs))

    def from_frozen_maps(self, maps: Tensor) -> Tensor:
        """Return pooled features (B, F) of such maps (B, 1, ...), or with mirror images (B, 2, ...)."""
        sides = list(maps.unbind(1)[: 1 + self.mirror])
        if self.channels_last and sides[0].ndim == 4:
            sides = [side.contiguous(memory_format=self._format) for side in sides]
        return torch.stack([self._cut().upper(side) for side in sides]).mean(0)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_compiled": None}


class NetworkSplit:
    """Run the frozen layers of a network alone, or all other layers from the output of the frozen ones.

    Nothing is copied: the layers on one side are replaced while the other side runs.

    Args:
        network: The network.
        frozen: Its frozen modules, from :func:`frozen_modules`.
        example: Inputs for a test.

    Raises:
        LDLError: Other layers run before or beside the frozen ones, so that the network cannot be split there.
    """

    def __init__(self, network: nn.Module, frozen: Sequence[nn.Module], example: Tensor) -> None:
        self.network = network
        order = _in_order(network, frozen, example)
        self.skipped, self.last = order[:-1], order[-1]
        with evaluating(network), torch.no_grad():
            try:
                same = torch.allclose(self.upper(self.lower(example)), network(example), rtol=1e-4, atol=1e-5)
            except Exception:  # errors of a network with unexpected inputs have no common base
                same = False
        if not same:
            raise LDLError(
                f"Timm.views: {type(network).__name__} cannot be cut after its frozen layers; take another "
                "freeze_groups, or leave views 0"
            )

    @torch.no_grad()
    def lower(self, inputs: Tensor) -> Tensor:
        """Map inputs of the network to maps (B, ...) of its last frozen layer."""

        captured: list[Tensor] = []
        handle = self.last.register_forward_hook(lambda module, inputs, output: captured.append(output))
        try:
            self.network(inputs)
        finally:
            handle.remove()
        return captured[0]

    def upper(self, maps: Tensor) -> Any:
        """Map the output of :meth:`lower` to outputs of the network."""
        for module in self.skipped:
            module.__dict__["forward"] = lambda inputs, *others: inputs
        self.last.__dict__["forward"] = lambda *inputs: maps
        try:
            # The frozen layers return the maps unchanged, and layers between them get empty batches.
            return self.network(maps[:0])
        finally:
            for module in (*self.skipped, self.last):
                del module.__dict__["forward"]


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Switch all modules to evaluation in this context; each then returns to its own mode."""
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def _adapt(saved: dict[str, Tensor], first: str | Sequence[str], channels: int) -> None:
    """Sum or repeat the weights of the first layers if they have another number of channels."""
    from timm.models import adapt_input_conv

    for layer in [first] if isinstance(first, str) else first:
        # timm rejects weights of other numbers of channels than 1 and 3, even if they fit.
        if f"{layer}.weight" in saved and saved[f"{layer}.weight"].shape[1] != channels:
            saved[f"{layer}.weight"] = adapt_input_conv(channels, saved[f"{layer}.weight"])


def frozen_modules(network: nn.Module, held: set[nn.Parameter]) -> list[nn.Module]:
    """Return the largest modules of which all parameters are ``held``."""
    parameters = list(network.parameters())
    if parameters and held.issuperset(parameters):
        return [network]
    return [module for child in network.children() for module in frozen_modules(child, held)]


def _in_order(network: nn.Module, modules: Sequence[nn.Module], example: Tensor) -> list[nn.Module]:
    """Return the modules in the order in which the network runs them."""
    order: list[nn.Module] = []
    handles = [module.register_forward_hook(lambda module, inputs, output: order.append(module)) for module in modules]
    with evaluating(network), torch.no_grad():
        network(example)
    for handle in handles:
        handle.remove()
    return order
