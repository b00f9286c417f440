"""A network whose normalisation, with fixed statistics, is folded into the convolutions before it."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

from ldl.errors import LDLError


class Folded:
    """Computes what a network does with fixed statistics, with a pass less over every map, forwards and backwards.

    A convolution ``w * x`` and the normalisation ``g (y - m) / s + b`` of its output are one convolution with weight
    ``w g / s`` and bias ``b - m g / s``, which are made anew from the network's parameters every time: these, their
    names and their gradients stay what they were, up to rounding.

    Args:
        network: The network, of which nothing but its shape is kept.
        channels: Of the images that it takes.

    Raises:
        LDLError: it computes something else then, as where maps are also used before they are normalised.
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
            # timm's normalisations have their activation inside.
            after = nn.Sequential(*(getattr(rest, part) for part in ("drop", "act") if hasattr(rest, part)))
            setattr(self.skeleton.get_submodule(parent), name, after)
        with torch.no_grad():
            same = (torch.allclose(*maps, rtol=1e-3, atol=1e-3) for maps in zip(self(network, example), wanted))
            if not all(same):
                raise LDLError(f"PixelFeatures.fold: {type(network).__name__} cannot be folded; leave fold false")

    def __call__(self, network: nn.Module, inputs: Tensor) -> Any:
        """What ``network(inputs)`` gives in evaluation mode."""
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
    """Names of convolutions without bias and of the normalisations that take their outputs, and what comes out."""
    made: dict[int, tuple[str, Tensor]] = {}
    pairs: list[tuple[str, str]] = []
    hooks = []
    for name, module in network.named_modules():
        if isinstance(module, nn.Conv2d) and module.bias is None:

            def note(module: Any, inputs: Any, output: Tensor, name: str = name) -> None:
                made[id(output)] = name, output  # kept, so that no other tensor gets its number

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
